"""The documents that a study redoes, as page and terminal show them: published beside measured, with a judgement."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from steelyard.profiles import quantities as profiled
from steelyard.report import comparing, formatting, graphs, shares, yardstick
from steelyard.report.beside import JUDGEMENTS, MeasuredArm, MeasuredGroup, beside, count
from steelyard.report.formatting import Formatted
from steelyard.results.quantities import NODES, QUANTITIES
from steelyard.statistics.intervals import Level, Ratio, ratio_interval
from steelyard.statistics.sentences import listed
from steelyard_worker.strategy import name_of, parts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from steelyard.profiles.quantities import ProfileQuantity
    from steelyard.report.beside import Row
    from steelyard.report.model import Comparison, Contender, Source, View
    from steelyard.results.record import Group, Published, PublishedTable
    from steelyard.statistics.claims import Claim

QUICK = "Q"
"""The size of a study for tests and demonstration."""
MOST_NAMED = 4
AGAINST = " against "
"""Between two values that are compared."""
MEANINGS = {
    "same size": (
        "the whole measured interval is near the published ratio: within 25 %, and with at least half and at most twice of its "
        "difference. Of a bound such as “up to 5 %”, the whole interval lies within it"
    ),
    "same order": "the same one is better, by another factor or by one that the measurement does not tell",
    "compatible, not precise": "the interval holds ratios near the published one, others, and equality",
    "other size": (
        "no ratio in the interval is near the published one, and it holds equality or the document does not say who is better"
    ),
    "opposite order": "the other one is better",
    "open": "the measurement shows none of these",
}
# In "3 of the same size".
IN_A_COUNT = {
    "same size": "of the same size", "same order": "in the same order", "other size": "of another size",
    "opposite order": "in the opposite order", "compatible, not precise": "compatible but not precise",
}  # fmt: skip
AT_QUICK_SIZE = "At the quick size of the study: "
DISPATCH = (
    "This is the quick size of the study. In networks this small most of the time goes into dispatching operations, not into "
    "their arithmetic, so the ratios say little about the published sizes."
)
HEADINGS = ("first over second", "published", "measured here", "judgement", "values here")
FIRST_OF_LEVELS = "contender"
READING = (
    "A ratio above 1x means that the first of the two is faster, or better in the quantity of its table. Seconds of other "
    "machines are not compared with those of this one; ratios and orders are."
)
LEVELS = (
    " Shares and counts have no second side: the published value is compared with the interval of the same value here, and is of "
    "the same size where the whole interval is within 10 % of it."
)
NO_PROFILE = "It was not profiled."
ONE_PROFILE = "They have fewer than two profiled processes each, so there is no interval."


@dataclass(frozen=True)
class Table:
    """One entry of a document with its rows. `quantity`: what was measured, in running text."""

    published: PublishedTable
    quantity: str
    rows: tuple[Row, ...]

    @property
    def source(self) -> str:
        """Where the entry stands."""
        return f"{self.published.cite}, {self.published.where}, {lines(self.published.lines)}"

    @property
    def anchor(self) -> str:
        """The name of the place on the page that describes the source."""
        return "source-" + re.sub(r"\W+", "-", self.published.entry)

    @property
    def notes(self) -> list[str]:
        """What a reader has to know of the entry."""
        known = self.published
        kind = "values" if self.has_levels else "ratios"
        computed = f"The document does not print these {kind}. They are computed from its values: {known.formula}."
        checked = f"Checked against the document's own numbers: {known.checked}" if known.checked else ""
        return [note for note in (known.says, computed if known.derived else "", known.note, checked) if note]

    @property
    def cells(self) -> list[Cells]:
        """The rows as text."""
        return [_cells(row, self.published) for row in self.rows]

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings of the columns."""
        return (FIRST_OF_LEVELS, *HEADINGS[1:]) if self.has_levels else HEADINGS

    @property
    def has_levels(self) -> bool:
        """Whether values are judged themselves, and not ratios of two."""
        return any(row.statement.second is None for row in self.rows)


@dataclass(frozen=True)
class Cells:
    """The texts of one row."""

    sides: str
    network: str
    said: str
    printed: str
    ratio: Formatted
    judgement: str
    values: str
    setting: str


@dataclass(frozen=True)
class Section:
    """All that the page of a study shows of documents; `answer` is empty where the study has none."""

    answer: str
    clauses: list[str]
    dispatch: str
    published: Published
    tables: tuple[Table, ...]
    reading: str = READING
    meanings: tuple[tuple[str, str], ...] = tuple(MEANINGS.items())

    @property
    def is_judged(self) -> bool:
        """Whether anything that was published could be held against the run."""
        return any(row.judgement for table in self.tables for row in table.rows)


def section(view: View) -> Section:
    """Return what the page of a run shows of documents."""
    published, found = view.record.plan.published, view.published
    has_levels = any(table.has_levels for table in found)
    said, quick = answer(found), published.size == QUICK
    section = Section(
        said, [*_profiled(view), *_clauses(found)], DISPATCH if quick else "", published, found,
        READING + LEVELS if has_levels else READING,
    )  # fmt: skip
    if quick and section.is_judged:
        section = replace(section, answer=AT_QUICK_SIZE + said[:1].lower() + said[1:])
    return section


