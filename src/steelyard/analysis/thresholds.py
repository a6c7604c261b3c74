"""When trainings reached values of the test metric: the table, and the answer in one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from steelyard.analysis.scaling import OTHER
from steelyard.results import learning
from steelyard.statistics import metrics, survival
from steelyard.statistics.sentences import MOST_NAMED, some_others
from steelyard.statistics.survival import LEAST_TRAININGS
from steelyard.wording.formatted import NO_VALUE
from steelyard.wording.notation import duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analysis.trainings import Line
    from steelyard.results.learning import Unit
    from steelyard.statistics.survival import Median, Share

MEAN = "mean over these"
BETWEEN = (
    "Scores are known after whole epochs only, so a time is known to the interval between two evaluations. A training that did "
    "not reach a value counts as longer than it lasted."
)
OPEN = f" In brackets: the 95 % interval of the median over trainings; with fewer than {LEAST_TRAININGS} it has no upper end."


@dataclass(frozen=True)
class Arrivals:
    """One row of the table of thresholds: for each threshold when half of a contender's trainings arrived, and how many did.

    Where there are several thresholds, the last cell has the same of the mean over them.
    """

    variant: str
    title: str
    cells: list[str]


def note(lines: Sequence[Line]) -> str:
    """Return how exactly these times are known."""
    several = max(len(line.trainings) for line in lines) > 1
    return BETWEEN + (OPEN if several else "")


def answer(lines: Sequence[Line], thresholds: Sequence[float], score: str) -> tuple[str, str]:
    """Return a sentence such as `Training until accuracy 90 %: A 1.41 s to 1.76 s, B up to 2.14 s, C never (medians of 2
    trainings each).`

    It is about the hardest threshold that a training has reached, and says so if none has reached a harder one. Other algorithms
    have a sentence of their own, the second; mistakes that are made on purpose have none.
    """
    same, other = ([line for line in lines if line.otherwise == label] for label in ("", OTHER))
    among = same + other
    if not among:
        return "", ""
    ordered = by_difficulty(score, thresholds)
    reached = [each for each in ordered if any(share(line, [each], "seconds").arrived for line in among)]
    if not reached:
        return f"No training reached {score} {shown(score, ordered[0])}.", ""
    hardest = reached[-1]
    harder = ordered[ordered.index(hardest) + 1 :]
    none = f" None reached {shown(score, harder[0])}." if harder else ""
    if not same:
        return f"With another algorithm, until {score} {shown(score, hardest)}: {_times(other, hardest)}.{none}", ""
    otherwise = f"With another algorithm: {_times(other, hardest)}." if other else ""
    return f"Training until {score} {shown(score, hardest)}: {_times(same, hardest)}.{none}", otherwise


def by_difficulty(score: str, thresholds: Sequence[float]) -> list[float]:
    """Return thresholds of a score from the easiest to the hardest: of a perplexity, the lowest is the hardest."""
    return sorted(thresholds, reverse=not metrics.more_is_better(score))


def _times(lines: Sequence[Line], threshold: float) -> str:
    """Return the time until each reached a threshold, the first ones by name."""
    shares = [(line.name, share(line, [threshold], "seconds")) for line in lines]
    arrived = sorted(((each.median, name) for name, each in shares if each.median), key=lambda each: each[0].latest)
    parts = [f"{name} {_when(median)}" for median, name in arrived[:MOST_NAMED]]
    if rest := arrived[MOST_NAMED:]:
        last, name = rest[-1]
        parts.append(f"{name} {_when(last)}" if len(rest) == 1 else f"{len(rest)} others up to {_seconds(last.latest)}")
    late = [(name, each.arrived) for name, each in shares if each.median is None]
    some, none = ([name for name, number in late if bool(number) is arrived] for arrived in (True, False))
    if some:
        parts.append(f"{_all(some, parts)} in fewer than half of {'its' if len(some) == 1 else 'their'} trainings")
    parts += [f"{_all(none, parts)} never"] if none else []
    runs = {each.runs for _, each in shares}
    several = f" (medians of {runs.pop()} trainings each)" if len(runs) == 1 and runs != {1} else ""
    return f"{', '.join(parts)}{several}"


def _all(names: list[str], before: list[str]) -> str:
    """Return names as a list, or how many they are; `before`: what the sentence has said of others."""
    return some_others(names) if before or len(names) <= MOST_NAMED else f"{len(names)} contenders"


def shown(score: str, value: float) -> str:
    """Return a value of a score as text."""
    return f"{value * 100:.4g} %" if metrics.in_percent(score) else f"{value:.4g}"


def rows(lines: Sequence[Line], thresholds: Sequence[float]) -> list[Arrivals]:
    """Return the rows of the table."""
    return [Arrivals(line.variant, line.title, _cells(line, thresholds)) for line in lines]


def headings(score: str, thresholds: Sequence[float]) -> list[str]:
    """Return the headings of the table's columns; the last is the mean over thresholds, where there are several."""
    return [f"{score} {shown(score, each)}" for each in thresholds] + [MEAN] * (len(thresholds) > 1)


def share(line: Line, thresholds: Sequence[float], unit: Unit) -> Share:
    """Return the share of a contender's trainings that have reached thresholds, as the mean over them."""
    return survival.share_arrived(list(learning.arrivals(line.trainings, thresholds, unit).values()))


def _cells(line: Line, thresholds: Sequence[float]) -> list[str]:
    found = [_cell(share(line, [each], "seconds"), share(line, [each], "epochs")) for each in thresholds]
    return found + ([_cell(share(line, thresholds, "seconds"))] if len(thresholds) > 1 else [])


def _cell(time: Share, epoch: Share | None = None) -> str:
    """Return `1.41 s to 1.76 s, epoch 2 (4 of 5) [1.20 s, -]`, for example; the interval only for several trainings."""
    if time.median is None:
        return f"{time.arrived} of {time.runs}" if time.arrived else f"never (0 of {time.runs})"
    where = f", epoch {epoch.median.latest:g}" if epoch and epoch.median else ""
    ends = ", ".join(_seconds(each) if isfinite(each) else NO_VALUE for each in (time.median.low, time.median.high))
    return f"{_when(time.median)}{where} ({time.arrived} of {time.runs}){f' [{ends}]' if time.runs > 1 else ''}"


def _when(median: Median) -> str:
    """Return the time, as exactly as evaluations show it: `1.41 s to 1.76 s`, or `up to 1.41 s` where the first one showed it."""
    if not median.earliest:
        return f"up to {_seconds(median.latest)}"
    return f"{_seconds(median.earliest)} to {_seconds(median.latest)}"


def _seconds(value: float) -> str:
    return duration(value * 1e9)
