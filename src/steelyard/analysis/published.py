"""The documents that a study redoes: how their claims compare with what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.analysis import document_settings, measured_groups, shares
from steelyard.analysis.matching import JUDGEMENTS, beside, count
from steelyard.analysis.published_tables import Table
from steelyard.profiles import quantities as profiled
from steelyard.results.quantities import STEP_TIME
from steelyard.statistics.sentences import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analysis.document_settings import Settings
    from steelyard.analysis.matching import Row
    from steelyard.analysis.model import Comparison, Source, View
    from steelyard.published.gathering import Published

QUICK = "Q"
"""The size of a study for tests and demonstrations."""
USUAL = STEP_TIME.name
"""The quantity that needs no name beside a row."""
MOST_NAMED = 4
# In "3 of the same size".
IN_A_COUNT = {
    "same size": "of the same size",
    "same order": "in the same order",
    "other size": "of another size",
    "opposite order": "in the opposite order",
    "compatible, not precise": "compatible but not precise",
}
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


@dataclass(frozen=True)
class Documents:
    """The documents of a study beside its run; `answer` is empty if the study has none.

    `clauses`: one for every judgement. `dispatch`: that the quick size measures dispatch; empty at other sizes. `what_differs`:
    why rows have a ratio and no judgement. `settings`: one table for every document, and one for this run.
    """

    answer: str
    clauses: list[str]
    dispatch: str
    what_differs: str
    published: Published
    tables: tuple[Table, ...]
    settings: tuple[Settings, ...]

    @property
    def is_judged(self) -> bool:
        """Whether any published value could be compared with the run."""
        return any(row.judgement for table in self.tables for row in table.rows)

    @property
    def has_levels(self) -> bool:
        """Whether any single values are judged, and not ratios of two."""
        return any(table.has_levels for table in self.tables)

    @property
    def names_differences(self) -> bool:
        """Whether rows name the differences of settings: where they are not the rule."""
        return self.published.size not in SMALL_SIZES


def documents(view: View) -> Documents:
    """Return the documents of a run's study beside what it measured."""
    published, tables_of_run = view.record.plan.published, view.published
    return Documents(
        answer=_answer_of_size(published.size, tables_of_run),
        clauses=[*_profiled(view), *_clauses(tables_of_run)],
        dispatch=DISPATCH if published.size == QUICK else "",
        what_differs=_what_differs(published.size, tables_of_run),
        published=published,
        tables=tables_of_run,
        settings=document_settings.tables(published.sources, tables_of_run),
    )


def _answer_of_size(size: str, found: Sequence[Table]) -> str:
    said = answer(found)
    judged = any(row.judgement for table in found for row in table.rows)
    return AT_QUICK_SIZE + said[:1].lower() + said[1:] if size == QUICK and judged else said


def _what_differs(size: str, found: Sequence[Table]) -> str:
    """Return one sentence on why rows have a ratio and no judgement; empty if there is no such row."""
    if not any(row.measured and row.differences for table in found for row in table.rows):
        return ""
    return RULE + (SMALL.format(size=size) if size in SMALL_SIZES else OTHERWISE)


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


def _profiled(view: View) -> list[str]:
    """Return the profiles of every group, if the study is compared with quantities of profiles."""
    if not any(table.published.quantity in profiled.QUANTITIES for table in view.published):
        return []
    sentences = [sentence for each in view.comparisons if (sentence := shares.sentence(each))]
    counts = {len(one.profiles) for each in view.comparisons for one in each.contenders if one.profiles}
    return [*sentences, shares.ALONE.format(view.name)] if counts == {1} else sentences


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
