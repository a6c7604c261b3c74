"""A row of published and measured values as texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.analysis import shares
from steelyard.profiles import quantities as profiled
from steelyard.statistics.conditions import NOT_KEPT, common
from steelyard.statistics.intervals import Level
from steelyard.statistics.scores import LEAST_SEEDS
from steelyard.statistics.scores import QUANTITIES as SCORES
from steelyard.wording import formatted
from steelyard.wording.formatted import Formatted

if TYPE_CHECKING:
    from steelyard.analysis.matching import Row
    from steelyard.analysis.published_tables import Table
    from steelyard.published.gathering import PublishedTable
    from steelyard.statistics.claims import Claim

AGAINST = " against "
"""The separator of two values that are compared."""


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


def cells(table: Table) -> list[Cells]:
    """Return the rows of an entry as texts."""
    return [_cells(row, table.published) for row in table.rows]


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
    return formatted.of_ratio(row.measured) if row.measured else Formatted(formatted.NO_VALUE, row.reason)


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
        said=said_here,
        printed=printed,
        ratio=ratio(row, published.quantity),
        judgement=row.judgement or "",
        values=_values(row),
        setting=setting(row),
        settings=_document_settings(row),
        differences="; ".join(row.differences) if row.measured else "",
        is_measured=bool(row.measured),
    )


def _document_settings(row: Row) -> str:
    """Return the document's settings of a statement in one line: those of the measured network, or those that all share."""
    known = row.published or (common(row.statement.conditions) if row.statement.conditions else None)
    return known.text if known else NOT_KEPT.capitalize()


def _values(row: Row) -> str:
    """Return the measured means of both sides. A single side has a column for its mean: return its number of processes."""
    if isinstance(row.measured, Level):
        return f"{row.measured.processes} profiled process{'es' if row.measured.processes > 1 else ''}"
    return AGAINST.join(filter(None, row.values)) or formatted.NO_VALUE


def _factor(value: float) -> str:
    text = f"{value:.3f}"
    return f"{text.removesuffix('0')}x"
