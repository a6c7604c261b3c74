"""Profiles in single numbers, with their units and how to read them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf

from steelyard.profiles.breakdown import Breakdown
from steelyard.profiles.classes import COPIES, DISPATCH, GAP, INPUT, NO_OPERATION


@dataclass(frozen=True)
class ProfileQuantity:
    """A number of at least 0 per profiled process. `help` explains it; no value is above `highest`."""

    name: str
    unit: str
    read: Callable[[Breakdown], float]
    help: str
    more_is_better: bool = False
    highest: float = inf

    @property
    def label(self) -> str:
        """The name in running text."""
        return f"{self.name}, from profiles"


def operating_ns(found: Breakdown) -> float:
    """Return the time of a step in operations, in ns; where they overlap on several threads, it counts once."""
    return sum(value for kind, value in found.classes.items() if kind not in NO_OPERATION)


def _share(name: str, read: Callable[[Breakdown], float], about: str, more_is_better: bool = False) -> ProfileQuantity:
    """Return a quantity of nanoseconds per step as a share of the step, in %."""
    return ProfileQuantity(name, "%", lambda found: 100 * read(found) / found.step_ns, about, more_is_better, 100.0)


def _of_class(name: str, kind: str, about: str) -> ProfileQuantity:
    return _share(name, lambda found: found.classes.get(kind, 0.0), about)


def _rate(found: Breakdown) -> float:
    operating = operating_ns(found)
    return found.dispatches * 1e9 / operating if operating else 0.0


SHARE = _share(
    "share in operations",
    operating_ns,
    "of the step's time; where several run at once, their time counts once",
    more_is_better=True,
)
SUMMED_SHARE = replace(
    _share(
        "summed share in operations",
        lambda found: operating_ns(found) * found.parallelism,
        "the times of all operations added up, over the step's time: more than 100 % where several run at once",
        more_is_better=True,
    ),
    highest=inf,
)
COPY_SHARE = _of_class("share of copies", COPIES, "operations that copy data or change its layout")
BOOKKEEPING = _of_class("share of bookkeeping", DISPATCH, "the framework's own work between operations")
INPUT_SHARE = _of_class("share of waiting for data", INPUT, "no operation runs, and the next batch is not there")
GAP_SHARE = _of_class("host gap", GAP, "the share in which nothing was recorded: Python, and what no profiler sees")
COUNT = ProfileQuantity(
    "operations per step", "", lambda found: found.dispatches, "how many operations a step starts, without bookkeeping"
)
RATE = ProfileQuantity(
    "operations per busy second",
    "",
    _rate,
    "operations per second of time in operations: the higher, the shorter they are, and the more starting them costs",
)
OPERATING = ProfileQuantity(
    "time in operations", "ns", operating_ns, "of a step; where several run at once, their time counts once"
)
REST = ProfileQuantity(
    "rest of the step",
    "ns",
    lambda found: found.step_ns - operating_ns(found),
    "the time of a step that is not in operations",
)

QUANTITIES = {
    each.name: each
    for each in (
        SHARE,
        SUMMED_SHARE,
        COPY_SHARE,
        BOOKKEEPING,
        INPUT_SHARE,
        GAP_SHARE,
        COUNT,
        RATE,
        OPERATING,
        REST,
    )
}
"""By name, in the order in which they are shown."""
