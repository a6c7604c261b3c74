"""Points of many runs -> lines over time, each with the changes of its level and what moved at that time."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from steelyard.errors import UserError, nearest
from steelyard.report import formatting
from steelyard.statistics.intervals import logs, mean_and_error
from steelyard.statistics.sentences import listed, percent
from steelyard.statistics.shifts import Course, Shift, course

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import date

    from steelyard.results.points import Point, RunFacts
    from steelyard.statistics.intervals import Ratio

ERROR = 0.05
"""The chance that a history in which nothing has changed shows a change in any of its lines."""
LEAST_RUNS = 3
MOST_NAMES = 6
"""Packages in a sentence; tables list all."""
CODE = "measuring code"


@dataclass(frozen=True)
class Change:
    """The level of a line changed between two runs. `moved`: package -> its version before and after."""

    before: RunFacts
    after: RunFacts
    ratio: Ratio
    moved: Mapping[str, tuple[str, str]]
    runs_since: int

    @property
    def sentence(self) -> str:
        """By how much, between which days and runs, and what moved."""
        days = f"between {_day(self.before)} and {_day(self.after)} ({self.before.name}, {self.after.name})"
        once = " So far one run shows it." if self.runs_since == 1 else ""
        return f"{changed(self.ratio)} {days}: {self._what_moved}.{once}"

    @property
    def _what_moved(self) -> str:
        names = [f"{name} {' -> '.join(each or 'none' for each in pair)}" for name, pair in self.moved.items()]
        if not names:
            return "no package moved"
        more = [f"{len(names) - MOST_NAMES} more"] if len(names) > MOST_NAMES else []
        return listed(names[:MOST_NAMES] + more)


@dataclass(frozen=True)
class Line:
    """The runs of one case on one input and machine, oldest first, with the changes of its level.

    `against_best`: the newest level over the best one before it; None if the level never changed.
    """

    runs: tuple[RunFacts, ...]
    points: tuple[Point, ...]
    changes: tuple[Change, ...]
    against_best: Ratio | None

    @property
    def newest(self) -> Point:
        """What the newest run measured."""
        return self.points[-1]

    @cached_property
    def name(self) -> str:
        """The contender with its group and input."""
        return f"{self.newest.title} in {self.newest.group}, {formatting.SHORT_INPUTS[self.newest.input]}"

    def is_slower_by(self, share: float) -> bool:
        """Report whether the newest level takes longer than the best one before it, by more than a share, with certainty."""
        return self.against_best is not None and self.against_best.low > 1 + share


@dataclass(frozen=True)
class History:
    """All lines, by machine, group, input and contender. `machines`: fingerprint -> description."""

    lines: tuple[Line, ...]
    machines: Mapping[str, str]
    study: str = ""

    @property
    def changed(self) -> list[Line]:
        """The lines whose level has changed."""
        return [line for line in self.lines if line.changes]


def history(runs: Iterable[RunFacts], points: Iterable[Point], study: str = "", since: date | None = None) -> History:
    """Return the lines of a store: of one study, or of all, from the runs on or after a day. UserError: there is no such run."""
    everything = list(runs)
    known = {run.run: run for run in everything if not study or run.study == study}
    if study and not known:
        names = sorted({run.study for run in everything})
        raise UserError(f"No run of the study '{study}' is stored.{nearest(study, names)}")
    if since:
        known = {name: run for name, run in known.items() if run.when.date() >= since}
    lines: dict[str, list[Point]] = defaultdict(list)
    for point in points:
        if point.run in known:
            lines[point.line].append(point)
    error = ERROR / max(1, sum(len(each) >= LEAST_RUNS for each in lines.values()))
    found = [_line(each, known, error) for each in lines.values()]
    found.sort(key=lambda each: (each.runs[-1].machine, each.newest.group, each.newest.input, each.newest.variant))
    used = {run.machine: formatting.machine(dict(run.host)) for line in found for run in line.runs}
    return History(tuple(found), used, study)


def _line(points: list[Point], known: Mapping[str, RunFacts], error: float) -> Line:
    ordered = sorted(points, key=lambda each: (known[each.run].when, each.run))
    runs = tuple(known[each.run] for each in ordered)
    series = [mean_and_error(logs(each.processes_ns))[0] for each in ordered]
    found = course(series, error) if len(series) >= LEAST_RUNS else Course()
    places = [each.place for each in found.shifts] + [len(runs)]
    environment = ordered[-1].environment
    changes = (_change(runs, shift, places[number], environment) for number, shift in enumerate(found.shifts, 1))
    return Line(runs, tuple(ordered), tuple(changes), found.against_best)


def _change(runs: Sequence[RunFacts], shift: Shift, end: int, environment: str) -> Change:
    before, after = runs[shift.place - 1], runs[shift.place]
    old, new = ({**run.packages(environment), CODE: run.code} for run in (before, after))
    moved = {
        name: (old.get(name, ""), new.get(name, ""))
        for name in sorted(old.keys() | new.keys(), key=str.lower)
        if old.get(name) != new.get(name)
    }
    return Change(before, after, shift.ratio, moved, end - shift.place)


def changed(ratio: Ratio) -> str:
    """Return `10 % slower [1.07, 1.13]`."""
    how = "slower" if ratio.value > 1 else "faster"
    return f"{percent(abs(ratio.value - 1))} {how} {formatting.of_ratio(ratio).interval}"


def answer(found: History) -> str:
    """Return what the history says, in one sentence."""
    enough = [line for line in found.lines if len(line.runs) >= LEAST_RUNS]
    if not enough:
        return f"No line has {LEAST_RUNS} runs yet, so no change can be told from noise."
    changed = found.changed
    if not changed:
        return f"No change of level in {_count(len(enough), 'line')}."
    return f"The level has changed in {len(changed)} of {_count(len(enough), 'line')}."


def slower(found: History, share: float) -> list[str]:
    """Return a sentence for each line whose newest level is slower than the best one before it by more than a share."""
    return [
        f"{line.name}: {changed(line.against_best)} than its best level before, on {found.machines[line.runs[-1].machine]}."
        for line in found.lines
        if line.against_best and line.is_slower_by(share)
    ]


def _day(run: RunFacts) -> str:
    return run.when.date().isoformat()


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
