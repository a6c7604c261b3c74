"""The entries of documents that a study redoes, each with its rows: what was published, what was measured, and the judgement."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analysis.matching import Row
    from steelyard.published.gathering import PublishedTable


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
    def notes(self) -> list[str]:
        """Notes that a reader needs for the entry."""
        known = self.published
        kind = "values" if self.has_levels else "ratios"
        computed = f"The document does not print these {kind}. They are computed from its values: {known.formula}."
        checked = f"Checked against the document's own numbers: {known.checked}" if known.checked else ""
        return [note for note in (known.says, computed if known.derived else "", known.note, checked) if note]

    @property
    def has_levels(self) -> bool:
        """Whether single values are judged, and not ratios of two."""
        return any(row.statement.second is None for row in self.rows)


def as_dict(table: Table) -> dict[str, Any]:
    """Return an entry with its rows as plain values for scripts."""
    known = table.published
    rows = [_row(row) for row in table.rows]
    return {"entry": known.entry, "source": table.source, "quantity": known.quantity, "rows": rows}


def _row(row: Row) -> dict[str, Any]:
    settings = (row.published,) if row.published else row.statement.conditions
    return {
        "cell": row.statement.cell,
        "group": row.group,
        "sides": row.sides,
        "published": asdict(row.said),
        "printed": row.statement.printed,
        "measured": asdict(row.measured) if row.measured else None,
        "judgement": row.judgement,
        "reason": row.reason,
        "claim": row.statement.claim,
        "differences": row.differences,
        "published_settings": [asdict(each) for each in settings],
        "measured_settings": asdict(row.here) if row.here else None,
    }


def lines(numbers: Sequence[int]) -> str:
    """Return `line 5` or `lines 5-9`."""
    ends = list(dict.fromkeys(numbers))
    return f"line{'s' if len(ends) > 1 else ''} {'-'.join(map(str, ends))}"
