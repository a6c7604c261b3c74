"""The columns of the table of what ranks exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis.rank_exchange import all_reduce, least_to_most, of_gradients, staleness
from steelyard.profiles.classes import EXCHANGE
from steelyard.report.columns import NARROW, Column
from steelyard.statistics.sentences import NOT_ENOUGH
from steelyard.wording.formatted import NO_VALUE, Formatted
from steelyard.wording.notation import data_size, duration, significant
from steelyard_worker.strategy_kinds import ALONE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from steelyard.analysis.model import Comparison, Contender
    from steelyard.analysis.rank_exchange import Exchanged
    from steelyard.analysis.scaling import Scaled

NOT_SEEN, ONE_PROCESS = "not seen", "one process"


def columns(rows: Sequence[Exchanged]) -> list[Column]:
    """Return the columns for these rows; those of profiles and of missed updates only where a row has them."""
    by_variant = {each.contender.variant: each for each in rows}

    def column(heading: str, cell: Callable[[Exchanged, Comparison], Formatted], text: str) -> Column:
        return Column(heading, lambda comparison, x, _s: cell(by_variant[x.variant], comparison), NARROW, text)

    found = [
        column(
            "sent per step and rank",
            lambda x, comparison: _carried(x, x.sent_bytes, comparison),
            "What the TCP connections of a rank sent in a counted step, by the counters of the kernel; the least and the most "
            "where ranks differ. Exchange through memory or Unix sockets is not seen.",
        ),
        column(
            "received per step and rank",
            lambda x, comparison: _carried(x, x.received_bytes, comparison),
            "The same of what a rank received. Servers beside the ranks have no record of their own, but what they send is "
            "received here.",
        ),
        column(
            "all-reduce alone",
            lambda x, _: _all_reduce(x.contender),
            "The time in which the strategy's own collective sums or averages a buffer as large as the gradients over all ranks, "
            "when nothing else is computed: the median of some blocks, with the least and the most.",
        ),
        column(
            "bus bandwidth",
            lambda x, _: _bandwidth(x.contender),
            "Of that all-reduce with n ranks: 2 (n - 1) / n times the buffer, over the time (NVIDIA nccl-tests). A rank must "
            "send at least that much, so it can be compared with the bandwidth of a link for any number of ranks.",
        ),
        column(
            "exposed per step",
            _exposed,
            "The exposed exchange as a time: how much longer a step takes than with ranks that exchange nothing. Less than an "
            "all-reduce alone takes means that computation hides a part of it; more, that ranks also wait for each other.",
        ),
    ]
    if any(each.contender.profile for each in rows):
        found.append(
            column(
                "time in collectives",
                lambda x, _: _in_collectives(x.contender),
                "The time of a profiled step in operations that exchange something, on the first rank, by the framework's own "
                "profiler, with what a rank waits for others in them. Where they run beside others, each counts by its share.",
            )
        )
    if any(staleness(each.contender) for each in rows):
        found.append(
            column(
                "missed updates",
                lambda x, _: _stale(x.contender),
                "How many updates of other ranks a gradient had missed, on average: they were applied after this rank had read "
                "the weights. The share is that of gradients that had missed none.",
            )
        )
    return found


def _carried(exchanged: Exchanged, carried: tuple[float, ...], comparison: Comparison) -> Formatted:
    if not carried:
        return Formatted(NO_VALUE, ONE_PROCESS if exchanged.row.processes == 1 else NOT_SEEN)
    return Formatted(least_to_most(carried), of_gradients(carried, comparison))


def _all_reduce(contender: Contender) -> Formatted:
    if not (found := all_reduce(contender)):
        return _none(contender)
    return Formatted(duration(found.ns), f"{duration(found.low_ns)} to {duration(found.high_ns)}")


def _bandwidth(contender: Contender) -> Formatted:
    found = all_reduce(contender)
    return Formatted(f"{data_size(1e9 * found.bus_gbps)}/s", found.collective) if found else _none(contender)


def _in_collectives(contender: Contender) -> Formatted:
    if contender.profile is None:
        return Formatted(NO_VALUE)
    found = contender.profile.breakdown
    if taken := found.classes.get(EXCHANGE):
        return Formatted(duration(taken), f"{100 * taken / found.step_ns:.0f} % of the step")
    return Formatted("none" if contender.case.strategy.startswith(f"{ALONE}:") else "not named", "by the profiler")


def _stale(contender: Contender) -> Formatted:
    found = staleness(contender)
    if found is None:
        return Formatted(NO_VALUE)
    return Formatted(significant(found.mean), f"{100 * found.missed[0] / found.updates:.0f} % none")


def _none(contender: Contender) -> Formatted:
    return Formatted("not measured" if contender.no_communication else NO_VALUE)


def _exposed(exchanged: Exchanged, comparison: Comparison) -> Formatted:
    row = exchanged.row
    if row.exchange is None:
        return Formatted("none" if row.kind == ALONE else NO_VALUE)
    if not row.exchange.enough:
        return Formatted(_signed(row.exchange.value * _step_ns(row, comparison)), NOT_ENOUGH)
    value, low, high = (
        _signed(share * _step_ns(row, comparison))
        for share in (row.exchange.value, row.exchange.low, row.exchange.high)
    )
    return Formatted(value, f"[{low}, {high}]")


def _step_ns(row: Scaled, comparison: Comparison) -> float:
    return row.contender.speeds[comparison.primary].location.value_ns


def _signed(nanoseconds: float) -> str:
    return f"-{duration(-nanoseconds)}" if nanoseconds < 0 else duration(nanoseconds)
