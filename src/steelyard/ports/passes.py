"""One forward pass of a side: what every module received and returned, in files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from steelyard.ports.given_inputs import Array
    from steelyard.ports.side_process import SideProcess


@dataclass(frozen=True)
class Call:
    """One call of a module. `inputs`, `outputs`: the files of its tensors. The other fields are those of the worker's `Call`."""

    name: str
    path: str
    type: str
    kind: str
    settings: dict[str, Any]
    tensors: dict[str, str]
    inputs: tuple[Path, ...]
    outputs: tuple[Path, ...]
    depth: int


@dataclass(frozen=True)
class Pass:
    """All calls of a pass in the order in which they began, and the outputs of the model by name."""

    calls: tuple[Call, ...]
    outputs: dict[str, Path] = field(default_factory=dict)

    @property
    def by_name(self) -> dict[str, Call]:
        """The calls by their names."""
        return {call.name: call for call in self.calls}


def load(path: Path) -> Array:
    """Read one array of a pass."""
    found: Array = np.load(path, allow_pickle=False)
    return found


def forward(
    side: SideProcess,
    arrays: Mapping[str, Path],
    inputs: Mapping[str, Sequence[str]] | None = None,
    outputs: Mapping[str, Sequence[str]] | None = None,
    training: bool = False,
) -> Pass:
    """Run a side's model in evaluation mode, or in training mode without what is random.

    `inputs`, `outputs`: name of a call -> files that replace its tensors. UserError: the model cannot compute these inputs.
    """
    folder = side.new_folder()
    answer = side.ask(
        "forward",
        folder=str(folder),
        arrays={name: str(path) for name, path in arrays.items()},
        inputs={name: [*files] for name, files in (inputs or {}).items()},
        outputs={name: [*files] for name, files in (outputs or {}).items()},
        training=training,
    )
    calls = tuple(_call(folder, each) for each in answer["calls"])
    return Pass(calls, {name: folder / f"output{number}.npy" for number, name in enumerate(answer["outputs"])})


def _call(folder: Path, raw: dict[str, Any]) -> Call:
    files = [tuple(folder / f"{number}.npy" for number in raw.pop(key)) for key in ("inputs", "outputs")]
    return Call(**raw, inputs=files[0], outputs=files[1])
