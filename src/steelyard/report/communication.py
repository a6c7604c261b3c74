"""The exchange between ranks: columns for the page, lines for the terminal, values for JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from steelyard.analysis import scaling
from steelyard.analysis.formatting import NO_VALUE, Formatted
from steelyard.profiles.classes import EXCHANGE
from steelyard.report.columns import NARROW, Column
from steelyard.report.plots import staleness
from steelyard.results import communication
from steelyard.statistics.sentences import NOT_ENOUGH
from steelyard.wording.notation import data_size, duration, significant
from steelyard_worker.strategy_kinds import ALONE, ASYNCHRONOUS

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.analysis.model import Comparison, Contender
    from steelyard.analysis.scaling import Scaled

HEADING = "What ranks exchange"
CAPTION = (
    "The gradients are {size}, one float32 for each of {count} trainable numbers. What connections carried was counted in the "
    "measured steps; an all-reduce of a buffer of this size was timed after the rounds, by as many ranks that do nothing else."
)
FLOAT = 4
NOT_SEEN, ONE_PROCESS = "not seen", "one process"


@dataclass(frozen=True)
class Exchanged:
    """One contender. Bytes of a counted step: one value for every rank, the mean over trials; empty where unknown."""

    row: Scaled
    sent_bytes: tuple[float, ...]
    received_bytes: tuple[float, ...]

    @property
    def contender(self) -> Contender:
        """The contender."""
        return self.row.contender


@dataclass(frozen=True)
class Section:
    """`columns` take the contenders of `rows`; `lines` are those of the terminal; `reasons`: (title, why it was not measured)."""

    rows: list[Exchanged]
    columns: list[Column]
    caption: str
    lines: list[str]
    reasons: list[tuple[str, str]]

    @property
    def contenders(self) -> list[Contender]:
        """The contenders of the table."""
        return [each.contender for each in self.rows]


def section(comparison: Comparison) -> Section | None:
    """Return the section of a comparison; None if no training was spread over processes, or the record has no counters."""
    rows = [_exchanged(comparison, row) for row in scaling.scaled(comparison) if row.parts > 1]
    if not any(each.sent_bytes or each.contender.communication or each.contender.no_communication for each in rows):
        return None
    caption = CAPTION.format(size=data_size(FLOAT * comparison.parameters), count=f"{comparison.parameters:,}")
    lines = [line for each in rows if (line := _line(each, comparison))]
    reasons = [(each.contender.title, reason) for each in rows if (reason := _why_not(each))]
    return Section(rows, _columns(rows), caption, lines, reasons)


def _why_not(exchanged: Exchanged) -> str:
    """Return why the exchange of a contender was not measured by itself; empty if it was, or if there is nothing to exchange."""
    row, contender = exchanged.row, exchanged.contender
    if row.processes == 1:
        return "One process drives all devices, so nothing is exchanged between processes."
    if not row.shares_batch and row.kind != ASYNCHRONOUS:
        return "The ranks hold parts of the network, so they send each other values of layers, and no gradients of weights."
    return contender.no_communication


def _exchanged(comparison: Comparison, row: Scaled) -> Exchanged:
    source = comparison.primary
    return Exchanged(
        row, scaling.of_each_rank(row.contender, lambda trial: communication.sent_per_step(trial, source)),
        scaling.of_each_rank(row.contender, lambda trial: communication.received_per_step(trial, source)),
    )  # fmt: skip


def _columns(rows: list[Exchanged]) -> list[Column]:
    by_variant = {each.contender.variant: each for each in rows}

    def column(heading: str, cell: Callable[[Exchanged, Comparison], Formatted], text: str) -> Column:
        return Column(heading, lambda comparison, x, _s: cell(by_variant[x.variant], comparison), NARROW, text)

    found = [
        column(
            "sent per step and rank", lambda x, comparison: _carried(x, x.sent_bytes, comparison),
            "What the TCP connections of a rank sent in a counted step, by the counters of the kernel; the least and the most "
            "where ranks differ. Exchange through memory or Unix sockets is not seen.",
        ),
        column(
            "received per step and rank", lambda x, comparison: _carried(x, x.received_bytes, comparison),
            "The same of what a rank received. Servers beside the ranks have no record of their own, but what they send is "
            "received here.",
        ),
        column(
            "all-reduce alone", lambda x, _: _all_reduce(x.contender),
            "The time in which the strategy's own collective sums or averages a buffer as large as the gradients over all ranks, "
            "when nothing else is computed: the median of some blocks, with the least and the most.",
        ),
        column(
            "bus bandwidth", lambda x, _: _bandwidth(x.contender),
            "Of that all-reduce with n ranks: 2 (n - 1) / n times the buffer, over the time (NVIDIA nccl-tests). A rank must "
            "send at least that much, so it can be compared with the bandwidth of a link for any number of ranks.",
        ),
        column(
            "exposed per step", _exposed,
            "The exposed exchange as a time: how much longer a step takes than with ranks that exchange nothing. Less than an "
            "all-reduce alone takes means that computation hides a part of it; more, that ranks also wait for each other.",
        ),
    ]  # fmt: skip
    if any(each.contender.profile for each in rows):
        found.append(column(
            "time in collectives", lambda x, _: _in_collectives(x.contender),
            "The time of a profiled step in operations that exchange something, on the first rank, by the framework's own "
            "profiler, with what a rank waits for others in them. Where they run beside others, each counts by its share.",
        ))  # fmt: skip
    if any(staleness.of(each.contender) for each in rows):
        found.append(column(
            "missed updates", lambda x, _: _stale(x.contender),
            "How many updates of other ranks a gradient had missed, on average: they were applied after this rank had read the "
            "weights. The share is that of gradients that had missed none.",
        ))  # fmt: skip
    return found


def _carried(exchanged: Exchanged, found: tuple[float, ...], comparison: Comparison) -> Formatted:
    if not found:
        return Formatted(NO_VALUE, ONE_PROCESS if exchanged.row.processes == 1 else NOT_SEEN)
    low, high = data_size(min(found)), data_size(max(found))
    share = max(found) / (FLOAT * comparison.parameters)
    return Formatted(low if low == high else f"{low} to {high}", f"{significant(share)}x the gradients")


def _all_reduce(contender: Contender) -> Formatted:
    if not (found := _reduced(contender)):
        return _none(contender)
    return Formatted(duration(found.ns), f"{duration(found.low_ns)} to {duration(found.high_ns)}")


def _bandwidth(contender: Contender) -> Formatted:
    found = _reduced(contender)
    return Formatted(f"{data_size(1e9 * found.bus_gbps)}/s", found.collective) if found else _none(contender)


def _reduced(contender: Contender) -> communication.AllReduce | None:
    return contender.communication.all_reduce if contender.communication else None


def _in_collectives(contender: Contender) -> Formatted:
    if contender.profile is None:
        return Formatted(NO_VALUE)
    found = contender.profile.breakdown
    if taken := found.classes.get(EXCHANGE):
        return Formatted(duration(taken), f"{100 * taken / found.step_ns:.0f} % of the step")
    return Formatted("none" if contender.case.strategy.startswith(f"{ALONE}:") else "not named", "by the profiler")


def _stale(contender: Contender) -> Formatted:
    found = staleness.of(contender)
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


def _line(exchanged: Exchanged, comparison: Comparison) -> str:
    """Return the sentence of the terminal about a contender; empty where nothing is known about it."""
    found, sent = _reduced(exchanged.contender), exchanged.sent_bytes
    carried = _carried(exchanged, sent, comparison)
    parts = [f"{carried.value} sent per step and rank ({carried.interval})"] if any(sent) else []
    if found:
        parts.append(
            f"an all-reduce of {data_size(found.bytes)} takes {duration(found.ns)} alone ({duration(found.low_ns)} to "
            f"{duration(found.high_ns)} over blocks; bus bandwidth {data_size(1e9 * found.bus_gbps)}/s)"
        )
    if stale := staleness.of(exchanged.contender):
        parts.append(f"a gradient had missed {significant(stale.mean)} updates of other ranks on average")
    return f"{exchanged.contender.title}: {'; '.join(parts)}." if parts else ""


def as_dict(found: Section | None, name: Callable[[Contender], str]) -> list[dict[str, Any]] | None:
    """Return the figures for scripts; `name` is that of a contender of this comparison."""
    if found is None:
        return None
    rows = []
    for each in found.rows:
        reduced = _reduced(each.contender)
        rows.append({
            "case": name(each.contender), "sent_bytes_per_step": each.sent_bytes, "received_bytes_per_step": each.received_bytes,
            "all_reduce": {**asdict(reduced), "bus_gbps": reduced.bus_gbps} if reduced else None,
            "missed_updates": asdict(stale) | {"mean": stale.mean} if (stale := staleness.of(each.contender)) else None,
            "ns_in_collectives": each.contender.profile.breakdown.classes.get(EXCHANGE) if each.contender.profile else None,
            "not_measured": _why_not(each),
        })  # fmt: skip
    return rows
