"""Points of many runs -> lines over time, each with the changes of its level and what moved at that time."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from steelyard.analysis import headlines
from steelyard.errors import UserError, nearest
from steelyard.statistics.intervals import logs, mean_and_error
from steelyard.statistics.sentences import listed, percent
from steelyard.statistics.shifts import Course, Shift, course
from steelyard.wording import formatted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import date

    from steelyard.results.points import Point, RunFacts
    from steelyard.statistics.intervals import Ratio

ERROR = 0.05
"""The chance that a history in which nothing has changed shows a change in any of its lines, at any look of a year."""
LEAST_RUNS = 3
MOST_NAMES = 6
"""Packages in a sentence; tables list all."""
CODE = "measuring code"
SECONDS_PER_DAY = 86400.0


@dataclass(frozen=True)
class Change:
    """The level of a line changed between two runs. `moved`: package -> its version before and after."""

    before: RunFacts
    after: RunFacts
    ratio: Ratio
    moved: Mapping[str, tuple[str, str]]

    @property
    def sentence(self) -> str:
        """By how much, between which days and runs, and what moved."""
        days = f"between {_day(self.before)} and {_day(self.after)} ({self.before.name}, {self.after.name})"
        return f"{changed(self.ratio)} {days}: {_moved_text(self.moved)}."


@dataclass(frozen=True)
class Creeping:
    """A line becomes slower or faster from week to week, up to its newest run.

    `since`: the run where that began; it is known to some weeks only. `weekly`: the time after a week over that before. `total`:
    that at the newest run over that at the first one, or at the accepted one. `moved`: what moved between these two runs.
    """

    since: RunFacts
    weekly: Ratio
    total: Ratio
    moved: Mapping[str, tuple[str, str]]

    @property
    def sentence(self) -> str:
        """By how much a week, since when, and what moved in that time."""
        how = "slower" if self.weekly.value > 1 else "faster"
        rates = sorted(100 * abs(each - 1) for each in (self.weekly.low, self.weekly.high))
        rate = f"{100 * abs(self.weekly.value - 1):.2g} % {how} each week [{rates[0]:.2g}, {rates[1]:.2g}]"
        days = f"since about {_day(self.since)} ({self.since.name})"
        return f"creeps: {rate} {days}, {changed(self.total)} altogether; {_moved_text(self.moved)} in this time."


def _moved_text(moved: Mapping[str, tuple[str, str]]) -> str:
    names = [f"{name} {' -> '.join(each or 'none' for each in pair)}" for name, pair in moved.items()]
    if not names:
        return "no package moved"
    more = [f"{len(names) - MOST_NAMES} more"] if len(names) > MOST_NAMES else []
    return listed(names[:MOST_NAMES] + more)


@dataclass(frozen=True)
class Reference:
    """The newest level of a line over an earlier one, of the runs from `first` to `last`, `runs` of them."""

    first: RunFacts
    last: RunFacts
    runs: int
    ratio: Ratio


@dataclass(frozen=True)
class Line:
    """The runs of one case on one input and machine, oldest first, with the changes of its level.

    `reference`: the newest level over the last stable one before it; None where no earlier level is to be compared with.
    `creep`: how the line creeps at its end; None if it does not.
    """

    runs: tuple[RunFacts, ...]
    points: tuple[Point, ...]
    changes: tuple[Change, ...]
    reference: Reference | None
    creep: Creeping | None = None

    @property
    def newest(self) -> Point:
        """The result of the newest run."""
        return self.points[-1]

    @cached_property
    def name(self) -> str:
        """The contender with its group and input."""
        return f"{self.newest.title} in {self.newest.group}, {headlines.SHORT_INPUTS[self.newest.input]}"

    @property
    def sentences(self) -> list[str]:
        """The sentences on each change, oldest first, and on the creep."""
        return [each.sentence for each in self.changes] + ([self.creep.sentence] if self.creep else [])

    @property
    def over_reference(self) -> Ratio | None:
        """The ratio for a nightly check: the newest level over its reference, or the total of a creep; None without either."""
        if self.creep:
            return self.creep.total
        return self.reference.ratio if self.reference else None

    def is_slower_by(self, share: float) -> bool:
        """Report whether the newest runs take longer than those they are compared with, by more than a share, with certainty."""
        return self.over_reference is not None and self.over_reference.low > 1 + share


@dataclass(frozen=True)
class History:
    """All lines, by machine, group, input and contender. `machines`: fingerprint -> description."""

    lines: tuple[Line, ...]
    machines: Mapping[str, str]
    study: str = ""

    @property
    def changed(self) -> list[Line]:
        """The lines whose level has changed, or that creep."""
        return [line for line in self.lines if line.changes or line.creep]

    @property
    def tested(self) -> list[Line]:
        """The lines with enough runs to look for a change; they share the error."""
        return [line for line in self.lines if len(line.runs) >= LEAST_RUNS]


def history(
    runs: Iterable[RunFacts],
    points: Iterable[Point],
    study: str = "",
    since: date | None = None,
    accepted: date | None = None,
) -> History:
    """Return the lines of a store: of one study, or of all, from the runs on or after a day. UserError: there is no such run.

    `accepted`: the level that each line had on this day is normal, and none before it is compared with.
    """
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
    found = [_line(each, known, error, accepted) for each in lines.values()]
    found.sort(key=lambda each: (each.runs[-1].machine, each.newest.group, each.newest.input, each.newest.variant))
    used = {run.machine: formatted.machine(dict(run.host)) for line in found for run in line.runs}
    return History(tuple(found), used, study)


def _line(points: list[Point], known: Mapping[str, RunFacts], error: float, accepted: date | None) -> Line:
    ordered = sorted(points, key=lambda each: (known[each.run].when, each.run))
    runs = tuple(known[each.run] for each in ordered)
    series = [mean_and_error(logs(each.processes_ns))[0] for each in ordered]
    days = [run.when.timestamp() / SECONDS_PER_DAY for run in runs]
    before = sum(run.when.date() <= accepted for run in runs) if accepted else 0
    found = course(series, error, days, before - 1 if before else None) if len(series) >= LEAST_RUNS else Course()
    environment = ordered[-1].environment
    changes = (_change(runs, shift, environment) for shift in found.shifts)
    return Line(runs, tuple(ordered), tuple(changes), _reference(runs, found), _creeping(runs, found, environment))


def _reference(runs: Sequence[RunFacts], found: Course) -> Reference | None:
    if not (known := found.reference):
        return None
    return Reference(runs[known.start], runs[known.end - 1], known.end - known.start, known.ratio)


def _change(runs: Sequence[RunFacts], shift: Shift, environment: str) -> Change:
    before, after = runs[shift.place - 1], runs[shift.place]
    return Change(before, after, shift.ratio, _moved(before, after, environment))


def _creeping(runs: Sequence[RunFacts], found: Course, environment: str) -> Creeping | None:
    if not found.creep:
        return None
    since = runs[found.creep.place]
    return Creeping(since, found.creep.weekly, found.creep.total, _moved(since, runs[-1], environment))


def _moved(before: RunFacts, after: RunFacts, environment: str) -> dict[str, tuple[str, str]]:
    """Return the packages, and the measuring code, that differ between two runs, with both versions."""
    old, new = ({**run.packages(environment), CODE: run.code} for run in (before, after))
    return {
        name: (old.get(name, ""), new.get(name, ""))
        for name in sorted(old.keys() | new.keys(), key=str.lower)
        if old.get(name) != new.get(name)
    }


def changed(ratio: Ratio) -> str:
    """Return `10 % slower [1.07, 1.13]`."""
    how = "slower" if ratio.value > 1 else "faster"
    return f"{percent(abs(ratio.value - 1))} {how} {formatted.of_ratio(ratio).interval}"


def answer(found: History) -> str:
    """Return what the history says, in one sentence."""
    enough, changed = found.tested, found.changed
    if not enough:
        return f"No line has {LEAST_RUNS} runs yet, so no change can be told from noise."
    if not changed:
        return f"No change of level in {_count(len(enough), 'line')}."
    stepped, creeping = ([line for line in changed if each(line)] for each in (_has_steps, _creeps))
    parts = [f"The level has changed in {len(stepped)} of {_count(len(enough), 'line')}."] if stepped else []
    parts += (
        [f"{_count(len(creeping), 'line')} of {len(enough)} {'creeps' if len(creeping) == 1 else 'creep'}."]
        if creeping
        else []
    )
    return " ".join(parts)


def _has_steps(line: Line) -> bool:
    return bool(line.changes)


def _creeps(line: Line) -> bool:
    return bool(line.creep)


def slower(found: History, share: float) -> list[str]:
    """Return a sentence for each line whose newest runs are slower than those they are compared with by more than a share."""
    return [
        f"{line.name}: {_slower_than(line)}, on {found.machines[line.runs[-1].machine]}."
        for line in found.lines
        if line.is_slower_by(share)
    ]


def _slower_than(line: Line) -> str:
    if line.creep:
        return line.creep.sentence.removesuffix(".")
    if not line.reference:
        return ""
    known = line.reference
    days = f"from {_day(known.first)} to {_day(known.last)} ({known.first.name} to {known.last.name})"
    return f"{changed(known.ratio)} than its last stable level, {known.runs} runs {days}"


def _day(run: RunFacts) -> str:
    return run.when.date().isoformat()


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
