"""Many runs, of several people and machines: their workloads side by side, and which of them may be compared."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from steelyard.analysis import formatting, headlines, same_settings, summaries
from steelyard.analysis.same_settings import Unlike
from steelyard.results import record
from steelyard.statistics import agreement
from steelyard.wording.formatted import NO_VALUE, Formatted
from steelyard_worker.case import INFERENCE, differences

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from steelyard.analysis.model import Comparison, Contender, View
    from steelyard.plan.run_plan import Group
    from steelyard.results.facts import HostFacts
    from steelyard.statistics.agreement import MachineOrder
    from steelyard_worker.case import Case

VERSIONS = ("version",)
"""The field that may differ between rows that are compared: a gallery shows versions beside each other."""
OWN = ("framework", "version", "inputs", "settings.mode", "optimizer.form", "optimizer.correction")
"""Fields of a case in which frameworks differ by themselves."""
KNOBS = "settings.knobs."
METHOD = "method of measuring"
NOTHING_SHARED = Unlike("no contender in common", "", "")


class Size(NamedTuple):
    """What rows that stand side by side have in common."""

    preset: str
    task: str
    batch: int


@dataclass(frozen=True)
class Result:
    """A contender in one run. `build`: version, mode and settings; `ratio`: to the best of the same run, or why there is none.

    `certificate`: certified, rejected or none.
    """

    title: str
    build: str
    ratio: Formatted
    certificate: str


@dataclass(frozen=True)
class Entry:
    """One workload of one run: a row of a gallery.

    `machine`: its fingerprint. `input`: what the verdict is about; empty where nothing was measured. `headline`, `clauses`: the
    verdict. `results`: by variant. `order`: that of the contenders, None without a ranking. `cases`: by variant; they and
    `group` say what was measured and how.
    """

    run: str
    created: str
    state: str
    machine: str
    host: HostFacts
    steelyard: str
    method: int
    title: str
    parameters: int
    input: str
    headline: str
    clauses: tuple[str, ...]
    results: dict[str, Result]
    order: MachineOrder | None
    cases: dict[str, Case]
    group: Group

    @property
    def when(self) -> datetime:
        """The start of the run."""
        return record.moment(self.created)

    @property
    def case(self) -> Case:
        """The first case, for what all cases have in common."""
        return next(iter(self.cases.values()))

    @cached_property
    def varying(self) -> frozenset[str]:
        """The names of the fields in which its cases differ from each other."""
        return frozenset(name for each in self.cases.values() for name in differences(self.case, each))

    @property
    def size(self) -> Size:
        """Under which heading the row stands."""
        return Size(self.case.preset, self.case.task, self.case.batch)

    @property
    def not_certified(self) -> list[Result]:
        """The contenders without a certificate."""
        return [each for each in self.results.values() if each.certificate != "certified"]


@dataclass(frozen=True)
class Together:
    """Rows that may be compared, the newest first. `titles`: variant -> title of every contender that one of them has.

    `settings`: (name, value) pairs that all rows have in common. `unlike`: in what they differ from the first rows of their size;
    empty for these. `sentence`: on how many machines the order is the same; empty for one machine.
    """

    entries: tuple[Entry, ...]
    titles: dict[str, str]
    settings: tuple[tuple[str, str], ...]
    unlike: tuple[Unlike, ...]
    sentence: str


@dataclass(frozen=True)
class Workload:
    """A network with all rows of it, by size. Only the rows of one `Together` may be compared."""

    name: str
    title: str
    sizes: dict[Size, tuple[Together, ...]]


@dataclass(frozen=True)
class Gallery:
    """All runs, the newest first, and their workloads by name."""

    runs: tuple[str, ...]
    machines: int
    workloads: tuple[Workload, ...]


def entries(view: View) -> list[Entry]:
    """Return a row for each workload of a run."""
    groups = {group.name: group for group in view.record.plan.groups}
    return [_entry(view, each, groups[each.group]) for each in view.comparisons if each.contenders]


def gallery(rows: Iterable[Entry]) -> Gallery:
    """Put the rows of many runs side by side."""
    newest = sorted(rows, key=lambda each: (each.when, each.run), reverse=True)
    networks = defaultdict[str, list[Entry]](list)
    for each in newest:
        networks[each.case.workload].append(each)
    return Gallery(
        tuple(dict.fromkeys(each.run for each in newest)),
        len({each.machine for each in newest}),
        tuple(_workload(name, networks[name]) for name in sorted(networks)),
    )


def unlike(first: Entry, second: Entry) -> list[Unlike]:
    """Return why two rows may not be compared: other methods, settings, schedules or contenders.

    Versions of frameworks may differ, and a row may have contenders that the other lacks.
    """
    found = [] if first.method == second.method else [Unlike(METHOD, str(first.method), str(second.method))]
    if first.input != second.input:
        found.append(Unlike("input", _input(first), _input(second)))
    found += same_settings.of_schedules(first.group, second.group)
    found += _shared_settings(first, second)
    if first.cases.keys().isdisjoint(second.cases):
        found.append(NOTHING_SHARED)
    for variant, case in first.cases.items():
        if other := second.cases.get(variant):
            found += same_settings.of_cases(case, other, VERSIONS)
    by_name = dict[str, Unlike]()
    for each in found:
        by_name.setdefault(each.name, each)
    return list(by_name.values())


def _entry(view: View, comparison: Comparison, group: Group) -> Entry:
    known, source = view.record, comparison.primary
    ranking = comparison.rankings.get(source)
    titles = {each.case.id: each.title for each in comparison.contenders}
    return Entry(
        view.name,
        known.created,
        known.state,
        known.machine,
        known.host,
        known.steelyard,
        known.method,
        comparison.title,
        comparison.parameters,
        source if ranking else "",
        headlines.headline(comparison, source) if ranking else summaries.NOTHING,
        tuple(summaries.clauses(comparison, source)) if ranking else (),
        {each.variant: _result(comparison, each, source) for each in comparison.contenders},
        agreement.machine_order(ranking, titles) if ranking else None,
        {each.variant: each.case for each in comparison.contenders},
        group,
    )


def _result(comparison: Comparison, contender: Contender, source: str) -> Result:
    if source in contender.standings:
        ratio = formatting.ratio(comparison, contender, source)
    else:
        ratio = Formatted("failed" if contender.failure else NO_VALUE)
    return Result(contender.name, formatting.build(contender), ratio, contender.proof.state)


def _workload(name: str, rows: Sequence[Entry]) -> Workload:
    sizes = defaultdict[Size, list[Entry]](list)
    for each in rows:
        sizes[each.size].append(each)
    return Workload(name, rows[0].title, {size: _apart(sizes[size]) for size in sorted(sizes)})


def _apart(rows: Sequence[Entry]) -> tuple[Together, ...]:
    """Return rows in sets, in each of which any two may be compared: the newest method first, then the largest set."""
    sets: list[list[Entry]] = []
    for row in rows:
        fitting = (each for each in sets if not any(unlike(row, other) for other in each))
        place = next(fitting, None)
        if place is None:
            sets.append([row])
        else:
            place.append(row)
    sets.sort(key=lambda each: (-each[0].method, -len(each)))
    return tuple(_together(each, sets[0]) for each in sets)


def _together(rows: list[Entry], first: list[Entry]) -> Together:
    found = () if rows is first else next(filter(None, (tuple(unlike(each, rows[0])) for each in first)), ())
    titles = {variant: result.title for each in rows for variant, result in each.results.items()}
    return Together(tuple(rows), titles, tuple(_settings(rows[0])), found, _sentence(rows))


def _sentence(rows: Sequence[Entry]) -> str:
    """Return on how many machines the order is the same. Of several runs of a machine, the newest counts."""
    newest = {each.machine: each for each in reversed(rows) if each.order}
    orders = {_label(each): each.order for each in newest.values() if each.order}
    found = agreement.agreement(orders)
    return agreement.sentence(found) if found else ""


def _label(row: Entry) -> str:
    return f"{row.host.get('cpu_model') or 'machine'} ({row.machine[:8]})"


def _settings(row: Entry) -> Iterator[tuple[str, str]]:
    """Yield what a person asks first about how the rows were measured."""
    case = row.case
    yield "device", case.settings.device
    yield "threads", str(case.settings.threads or "each framework's default")
    yield "precision", case.settings.precision
    if case.task != INFERENCE:
        yield "optimizer", case.optimizer.name
    yield "data", str(case.data.get("name") or "random batches")
    yield "input", _input(row)
    yield "seed", str(case.seed)
    yield METHOD, str(row.method)


def _input(row: Entry) -> str:
    return headlines.SHORT_INPUTS.get(row.input, "nothing was measured")


def _shared_settings(first: Entry, second: Entry) -> list[Unlike]:
    """Return the differences in what all contenders of one row, and all of the other, have in common."""
    if first.case.id == second.case.id:
        return []
    knobs = {name for name in differences(first.case, second.case) if name.startswith(KNOBS)}
    return same_settings.of_cases(first.case, second.case, {*OWN, *knobs, *first.varying, *second.varying})
