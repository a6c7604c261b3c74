"""What the modules of a model receive and return during one forward pass: saved in files, or replaced by what files hold."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard_worker.port import nested

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path


@dataclass
class Call:
    """One call of a module. `name`: the module's path, with `#2` for its second call; `inputs`, `outputs`: numbers of files.

    `type`: the name of the module's class. `kind`: what it computes, such as `layer_norm`, or empty. `settings`: its constants in
    words that all frameworks share. `tensors`: role -> name of the module's own tensors, such as weight -> encoder.norm.weight.
    """

    name: str
    path: str
    type: str
    kind: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    tensors: dict[str, str] = field(default_factory=dict)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    depth: int = 0


@dataclass(frozen=True)
class Bridge:
    """How tensors of a framework become arrays and the other way round."""

    is_tensor: Callable[[Any], bool]
    to_array: Callable[[Any], np.ndarray]
    like: Callable[[np.ndarray, Any], Any]
    """An array -> a tensor with the dtype and the device of an example."""


class Observer:
    """Follows one forward pass. `inputs`, `outputs`: name of a call -> files that replace its tensors; "" keeps one.

    `folder`: where tensors are saved; None: they are not.
    """

    def __init__(
        self,
        folder: Path | None,
        bridge: Bridge,
        inputs: Mapping[str, Sequence[str]],
        outputs: Mapping[str, Sequence[str]],
    ) -> None:
        self.calls: list[Call] = []
        self._folder, self._bridge = folder, bridge
        self._inputs, self._outputs = inputs, outputs
        self._counts: dict[str, int] = {}
        self._open: list[Call] = []
        self._saved = 0

    def entered(self, call: Call, arguments: Any) -> Any:
        """Record what a module receives, and return what it receives instead. `call`: the module, without number and tensors."""
        count = self._counts[call.path] = self._counts.get(call.path, 0) + 1
        call.name = call.path if count == 1 else f"{call.path}#{count}"
        call.depth = len(self._open)
        arguments = self._replaced(arguments, self._inputs.get(call.name, ()))
        call.inputs = self._save_all(arguments)
        self.calls.append(call)
        self._open.append(call)
        return arguments

    def left(self, result: Any) -> Any:
        """Record what the innermost open module returns, and return what it returns instead."""
        call = self._open.pop()
        result = self._replaced(result, self._outputs.get(call.name, ()))
        call.outputs = self._save_all(result)
        return result

    def failed(self) -> None:
        """Forget the innermost open module: it raised an error."""
        self._open.pop()

    def described(self) -> list[dict[str, Any]]:
        """Return all calls as plain values, in the order in which they began."""
        return [asdict(call) for call in self.calls]

    def _save_all(self, value: Any) -> list[int]:
        if self._folder is None:
            return []
        return [self._save(tensor) for _, tensor in nested.named(value, self._bridge.is_tensor)]

    def _save(self, tensor: Any) -> int:
        assert self._folder is not None
        self._saved += 1
        save(self._folder / f"{self._saved}.npy", self._bridge.to_array(tensor))
        return self._saved

    def _replaced(self, value: Any, files: Sequence[str]) -> Any:
        if not files:
            return value
        old = [tensor for _, tensor in nested.named(value, self._bridge.is_tensor)]
        new = [
            self._bridge.like(np.load(file), tensor) if file else tensor
            for tensor, file in zip(old, files, strict=False)
        ] + old[len(files) :]
        return nested.replaced(value, self._bridge.is_tensor, iter(new))


def save(path: Path, array: np.ndarray) -> None:
    """Write an array; types that NumPy does not have itself, such as bfloat16, as float32, which holds all their values."""
    if array.dtype.kind not in "fiub":
        array = array.astype(np.float32)
    np.save(str(path), array, allow_pickle=False)
