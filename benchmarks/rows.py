"""One measured figure and the limit it is held to: what every benchmark returns."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Row:
    """A figure with its limit; `name` carries the unit."""

    name: str
    value: float
    limit: float
    sense: Literal["at most", "at least"]
    detail: str = ""

    @property
    def ok(self) -> bool:
        """The value keeps to its limit; a value that is not a number does not."""
        return self.value <= self.limit if self.sense == "at most" else self.value >= self.limit
