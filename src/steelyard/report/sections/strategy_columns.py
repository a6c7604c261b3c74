"""The columns of the table of strategies."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from steelyard.analysis import formatting, scaling
from steelyard.report.columns import COLUMNS, NARROW, Column
from steelyard.results.quantities import PEAK_MEMORY
from steelyard.wording import formatted
from steelyard.wording.formatted import NO_VALUE, Formatted
from steelyard.wording.notation import quantity_text
from steelyard.wording.task_words import fill
from steelyard_worker import strategy_kinds
from steelyard_worker.strategy import PINNED, SINGLE
from steelyard_worker.strategy_kinds import ALONE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from steelyard.analysis.scaling import Scaled


def columns(rows: Sequence[Scaled]) -> list[Column]:
    """Return the columns for these rows; a pipeline has columns of its own."""
    by_variant = {row.contender.variant: row for row in rows}

    def column(heading: str, cell: Callable[[Scaled], Formatted], text: str) -> Column:
        return Column(heading, lambda _, x, _s: cell(by_variant[x.variant]), NARROW, text)

    mean, *_ = COLUMNS
    found = [
        column(
            "number of parts", lambda x: Formatted(str(x.parts)), "Ranks or devices over which the training is spread."
        ),
        replace(mean, heading=fill(mean.heading, "training"), help=fill(mean.help, "training")),
        column(
            "speed-up",
            _speed_up,
            "The time per step of the single process divided by that of this contender. The single process is `single:1`, which "
            "may use as many cores as it has threads, or where the cell says so `single`, which may use any core.",
        ),
        column(
            "efficiency",
            lambda x: formatting.of_share(x.efficiency),
            "The speed-up divided by the number of parts. 100 % means that N parts need one Nth of the time. Devices "
            "of one process may share its threads, so that one device computes with the cores of all.",
        ),
        column(
            "exposed exchange",
            _exchange,
            "The share of a step that ranks add by exchanging data while nothing is computed, and by waiting for each other. It "
            "is how much longer a step takes than with the strategy `alone`, whose ranks exchange nothing.",
        ),
        column(
            "memory per rank",
            _memory,
            "The peak memory of one rank; the least and the most where ranks differ. Below it is the sum. Each rank has "
            "libraries and an interpreter of its own.",
        ),
        column(
            "busy cores per rank",
            _busy_cores,
            "CPU time of a rank divided by the elapsed time, in the counted blocks. Waiting in a loop counts as busy.",
        ),
        column(
            "computation",
            lambda x: Formatted(x.computes),
            "Whether a contender trains as a single process does. Another algorithm takes other steps: its speed-up says nothing "
            "about how soon it has learnt as much.",
        ),
    ]
    if any(strategy_kinds.of(row.kind).in_micro_batches for row in rows):
        found[5:5] = [
            column(
                "idle share",
                lambda x: formatting.of_share(x.idle),
                "Of a pipeline: 1 less the step of the single process, divided by the parts, over the step of this contender. It "
                "is the share of time in which parts do not compute what the single process computes.",
            ),
            column(
                "ideal idle share",
                _ideal,
                "Of a pipeline with K parts and M micro-batches: (K - 1) / (M + K - 1). Some parts must wait for the first "
                "micro-batch and after the last one.",
            ),
        ]
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
    found = formatted.of_ratio(row.speed_up)
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
    return Formatted(formatted.percent_text(row.ideal_idle), f"{row.micro_batches} micro-batches")