def _profiled(view: View) -> list[str]:
    """Return what the profiles say of each group, where the study is held against any of it."""
    if not any(table.published.quantity in profiled.QUANTITIES for table in view.published):
        return []
    sentences = [sentence for each in view.comparisons if (sentence := shares.sentence(each))]
    counts = {len(one.profiles) for each in view.comparisons for one in each.contenders if one.profiles}
    return [*sentences, shares.ALONE.format(view.name)] if counts == {1} else sentences


def tables(source: Source, comparisons: Sequence[Comparison]) -> tuple[Table, ...]:
    """Return what a run's study is held against, beside what the run measured; empty for a study without documents.

    `comparisons`: those of the run, with the profiles of their contenders.
    """
    plan = source.plan
    names = {group.name for group in plan.groups}
    absent = {each.group.partition(",")[0]: each.reason for each in plan.skipped if each.group not in names}
    quantities = {
        each.quantity: QUANTITIES[each.quantity] for each in plan.published.tables if each.quantity in QUANTITIES
    }
    groups = {
        name: [measured(comparing.compare(replace(source, quantity=quantity), group), group) for group in plan.groups]
        for name, quantity in quantities.items()
    }
    profiles = {
        each.quantity: profiled.QUANTITIES[each.quantity]
        for each in plan.published.tables
        if each.quantity in profiled.QUANTITIES
    }
    for name, quantity in profiles.items():
        groups[name] = [profiled_group(each, plan.group(each.group), quantity) for each in comparisons]
    if any(each.quantity == NODES for each in plan.published.tables):
        groups[NODES] = [graphs.beside(comparing.compare(source, group), group) for group in plan.groups]
    labels = {name: each.label for name, each in (quantities | profiles).items()}
    return tuple(
        Table(
            each, labels.get(each.quantity, each.quantity),
            beside(each, groups.get(each.quantity, []), absent),
        )
        for each in plan.published.tables
    )  # fmt: skip


def measured(comparison: Comparison, group: Group) -> MeasuredGroup:
    """Return what was measured of a group, for the statements of documents, which mean nothing that is wrong on purpose."""
    ranking = comparison.rankings.get(comparison.primary)

    def ratio(a: str, b: str) -> Ratio | None:
        verdict = ranking.between(a, b) if ranking else None
        if not verdict or verdict.rounds < 2:
            return yardstick.ratio(comparison, a, b)
        return Ratio(1 / verdict.ratio, 1 / verdict.high, 1 / verdict.low, verdict.rounds)

    return _group(comparison, group, [_arm(comparison, each) for each in _meant(comparison)], ratio)


def profiled_group(comparison: Comparison, group: Group, quantity: ProfileQuantity) -> MeasuredGroup:
    """Return what the profiles of a group say in one quantity."""
    arms = [_profiled_arm(each, quantity) for each in _meant(comparison)]
    valid = {arm.key for arm in arms if not arm.reason}
    by_id = {
        each.case.id: shares.by_process(quantity, each) if each.case.id in valid else {}
        for each in comparison.contenders
    }

    def ratio(a: str, b: str) -> Ratio | None:
        if not (all(by_id[a].values()) and all(by_id[b].values())):
            return None  # a ratio to 0
        return ratio_interval(by_id[a], by_id[b]) if quantity.more_is_better else ratio_interval(by_id[b], by_id[a])

    return replace(_group(comparison, group, arms, ratio), no_ratio=ONE_PROFILE)


def _meant(comparison: Comparison) -> list[Contender]:
    return [each for each in comparison.contenders if each.proof.on_purpose != "wrong on purpose"]


def _group(
    comparison: Comparison, group: Group, arms: list[MeasuredArm], ratio: Callable[[str, str], Ratio | None]
) -> MeasuredGroup:
    first = group.variants[0].case
    return MeasuredGroup(
        name=group.name, cell=group.stands_for or f"{first.workload}:{first.preset}", task=first.task, batch=first.batch,
        optimizer=first.optimizer.name, arms=arms, ratio=ratio,
        missing={each.environment.partition("@")[0]: each.reason for each in comparison.skipped},
    )  # fmt: skip


def answer(found: Sequence[Table]) -> str:
    """Return how many published comparisons were redone, and with what result; empty for a study without documents."""
    judged = count(row for table in found for row in table.rows)
    total = sum(judged.values())
    if not any(table.published.statements for table in found):
        return "The documents print no number that this run could be compared with." if found else ""
    if not total:
        return "Nothing that was published could be held against this run."
    parts = [f"{number} {IN_A_COUNT.get(judgement, judgement)}" for judgement, number in judged.items() if number]
    return f"Of {total} published {'comparison' if total == 1 else 'comparisons'} measured here: {listed(parts)}."


