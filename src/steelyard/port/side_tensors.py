"""The tensors of one side as its process described them; their values are memory-mapped files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.port import contents

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.port.contents import Digest

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class SideTensor:
    """One parameter or statistic. `place`: its number in the side's own order. `shares`: the tensor whose memory it shares."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    trained: bool
    path: Path
    place: int
    shares: str = ""

    @property
    def values(self) -> Array:
        """The values, read when they are needed."""
        found: Array = np.load(self.path, mmap_mode="r", allow_pickle=False)
        return found

    @property
    def is_number(self) -> bool:
        """Whether it holds real numbers, and not a counter or a mask."""
        return "float" in self.dtype

    @cached_property
    def digest(self) -> Digest:
        """The digest of its values, in any order."""
        return contents.digest(self.values)

    @cached_property
    def is_constant(self) -> bool:
        """Whether all its values are equal."""
        return contents.is_constant(self.values)


def of_answer(answer: dict[str, Any], folder: Path) -> list[SideTensor]:
    """Return the tensors that a side has described, without counters and masks."""
    found = [
        SideTensor(
            each["name"],
            tuple(each["shape"]),
            each["dtype"],
            each["trained"],
            folder / each["file"],
            place,
            each["shares"],
        )
        for place, each in enumerate(answer["tensors"])
    ]
    return [each for each in found if each.is_number]
