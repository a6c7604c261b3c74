"""The documents that a study redoes, for page and terminal: published and measured values, with a judgement."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from steelyard.analysis import formatting, measured_groups, shares
from steelyard.analysis.formatting import Formatted
from steelyard.analysis.matching import JUDGEMENTS, beside, count
from steelyard.profiles import quantities as profiled
from steelyard.statistics.conditions import NOT_KEPT, Conditions, common
from steelyard.statistics.intervals import Level
from steelyard.statistics.scores import LEAST_SEEDS
from steelyard.statistics.scores import QUANTITIES as SCORES
from steelyard.statistics.sentences import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from steelyard.analysis.matching import Row
    from steelyard.analysis.model import Comparison, Source, View
    from steelyard.published.gathering import Published, PublishedTable
    from steelyard.results.record import DocumentSource
    from steelyard.statistics.claims import Claim

QUICK = "Q"
"""The size of a study for tests and demonstrations."""
MOST_NAMED = 4
AGAINST = " against "
"""The separator of two values that are compared."""
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
# The rows of one claim contradict each other.
DIFFERENT = "different from row to row"
SMALL_SIZES = ("C", "Q")
RULE = "A word is given only where kind of device, batch, precision, data and lengths are the document's."
SMALL = (
    " This size of the study ({size}) has smaller batches, other data or shorter lengths than the documents, so that a small "
    "machine can measure it: where it does, or where the kind of device differs, the measured ratio stands without a word."
)
OTHERWISE = " Where they differ, the measured ratio stands without a word, and the row says what differs."
AT_QUICK_SIZE = "At the quick size of the study: "
DISPATCH = (
    "This is the quick size of the study. In networks this small most of the time goes into dispatching operations, not into "
    "their arithmetic, so the ratios say little about the published sizes."
)
HEADINGS = ("first over second", "published", "measured here", "judgement", "values here")
FIRST_OF_LEVELS = "contender"
SETTINGS = ("network", "device", "stated", "assumed", "not stated")
READING = (
    "A ratio above 1x means that the first of the two is faster, or better in the quantity of its table. Seconds of other "
    "machines are not compared with those of this one; ratios and orders are."
)
LEVELS = (
    " Shares and counts have no second side: the published value is compared with the interval of the same value here, and is of "
    "the same size where the whole interval is within 10 % of it."
)


@dataclass(frozen=True)
class Table:
    """One entry of a document with its rows. `quantity`: what was measured, in running text."""

    published: PublishedTable
    quantity: str
    rows: tuple[Row, ...]

    @property
    def source(self) -> str:
        """Document and place of the entry."""
        return f"{self.published.cite}, {self.published.where}, {lines(self.published.lines)}"

    @property
    def anchor(self) -> str:
        """The name of the place on the page that describes the source."""
        return "source-" + re.sub(r"\W+", "-", self.published.entry)

    @property
    def notes(self) -> list[str]:
        """Notes that a reader needs for the entry."""
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
        """Whether single values are judged, and not ratios of two."""
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
    settings: str
    differences: str
    is_measured: bool


@dataclass(frozen=True)
class Settings:
    """The settings that a document states for its networks: headings, and one row for every network. Shown folded."""

    title: str
    versions: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Section:
    """The section on documents of a study's page; `answer` is empty if the study has none.

    `settings`: one table for every document, and one for this run. `names_differences`: whether rows name the differences.
    """

    answer: str
    clauses: list[str]
    dispatch: str
    published: Published
    tables: tuple[Table, ...]
    reading: str = READING
    what_differs: str = ""
    settings: tuple[Settings, ...] = ()
    names_differences: bool = True
    meanings: tuple[tuple[str, str], ...] = tuple(MEANINGS.items())

    @property
    def is_judged(self) -> bool:
        """Whether any published value could be compared with the run."""
        return any(row.judgement for table in self.tables for row in table.rows)


def section(view: View) -> Section:
    """Return the section on documents of a run's page."""
    published, found = view.record.plan.published, view.published
    has_levels = any(table.has_levels for table in found)
    said, quick = answer(found), published.size == QUICK
    section = Section(
        answer=said,
        clauses=[*_profiled(view), *_clauses(found)],
        dispatch=DISPATCH if quick else "",
        published=published,
        tables=found,
        reading=READING + LEVELS if has_levels else READING,
        what_differs=_what_differs(published.size, found),
        settings=(*(_settings(each) for each in published.sources if each.conditions), *_settings_here(found)),
        names_differences=published.size not in SMALL_SIZES,
    )
    if quick and section.is_judged:
        section = replace(section, answer=AT_QUICK_SIZE + said[:1].lower() + said[1:])
    return section


def _what_differs(size: str, found: Sequence[Table]) -> str:
    """Return one sentence on why rows have a ratio and no judgement; empty if there is no such row."""
    if not any(row.measured and row.differences for table in found for row in table.rows):
        return ""
    return RULE + (SMALL.format(size=size) if size in SMALL_SIZES else OTHERWISE)


def _settings(source: DocumentSource) -> Settings:
    rows = tuple(_settings_row(each) for each in source.conditions)
    return Settings(f"Settings of {source.cite}", _versions(source.conditions), SETTINGS, rows)


def _versions(several: Iterable[Conditions]) -> str:
    return "; ".join(dict.fromkeys(each.versions for each in several if each.versions)) or "not stated"


