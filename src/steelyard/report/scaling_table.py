"""Strategies in tables: the columns and captions of the page, and the JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from steelyard.analysis import asynchronous_ranks, formatting, scaling, scaling_lines
from steelyard.analysis.formatting import NO_VALUE, SHORT_INPUTS, Formatted
from steelyard.report.columns import COLUMNS, NARROW, Column
from steelyard.results.quantities import PEAK_MEMORY
from steelyard.wording.notation import quantity_text
from steelyard.wording.task_words import fill
from steelyard_worker import strategy_kinds
from steelyard_worker.strategy import PINNED, SINGLE
from steelyard_worker.strategy_kinds import ALONE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from steelyard.analysis.asynchronous_ranks import Beside
    from steelyard.analysis.model import Comparison, Contender
    from steelyard.analysis.scaling import Scaled, Weak

HEADING = "What ranks bring"
CAPTION = (
    "Every row trains with the same batch of {batch} on the {input}: N parts compute one Nth of it each (strong scaling). All "
    "parts have as many threads as the single process."
)
WEAK_HEADING = "With more samples for more parts"
WEAK_CAPTION = (
    "Each part has as many samples as the single process alone (weak scaling). The overhead is 1 less the steps per second of "
    "all parts divided by those of the single process. The two were not measured in common rounds, so slow changes of the "
    "machine are not taken out."
)
WEAK_HEADINGS = ("contender", "parts", "batch", "single process", "its batch", "overhead")


@dataclass(frozen=True)
class Section:
    """`columns` take the contenders of `rows`; `lines` are those of the terminal; `weak_rows` are under WEAK_HEADINGS.

    `not_waiting`: asynchronous contenders with those that wait in every step. `in_short`: two sentences for all.
    """

    rows: list[Scaled]
    columns: list[Column]
    caption: str
    lines: list[str]
    weak: list[Weak]
    weak_rows: list[list[str]]
    not_waiting: list[Beside]
    in_short: list[str]

    @property
    def of_not_waiting(self) -> list[str]:
        """The gains and losses of ranks that do not wait."""
        return [asynchronous_ranks.line(each) for each in self.not_waiting]

    @property
    def contenders(self) -> list[Contender]:
        """The contenders of the table."""
        return [row.contender for row in self.rows]


def section(comparison: Comparison, among: Sequence[Comparison] = ()) -> Section | None:
    """Return the section of a comparison; None where no training was spread."""
    rows = scaling.scaled(comparison)
    if not rows:
        return None
    weak = scaling.weak(comparison, among)
    lines = [scaling_lines.line(row) for row in rows if row.parts > 1] + [
        scaling_lines.weak_line(each) for each in weak
    ]
    caption = CAPTION.format(batch=comparison.batch, input=SHORT_INPUTS[comparison.primary])
    weak_rows = [_weak_row(each) for each in weak]
    beside = asynchronous_ranks.beside(comparison)
    return Section(rows, _columns(rows), caption, lines, weak, weak_rows, beside, scaling_lines.in_short(rows))


def _columns(rows: list[Scaled]) -> list[Column]:
    by_variant = {row.contender.variant: row for row in rows}

    def column(heading: str, cell: Callable[[Scaled], Formatted], text: str) -> Column:
        return Column(heading, lambda _, x, _s: cell(by_variant[x.variant]), NARROW, text)

    mean, *_ = COLUMNS
    found = [
        column("number of parts", lambda x: Formatted(str(x.parts)), "Ranks or devices over which the training is spread."),
        replace(mean, heading=fill(mean.heading, "training"), help=fill(mean.help, "training")),
        column(
            "speed-up", _speed_up,
            "The time per step of the single process divided by that of this contender. The single process is `single:1`, which "
            "may use as many cores as it has threads, or where the cell says so `single`, which may use any core.",
        ),
        column(
            "efficiency", lambda x: formatting.of_share(x.efficiency),
            "The speed-up divided by the number of parts. 100 % means that N parts need one Nth of the time. Devices "
            "of one process may share its threads, so that one device computes with the cores of all.",
        ),
        column(
            "exposed exchange", _exchange,
            "The share of a step that ranks add by exchanging data while nothing is computed, and by waiting for each other. It "
            "is how much longer a step takes than with the strategy `alone`, whose ranks exchange nothing.",
        ),
        column(
            "memory per rank", _memory,
            "The peak memory of one rank; the least and the most where ranks differ. Below it is the sum. Each rank has "
            "libraries and an interpreter of its own.",
        ),
        column(
            "busy cores per rank", _busy_cores,
            "CPU time of a rank divided by the elapsed time, in the counted blocks. Waiting in a loop counts as busy.",
        ),
        column(
            "computation", lambda x: Formatted(x.computes),
            "Whether a contender trains as a single process does. Another algorithm takes other steps: its speed-up says nothing "
            "about how soon it has learnt as much.",
        ),
    ]  # fmt: skip
    if any(strategy_kinds.of(row.kind).in_micro_batches for row in rows):
        found[5:5] = [
            column(
                "idle share", lambda x: formatting.of_share(x.idle),
                "Of a pipeline: 1 less the step of the single process, divided by the parts, over the step of this contender. It "
                "is the share of time in which parts do not compute what the single process computes.",
            ),
            column(
                "ideal idle share", _ideal,
                "Of a pipeline with K parts and M micro-batches: (K - 1) / (M + K - 1). Some parts must wait for the first "
                "micro-batch and after the last one.",
            ),
        ]  # fmt: skip
    return found


def _speed_up(row: Scaled) -> Formatted:
    if row.kind == SINGLE:
        return Formatted(NO_VALUE)
    if row.computes not in (scaling.SAME, scaling.OTHER):
        return Formatted(row.computes)
    if not row.single:
        return Formatted("not measured", "no single process")
    if not row.speed_up:
        return Formatted("not measured", "no round in common")
    found = formatting.of_ratio(row.speed_up)
    over = "" if row.single.case.strategy == PINNED else f", over {row.single.case.strategy}"
    return Formatted(found.value, f"{found.interval}{over}")


def _exchange(row: Scaled) -> Formatted:
    if row.kind in (SINGLE, ALONE):
        return Formatted("none")
    if not row.shares_batch:
        return Formatted(
            NO_VALUE, "parts of a network" if strategy_kinds.of(row.kind).cuts else "one rank sends batches"
        )
    return (
        formatting.of_share(row.exchange)
        if row.exchange
        else Formatted("not measured", "" if row.without else f"needs {ALONE}:{row.parts}")
    )


def _memory(row: Scaled) -> Formatted:
    """Return the memory of one rank and of all ranks together; for one process that drives all devices, its own memory."""
    of_all = formatting.over_processes(PEAK_MEMORY, row.contender)
    if row.parts > 1 and row.processes == 1:
        return Formatted(of_all.value, "one process")
    known = row.memory_bytes and row.processes > 1
    return Formatted(_least_to_most(row.memory_bytes, "bytes"), f"{of_all.value} in all" if known else "")


def _busy_cores(row: Scaled) -> Formatted:
    if row.parts > 1 and row.processes == 1:
        return Formatted(NO_VALUE, "one process")
    return Formatted(_least_to_most(row.busy_cores, ""))


def _least_to_most(values: tuple[float, ...], unit: str) -> str:
    if not values:
        return NO_VALUE
    low, high = ((quantity_text(unit, each) if unit else f"{each:.2f}") for each in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _ideal(row: Scaled) -> Formatted:
    if row.ideal_idle is None:
        return Formatted(NO_VALUE)
    return Formatted(formatting.percent_text(row.ideal_idle), f"{row.micro_batches} micro-batches")


def _weak_row(each: Weak) -> list[str]:
    cells = (each.parts, each.batch, each.single.title, each.single_batch, formatting.of_share(each.overhead))
    return [each.contender.title, *map(str, cells)]


def as_dict(found: Section | None, name: Callable[[Contender], str]) -> dict[str, Any] | None:
    """Return the figures for scripts; `name` is that of a contender of this comparison."""
    if found is None:
        return None
    rows = []
    for row in found.rows:
        names = {
            field: name(one) if one else None
            for field, one in (("single", row.single), ("without_exchange", row.without))
        }
        plain: dict[str, Any] = {
            "case": name(row.contender), "strategy": row.contender.case.strategy, "kind": row.kind, "parts": row.parts,
            "processes": row.processes, "computes": row.computes, **names,
        }  # fmt: skip
        for field in ("speed_up", "efficiency", "exchange", "idle", "memory"):
            value = getattr(row, field)
            plain[field] = asdict(value) if value else None
        plain |= {"micro_batches": row.micro_batches or None, "ideal_idle": row.ideal_idle}
        rows.append(plain | {"memory_bytes_by_rank": row.memory_bytes, "busy_cores_by_rank": row.busy_cores})
    weak = [
        {
            "case": name(each.contender), "parts": each.parts, "batch": each.batch,
            "single": f"{each.group}/{each.single.variant}", "single_batch": each.single_batch, "overhead": asdict(each.overhead),
        }
        for each in found.weak
    ]  # fmt: skip
    beside = [asynchronous_ranks.as_dict(each, name) for each in found.not_waiting]
    return {"strategies": rows, "weak": weak, "not_waiting": beside}
