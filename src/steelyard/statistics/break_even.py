"""The number of steps after which a contender with a slow start overtakes one that starts sooner."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum, inf, isfinite, sqrt

from steelyard.statistics.intervals import student_quantile


@dataclass(frozen=True)
class JobTime:
    """The time of a job of n steps in one process: `start_ns + n * step_ns`, in nanoseconds.

    `start_ns`: the one-time costs, such as imports and compilation.
    """

    start_ns: float
    step_ns: float

    def after(self, steps: float) -> float:
        """Return the time of a job of this many steps, start included, in nanoseconds."""
        return self.start_ns + steps * self.step_ns


@dataclass(frozen=True)
class BreakEven:
    """The number of steps at which two contenders finish at the same time, with its interval.

    `steps` is infinite if the one that starts slowly is not faster per step; `high` is infinite if that is not excluded.
    """

    steps: float
    low: float
    high: float
    rounds: int


def mean(times: Mapping[int, JobTime]) -> JobTime:
    """Return the mean over the rounds, of which there is at least one."""
    count = len(times)
    return JobTime(
        fsum(each.start_ns for each in times.values()) / count, fsum(each.step_ns for each in times.values()) / count
    )


def break_even(slow: Mapping[int, JobTime], soon: Mapping[int, JobTime], error: float = 0.05) -> BreakEven | None:
    """Return the break-even of a contender with a slow start and another one, from the rounds that both finished.

    The interval holds every number of steps at which a paired t test at level `error` does not tell the two times apart
    (Fieller 1954). None for fewer than two common rounds, and if `slow` starts earlier on average.
    """
    common = sorted(slow.keys() & soon.keys())
    if len(common) < 2:
        return None
    later = [slow[number].start_ns - soon[number].start_ns for number in common]
    saved = [soon[number].step_ns - slow[number].step_ns for number in common]
    late, gain = fsum(later) / len(common), fsum(saved) / len(common)
    if late < 0:
        return None
    scale = student_quantile(1 - error / 2, len(common) - 1) ** 2 / len(common)
    # late - n gain is 0 within its error where a n^2 - 2 b n + c <= 0.
    a = gain**2 - scale * _covariance(saved, saved)
    b = late * gain - scale * _covariance(later, saved)
    c = late**2 - scale * _covariance(later, later)
    return BreakEven(late / gain if gain > 0 else inf, *_interval(a, b, c), len(common))


def soonest(times: Mapping[str, JobTime]) -> list[tuple[int, str]]:
    """Return the contender that finishes first by length of the job, as (least number of steps, key), shortest jobs first.

    Contenders that are never first are left out.
    """
    current = min(times, key=lambda key: (times[key].after(1), times[key].step_ns))
    found, now = [(1, current)], 1.0
    while True:
        crossings = {
            key: _crossing(times[current], each) for key, each in times.items() if each.step_ns < times[current].step_ns
        }
        if not crossings:
            return found
        current = min(crossings, key=lambda key: (crossings[key], times[key].step_ns))
        now = max(now, crossings[current])
        if int(now) + 1 == found[-1][0]:  # the previous contender was first for less than a whole step
            found.pop()
        found.append((int(now) + 1, current))


def _crossing(before: JobTime, after: JobTime) -> float:
    """Return the number of steps from which on `after`, which is faster per step, finishes first."""
    return (after.start_ns - before.start_ns) / (before.step_ns - after.step_ns)


def _interval(a: float, b: float, c: float) -> tuple[float, float]:
    """Return the ends of the numbers n from 0 on with a n^2 - 2 b n + c <= 0; infinite if there are none, or no last one.

    If they form two ranges, the numbers between these belong to the interval, too.
    """
    root = sqrt(max(0.0, b * b - a * c))
    # Compute the root of larger size first and the other from their product, so that no digits are lost.
    larger = b + root if b >= 0 else b - root
    places = sorted(
        place for above, below in ((larger, a), (c, larger)) if below and isfinite(place := above / below) and place > 0
    )
    low = 0.0 if c <= 0 else min(places, default=inf)
    high = inf if a <= 0 else max(places, default=0.0 if c <= 0 else inf)
    return low, high


def _covariance(left: list[float], right: list[float]) -> float:
    middle, other = fsum(left) / len(left), fsum(right) / len(right)
    return fsum((x - middle) * (y - other) for x, y in zip(left, right, strict=True)) / (len(left) - 1)
