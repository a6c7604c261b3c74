"""The result of a benchmark: a measured value and its limit."""

from dataclasses import dataclass
from typing import Literal

Sense = Literal["at most", "at least"]


@dataclass(frozen=True)
class Row:
    """A value with its limit; `name` contains the unit."""

    name: str
    value: float
    limit: float
    sense: Sense
    detail: str = ""

    @property
    def ok(self) -> bool:
        """Whether the value is within its limit; NaN never is."""
        return self.value <= self.limit if self.sense == "at most" else self.value >= self.limit