def _clauses(found: Sequence[Table]) -> list[str]:
    """Return a sentence for each judgement that occurs, with what it is about."""
    rows = [(table.published.quantity, row) for table in found for row in table.rows]
    clauses = []
    for judgement in JUDGEMENTS:
        about = list(dict.fromkeys(_about(*each) for each in rows if each[1].judgement == judgement))
        if about:
            more = f" and {len(about) - MOST_NAMED} more" if len(about) > MOST_NAMED else ""
            clauses.append(f"{judgement.capitalize()}: {'; '.join(about[:MOST_NAMED])}{more}.")
    return clauses


def _about(quantity: str, row: Row) -> str:
    sides = " over ".join(row.sides)
    return f"{f'{quantity} of {sides}' if quantity in profiled.QUANTITIES else sides} on {row.group}"


def lines(numbers: Sequence[int]) -> str:
    """Return `line 5` or `lines 5-9`."""
    ends = list(dict.fromkeys(numbers))
    return f"line{'s' if len(ends) > 1 else ''} {'-'.join(map(str, ends))}"


def said(claim: Claim) -> str:
    """Return what a document says of a ratio, such as `1.198x`, `up to 1.08x` or `faster`."""
    if claim.low is None:
        return "better, no number"
    if claim.high is None:
        return f"over {_factor(claim.low)}"
    if not claim.ordered:
        return f"within {_factor(claim.high)} either way"
    if claim.low == claim.high:
        return _factor(claim.low)
    return f"up to {_factor(claim.high)}" if claim.low == 1 else f"{_factor(claim.low)} to {_factor(claim.high)}"


def ratio(row: Row, quantity: str = "") -> Formatted:
    """Return the measured ratio, or the measured value of a quantity, with its interval, or why there is none."""
    if isinstance(row.measured, Level):
        return shares.formatted(profiled.QUANTITIES[quantity], row.measured)
    return formatting.of_ratio(row.measured) if row.measured else Formatted(formatting.NO_VALUE, row.reason)


def setting(row: Row) -> str:
    """Return where a row was measured, with its batch and the document's where they differ."""
    if not row.group:
        return ""
    there = row.statement.batch
    if not row.batch:  # of several
        return row.group
    return f"{row.group}, batch {row.batch}" + (f" (published: {there})" if there and there != row.batch else "")


def _cells(row: Row, published: PublishedTable) -> Cells:
    statement, derived = row.statement, published.derived
    # The text of some documents is LaTeX.
    figure = statement.printed.replace(r"\times", "×")
    # A ratio that was computed needs no second text, the two values that it is computed from do.
    kind = ("computed" if AGAINST in figure else "") if derived else "printed"
    printed = f"{kind}: {figure}" if kind and figure else ""
    if statement.second is None:
        said_here, printed = figure, statement.remark
    else:
        said_here, printed = said(statement.said), "; ".join(filter(None, (printed, statement.remark)))
    return Cells(
        sides=" over ".join(row.sides),
        network=" ".join(filter(None, (statement.network, statement.cell or row.group))),
        said=said_here, printed=printed, ratio=ratio(row, published.quantity),
        judgement=row.judgement or "", values=_values(row),
        setting=setting(row),
    )  # fmt: skip


def _values(row: Row) -> str:
    """Return the measured means of both sides; of one alone, whose mean has a column of its own, the number of processes."""
    if isinstance(row.measured, Level):
        return f"{row.measured.processes} profiled process{'es' if row.measured.processes > 1 else ''}"
    return AGAINST.join(filter(None, row.values)) or formatting.NO_VALUE


def _factor(value: float) -> str:
    text = f"{value:.3f}"
    return f"{text.removesuffix('0')}x"


def _arm(comparison: Comparison, contender: Contender) -> MeasuredArm:
    standing = contender.standings.get(comparison.primary)
    value = formatting.standing(comparison, contender, comparison.primary).value if standing else ""
    return replace(_plain_arm(contender), value=value, reason=_reason(contender, bool(standing)))


def _plain_arm(contender: Contender) -> MeasuredArm:
    case = contender.case
    settings = {name: str(value) for name, value in case.settings.knobs.items()} | {
        "workers": str(case.loader_workers), "strategy": name_of(case.strategy), "devices": str(parts_of(case.strategy)),
    }  # fmt: skip
    return MeasuredArm(case.id, contender.title, case.framework, case.settings.mode, settings)


def _profiled_arm(contender: Contender, quantity: ProfileQuantity) -> MeasuredArm:
    """Return a contender with its mean in a quantity of profiles. Without a certificate it is held against nothing."""
    found = shares.level(quantity, contender)
    reason = _reason(contender, has_value=True) or ("" if found else NO_PROFILE)
    text = str(shares.formatted(quantity, found)) if found else ""
    return replace(_plain_arm(contender), value=text, reason=reason, level=None if reason else found)


def _reason(contender: Contender, has_value: bool) -> str:
    if contender.proof.state != "certified" and not yardstick.is_one(contender):
        return f"{contender.title} is not certified."
    if contender.above_peak:
        return f"{contender.title} is faster than possible."
    if contender.failure:
        return f"{contender.title} failed."
    if not has_value:
        return f"{contender.title} was not measured in this quantity."
    return ""