def _settings_here(found: Sequence[Table]) -> list[Settings]:
    """Return the settings of this run's groups that are compared with documents; empty if there are none."""
    groups = {row.group: _as_text(row.here) for table in found for row in table.rows if row.here}
    if not groups:
        return []
    rows = tuple((name, *_settings_row(each)[1:3]) for name, each in groups.items())
    return [Settings("Settings of this run", _versions(groups.values()), ("group", "device", "settings"), rows)]


def _as_text(found: Conditions) -> Conditions:
    """Return the settings of a group with its sizes as text: in a run, a list is one value and not a choice of several."""
    return replace(found, sizes={name: str(value).lower() for name, value in found.sizes.items()})


def _settings_row(found: Conditions) -> tuple[str, ...]:
    """Return the cells of a row: network, device, stated, assumed and unstated settings; without versions."""
    device = Conditions(devices=found.devices, device_names=found.device_names).parts()
    rest = replace(found, versions="", devices=(), device_names="").parts()
    return ", ".join(found.cells), _and(device), _and(rest), _and(found.parts(assumed=True)), _and(found.not_stated)


def _and(parts: Sequence[str]) -> str:
    return ", ".join(parts) or formatting.NO_VALUE


def _profiled(view: View) -> list[str]:
    """Return the profiles of every group, if the study is compared with quantities of profiles."""
    if not any(table.published.quantity in profiled.QUANTITIES for table in view.published):
        return []
    sentences = [sentence for each in view.comparisons if (sentence := shares.sentence(each))]
    counts = {len(one.profiles) for each in view.comparisons for one in each.contenders if one.profiles}
    return [*sentences, shares.ALONE.format(view.name)] if counts == {1} else sentences


def tables(source: Source, comparisons: Sequence[Comparison]) -> tuple[Table, ...]:
    """Return the published values of a run's study together with the measured ones; empty for a study without documents.

    `comparisons`: those of the run, with the profiles of their contenders.
    """
    plan = source.plan
    names = {group.name for group in plan.groups}
    absent = {each.group.partition(",")[0]: each.reason for each in plan.skipped if each.group not in names}
    groups = {
        name: measured_groups.of_quantity(name, source, comparisons)
        for name in {each.quantity for each in plan.published.tables}
    }
    return tuple(
        Table(each, measured_groups.label(each.quantity), beside(each, groups[each.quantity], absent))
        for each in plan.published.tables
    )


def answer(found: Sequence[Table]) -> str:
    """Return how many published claims were redone, and the results; empty for a study without documents."""
    rows = [row for table in found for row in table.rows]
    judged = count(rows)
    total = sum(judged.values())
    if not any(table.published.statements for table in found):
        return "The documents print no number that this run could be compared with." if found else ""
    if not total and any(row.measured for row in rows):
        return "No published claim gets a word here: this run was measured with other settings than the documents."
    if not total:
        return "Nothing that was published could be held against this run."
    words = [
        (IN_A_COUNT.get(judgement, judgement) if judgement else DIFFERENT, number)
        for judgement, number in judged.items()
    ]
    parts = [f"{number} {word}" for word, number in words if number]
    return f"Of {total} published claim{'s' if total > 1 else ''} measured here: {listed(parts)}."


def _clauses(found: Sequence[Table]) -> list[str]:
    """Return one sentence for every judgement that occurs, with its claims."""
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
    """Return the published ratio as text, such as `1.198x`, `up to 1.08x` or `faster`."""
    if claim.low is None:
        return "better, no number"
    if claim.high is None:
        return f"over {_factor(claim.low)}"
    if claim.low == claim.high == 1:
        return "the same"
    if not claim.ordered:
        return f"within {_factor(claim.high)} either way"
    if claim.low == claim.high:
        return _factor(claim.low)
    return f"up to {_factor(claim.high)}" if claim.low == 1 else f"{_factor(claim.low)} to {_factor(claim.high)}"


def ratio(row: Row, quantity: str = "") -> Formatted:
    """Return the measured ratio, or the measured value of a quantity, with its interval, or why there is none."""
    if isinstance(row.measured, Level):
        return shares.formatted(profiled.QUANTITIES[quantity], row.measured)
    if row.measured and quantity in SCORES and row.measured.rounds < LEAST_SEEDS:
        seeds = f"{row.measured.rounds} seed{'s' if row.measured.rounds > 1 else ''}"
        return Formatted(f"{row.measured.value:.3f}x", f"{seeds}, of {LEAST_SEEDS} that an interval needs")
    return formatting.of_ratio(row.measured) if row.measured else Formatted(formatting.NO_VALUE, row.reason)


def setting(row: Row) -> str:
    """Return the preset and batch of a row, with the document's batch if it differs."""
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
    # A computed ratio is not repeated as text, but the two values that it is computed from are.
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
        setting=setting(row), settings=_document_settings(row), differences="; ".join(row.differences) if row.measured else "",
        is_measured=bool(row.measured),
    )  # fmt: skip


def _document_settings(row: Row) -> str:
    """Return the document's settings of a statement in one line: those of the measured network, or those that all share."""
    known = row.published or (common(row.statement.conditions) if row.statement.conditions else None)
    return known.text if known else NOT_KEPT.capitalize()


def _values(row: Row) -> str:
    """Return the measured means of both sides. A single side has a column for its mean: return its number of processes."""
    if isinstance(row.measured, Level):
        return f"{row.measured.processes} profiled process{'es' if row.measured.processes > 1 else ''}"
    return AGAINST.join(filter(None, row.values)) or formatting.NO_VALUE


def _factor(value: float) -> str:
    text = f"{value:.3f}"
    return f"{text.removesuffix('0')}x"
