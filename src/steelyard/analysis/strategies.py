"""The effect of strategies: trainings over several parts, compared with a single process and with each other."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from steelyard.analysis import asynchronous_ranks, scaling, scaling_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from steelyard.analysis.asynchronous_ranks import Beside
    from steelyard.analysis.model import Comparison, Contender
    from steelyard.analysis.scaling import Scaled, Weak

SHARES = ("speed_up", "efficiency", "exchange", "idle", "memory")
"""The fields of a row that are values with an interval."""


@dataclass(frozen=True)
class Strategies:
    """`rows`: contenders beside their single process. `weak`: those whose parts have the batch of another single process.

    `not_waiting`: asynchronous contenders with those that wait in every step. `in_short`: up to three sentences for all.
    `lines`: a sentence for every contender; `of_not_waiting`: the same of the asynchronous ones.
    """

    rows: list[Scaled]
    weak: list[Weak]
    not_waiting: list[Beside]
    in_short: list[str]
    lines: list[str]
    of_not_waiting: list[str]


def strategies(comparison: Comparison, among: Sequence[Comparison] = ()) -> Strategies | None:
    """Return what strategies bring in a comparison; None where no training was spread. `among`: all comparisons of the run."""
    rows = scaling.scaled(comparison)
    if not rows:
        return None
    weak, not_waiting = scaling.weak(comparison, among), asynchronous_ranks.beside(comparison)
    lines = [scaling_lines.line(row) for row in rows if row.parts > 1]
    lines += [scaling_lines.weak_line(row) for row in weak]
    of_not_waiting = [asynchronous_ranks.line(pair) for pair in not_waiting]
    return Strategies(rows, weak, not_waiting, scaling_lines.in_short(rows), lines, of_not_waiting)


def as_dict(spread: Strategies, name: Callable[[Contender], str]) -> dict[str, Any]:
    """Return the figures for scripts; `name` is that of a contender of this comparison."""
    return {
        "strategies": [_row(row, name) for row in spread.rows],
        "weak": [_weak(row, name) for row in spread.weak],
        "not_waiting": [asynchronous_ranks.as_dict(pair, name) for pair in spread.not_waiting],
    }


def _row(row: Scaled, name: Callable[[Contender], str]) -> dict[str, Any]:
    spans = {field: getattr(row, field) for field in SHARES}
    return {
        "case": name(row.contender),
        "strategy": row.contender.case.strategy,
        "kind": row.kind,
        "parts": row.parts,
        "processes": row.processes,
        "computes": row.computes,
        "single": name(row.single) if row.single else None,
        "without_exchange": name(row.without) if row.without else None,
        **{field: asdict(value) if value else None for field, value in spans.items()},
        "micro_batches": row.micro_batches or None,
        "ideal_idle": row.ideal_idle,
        "memory_bytes_by_rank": row.memory_bytes,
        "busy_cores_by_rank": row.busy_cores,
    }


def _weak(row: Weak, name: Callable[[Contender], str]) -> dict[str, Any]:
    return {
        "case": name(row.contender),
        "parts": row.parts,
        "batch": row.batch,
        "single": f"{row.group}/{row.single.variant}",
        "single_batch": row.single_batch,
        "overhead": asdict(row.overhead),
    }
