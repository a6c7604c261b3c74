"""The ranges of numbers that files and the command line give. A dataclass names that of a field as `range` in its metadata."""

import math
from typing import NamedTuple


class Range(NamedTuple):
    """From `least` to `most`, or without the end itself above `above` and below `below`. No infinity is in any range.

    `why` explains it in error messages.
    """

    least: float = -math.inf
    most: float = math.inf
    above: float = -math.inf
    below: float = math.inf
    why: str = ""

    def holds(self, value: float) -> bool:
        """Return whether a number is in the range; NaN is not."""
        return self.least <= value <= self.most and self.above < value < self.below

    @property
    def words(self) -> str:
        """The range as it follows `must be`, such as `from 0 to 20`, `above 0` or `at least 5 (one word and four marks)`."""
        ends = {"at least": self.least, "above": self.above, "at most": self.most, "below": self.below}
        shown = {word: _shown(end) for word, end in ends.items() if math.isfinite(end)}
        if shown.keys() == {"at least", "at most"}:
            shown = {"from": f"{shown['at least']} to {shown['at most']}"}
        found = " and ".join(f"{word} {end}" for word, end in shown.items())
        return f"{found} ({self.why})" if self.why else found


def _shown(end: float) -> str:
    return f"{end:,}" if abs(end) >= 10_000 else str(end)  # four digits are read without a comma


# Ranges that hold in study files and on the command line.
THREADS = Range(1, 4096)
WORKERS = Range(0, 1024)
SEEDS = Range(0, 2**32 - 1)  # the largest that every framework accepts
BATCHES = Range(1, 10_000_000)
SAMPLES = Range(1, 1_000_000_000)
STEPS = Range(1, 1_000_000_000)
PROFILES = Range(0, 20)
TAKEN_PROFILES = Range(1, PROFILES.most)
MINUTES = Range(0)
