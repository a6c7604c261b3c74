"""Detect trainings that diverge from others on the same batches in the same order, from their losses alone. Pure functions.

Rounding makes the losses of correct implementations diverge: not in the first steps, and as much as the training is chaotic
later on. So a difference matters only relative to the spread of the others in the same run, and one training may be ahead of
another for a while. The search is for a training that is far from the others over many steps.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Values = np.ndarray[Any, np.dtype[np.float64]]

GROWTH = 1.15
"""Windows of steps get longer by this factor: single steps at first, then medians, because late losses differ from batch to
batch, and jump now and then."""
AHEAD = 1.5
"""A training may be ahead of or behind the others by this factor in the number of steps."""
FEWEST, LONGER = 20, 1.5
"""At least this many consecutive steps must differ, up to a step 1.5 times as late as the first: a loss may jump and return."""
SPREADS = 2.5
"""A loss must differ from those of the others by more than this many of their standard deviations (the largest nearby), or by
twice as many where there are two others, which say little of their own spread, ..."""
RANGES = (1.0, 1.128, 1.693, 2.059, 2.326, 2.534, 2.704, 2.847, 2.970, 3.078)
"""The expected range of 1, 2, ... normal values, in standard deviations (ISO 7870-2, factor d2)."""
BEFORE = 2.25
"""The spread is the largest one from this factor fewer steps to 1.5 times as many: two curves may cross by chance."""
OF_FALL, OF_LEVEL = 0.25, 0.05
"""... than the first share of the loss or of its fall so far, whichever is less, and than the second share of the loss."""
MEMORISED = 0.02
"""Losses below this share of the first loss count as equal to it."""
PAIR = 2.0
"""Two loss curves do not show how far correct ones diverge, so they must be further apart by this factor."""
OTHERS = 2
"""The majority must have this many times as many frameworks as the minority, and at least two."""


@dataclass(frozen=True)
class Stretch:
    """Consecutive steps, counted from 1, in which a training differs from others, with the typical losses of both there."""

    first: int
    last: int
    own: float
    others: float


@dataclass(frozen=True)
class Odd:
    """A process whose losses diverge from those of the majority; `key`: of its contender, `number`: of its round."""

    key: str
    number: int
    stretch: Stretch


@dataclass(frozen=True)
class Parting:
    """Two sides whose losses diverge without a clear majority. `own` of the stretch is the loss of the second side."""

    sides: tuple[tuple[str, ...], tuple[str, ...]]
    stretch: Stretch


@dataclass(frozen=True)
class Compared:
    """The result of a comparison: processes that diverge from a clear majority, or two sides without one."""

    odd: tuple[Odd, ...] = ()
    parting: Parting | None = None


def compare(
    courses: Mapping[str, Mapping[int, Sequence[float] | Values]], makers: Mapping[str, str] | None = None
) -> Compared:
    """Compare the losses of contenders, key -> {round: (steps,)}, all on the same batches in the same order from the first on.

    `makers`: the framework of each contender; by default it has one of its own. Contenders of one framework share their mistakes,
    so it is frameworks that must go together.
    """
    found = {
        key: {number: medians(losses) for number, losses in sorted(each.items()) if len(losses)}
        for key, each in courses.items()
    }
    found = {key: each for key, each in found.items() if each}
    if len(found) < 2:
        return Compared()
    typical = {key: _median(list(each.values())) for key, each in found.items()}
    if len(found) == 2:
        return _pair(typical, [list(each.values()) for each in found.values()])
    together, odd = _closest(typical), list[Odd]()
    while True:
        odd = []
        for key, each in found.items():
            others = sorted(together - {key})
            if len(others) < 2:
                continue
            ways = [typical[name] for name in others]
            spread = _spread(ways, [list(found[name].values()) for name in others])
            stretches = {number: parts(own, ways, spread) for number, own in each.items()}
            odd += [Odd(key, number, stretch) for number, stretch in stretches.items() if stretch]
        joining = found.keys() - together - {each.key for each in odd}
        if not joining:
            break
        together |= joining
    apart = found.keys() - together
    makers = makers or {key: key for key in found}
    right, wrong = len({makers[key] for key in together}), len({makers[key] for key in apart})
    if not apart or right >= max(2, OTHERS * wrong):
        return Compared(tuple(odd))
    first = min((each.stretch for each in odd if each.key in apart), key=lambda each: each.first)
    return Compared((), Parting((tuple(sorted(together)), tuple(sorted(apart))), first))


def edges(steps: int) -> list[int]:
    """Return the first steps of the windows of a loss curve, and the end of the last whole window."""
    found = [0]
    while (following := max(found[-1] + 1, round(found[-1] * GROWTH))) <= steps:
        found.append(following)
    return found


def medians(losses: Sequence[float] | Values) -> Values:
    """Return the median loss of each whole window, float64 (windows,)."""
    found = np.asarray(losses, np.float64)
    ends = edges(len(found))
    # Most windows of a short course are one step, of which NumPy's median would take most of the time.
    windows = (found[begin:end] for begin, end in itertools.pairwise(ends))
    return np.array([window[0] if len(window) == 1 else np.median(window) for window in windows])


def parts(own: Values, others: Sequence[Values], spread: Values, factor: float = 1.0) -> Stretch | None:
    """Return the first long stretch in which a loss curve is far from the others; None if there is none. Arguments are
    medians of windows.

    `spread`: of the others around each window, a standard deviation as a share of their loss. `factor`: of all margins.
    """
    count = min(len(own), len(spread), *map(len, others))
    if not count:
        return None
    least = _least(others)
    own, others = np.maximum(own, least), [np.maximum(each, least) for each in others]
    level, wide = _median(others), SPREADS * (1 + 1 / max(1, len(others) - 1))
    fall = np.abs(level[0] - level[:count])
    margin = np.maximum(OF_FALL * np.minimum(1, fall / level[:count]), np.maximum(OF_LEVEL, wide * spread[:count]))
    further = 1 + factor * margin
    low, high = _band(others, count, np.minimum), _band(others, count, np.maximum)
    for outside in (own[:count] < low / further, own[:count] > high * further):
        if stretch := _longest(outside):
            return _stretch(*stretch, own, level)
    return None


def _stretch(begin: int, end: int, own: Values, level: Values) -> Stretch:
    ends = edges_of(end)
    widths = np.diff(ends[begin : end + 1])
    return Stretch(
        ends[begin] + 1,
        ends[end],
        float(np.average(own[begin:end], weights=widths)),
        float(np.average(level[begin:end], weights=widths)),
    )


def edges_of(windows: int) -> list[int]:
    """Return the first steps of this many windows, and the end of the last one."""
    found = [0]
    while len(found) <= windows:
        found.append(max(found[-1] + 1, round(found[-1] * GROWTH)))
    return found


def _longest(outside: np.ndarray[Any, np.dtype[np.bool_]]) -> tuple[int, int] | None:
    """Return the first run of windows that is long enough, as (first, after the last)."""
    ends = edges_of(len(outside))
    begin = 0
    for place, out in enumerate([*outside, False]):
        if not out:
            if ends[place] - ends[begin] >= FEWEST and ends[place] >= LONGER * (ends[begin] + 1):
                return begin, place
            begin = place + 1
    return None


def _band(others: Sequence[Values], count: int, of: np.ufunc) -> Values:
    """Return, for every window, the lowest or highest loss of the others at about the same number of steps."""
    centre = _centres(max(map(len, others)))
    extreme = np.array([of.reduce([each[k] for each in others if k < len(each)]) for k in range(len(centre))])
    near = [(centre >= centre[k] / AHEAD) & (centre <= centre[k] * AHEAD) for k in range(count)]
    return np.array([of.reduce(extreme[each]) for each in near])


def _centres(windows: int) -> Values:
    """Return the step in the middle of each window, counted from 1."""
    ends = np.array(edges_of(windows))
    return np.asarray((ends[:-1] + ends[1:] + 1) / 2)


def _median(found: Sequence[Values]) -> Values:
    """Return the median of loss curves of different lengths, window by window."""
    shared, longest = min(map(len, found)), max(map(len, found))
    common = np.median(np.stack([each[:shared] for each in found]), axis=0)
    further = [np.median([each[k] for each in found if k < len(each)]) for k in range(shared, longest)]
    return np.append(common, further)


def _spread(typical: Sequence[Values], processes: Iterable[Sequence[Values]]) -> Values:
    """Return the spread of loss curves around every window, as a standard deviation and as a share of their loss.

    They are those of the contenders, and those of the processes of most of them: what a framework does not repeat is chance.
    """
    between = _deviation(typical)
    within = [np.resize(_deviation(each), len(between)) if len(each) > 1 else 0 * between for each in processes]
    found = np.maximum(between, np.median(within, axis=0))
    centre = _centres(len(found))
    return np.array([found[(centre >= each / BEFORE) & (centre <= each * AHEAD)].max() for each in centre])


def _deviation(found: Sequence[Values]) -> Values:
    return np.asarray(_range(found) / RANGES[min(len(found), len(RANGES)) - 1])


def _range(found: Sequence[Values]) -> Values:
    count = min(map(len, found))
    stacked = np.maximum(np.stack([each[:count] for each in found]), _least(found))
    return np.asarray(np.ptp(stacked, axis=0) / np.median(stacked, axis=0))


def _least(found: Sequence[Values]) -> float:
    """Return the smallest loss that is compared; smaller losses are raised to it."""
    return max(MEMORISED * abs(float(np.median([each[0] for each in found]))), float(np.finfo(np.float32).tiny))


def _closest(typical: Mapping[str, Values]) -> set[str]:
    """Return the smallest majority of the contenders whose loss curves are closest together."""
    size = len(typical) // 2 + 1
    far = {(a, b): float(_range([typical[a], typical[b]]).max()) for a in typical for b in typical}
    groups = [sorted(typical, key=lambda key: (far[seed, key], key))[:size] for seed in sorted(typical)]
    return set(min(groups, key=lambda group: max(far[a, b] for a in group for b in group)))


def _pair(typical: Mapping[str, Values], processes: list[list[Values]]) -> Compared:
    """Compare two contenders. Neither counts as odd, because the losses do not show which one is wrong."""
    (a, one), (b, other) = sorted(typical.items())
    count = min(len(one), len(other))
    spread = _spread([one[:count]], [[each[:count] for each in own] for own in processes])
    first, second = parts(one, [other], spread, PAIR), parts(other, [one], spread, PAIR)
    return Compared((), Parting(((a,), (b,)), second)) if first and second else Compared()
