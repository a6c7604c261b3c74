"""What ranks exchange: bytes on their connections, an all-reduce by itself, and updates that gradients have missed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from steelyard.analysis import scaling
from steelyard.profiles.classes import EXCHANGE
from steelyard.results import communication
from steelyard.wording.notation import data_size, duration, significant

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.analysis.model import Comparison, Contender
    from steelyard.analysis.scaling import Scaled
    from steelyard.results.communication import AllReduce, Stale

FLOAT_BYTES = 4
"""Bytes of one float32."""
ASYNCHRONOUS = "asynchronous"


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


def exchanges(comparison: Comparison) -> list[Exchanged]:
    """Return the contenders that were spread; none if none was spread over processes, or the record has no counters."""
    rows = [_exchanged(comparison, row) for row in scaling.scaled(comparison) if row.parts > 1]
    if any(row.sent_bytes or row.contender.communication or row.contender.no_communication for row in rows):
        return rows
    return []


def _exchanged(comparison: Comparison, row: Scaled) -> Exchanged:
    source = comparison.primary
    return Exchanged(
        row,
        scaling.of_each_rank(row.contender, lambda trial: communication.sent_per_step(trial, source)),
        scaling.of_each_rank(row.contender, lambda trial: communication.received_per_step(trial, source)),
    )


def gradients_bytes(comparison: Comparison) -> int:
    """Return the size of the gradients, one float32 for each trainable number."""
    return FLOAT_BYTES * comparison.parameters


def of_gradients(carried: tuple[float, ...], comparison: Comparison) -> str:
    """Return the most that a rank carried in a step as a multiple of the gradients."""
    return f"{significant(max(carried) / gradients_bytes(comparison))}x the gradients"


def least_to_most(carried: tuple[float, ...]) -> str:
    """Return what ranks carried in a step: the least and the most where they differ."""
    low, high = data_size(min(carried)), data_size(max(carried))
    return low if low == high else f"{low} to {high}"


def all_reduce(contender: Contender) -> AllReduce | None:
    """Return the timed all-reduce of a contender; None where none was timed."""
    return contender.communication.all_reduce if contender.communication else None


def staleness(contender: Contender) -> Stale | None:
    """Return the staleness of a contender's gradients; None where it was not counted."""
    return contender.communication.stale if contender.communication else None


def why_not(exchanged: Exchanged) -> str:
    """Return why the exchange of a contender was not measured by itself; empty if it was, or if there is nothing to exchange."""
    row, contender = exchanged.row, exchanged.contender
    if row.processes == 1:
        return "One process drives all devices, so nothing is exchanged between processes."
    if not row.shares_batch and row.kind != ASYNCHRONOUS:
        return "The ranks hold parts of the network, so they send each other values of layers, and no gradients of weights."
    return contender.no_communication


def line(exchanged: Exchanged, comparison: Comparison) -> str:
    """Return the sentence about a contender; empty where nothing is known about it."""
    sent, parts = exchanged.sent_bytes, []
    if any(sent):
        parts.append(f"{least_to_most(sent)} sent per step and rank ({of_gradients(sent, comparison)})")
    if reduced := all_reduce(exchanged.contender):
        parts.append(
            f"an all-reduce of {data_size(reduced.bytes)} takes {duration(reduced.ns)} alone ({duration(reduced.low_ns)} to "
            f"{duration(reduced.high_ns)} over blocks; bus bandwidth {data_size(1e9 * reduced.bus_gbps)}/s)"
        )
    if stale := staleness(exchanged.contender):
        parts.append(f"a gradient had missed {significant(stale.mean)} updates of other ranks on average")
    return f"{exchanged.contender.title}: {'; '.join(parts)}." if parts else ""


def as_dict(exchanged: Exchanged, name: Callable[[Contender], str]) -> dict[str, Any]:
    """Return the figures of a contender for scripts; `name` is that of a contender of this comparison."""
    contender = exchanged.contender
    reduced, stale, profile = all_reduce(contender), staleness(contender), contender.profile
    return {
        "case": name(contender),
        "sent_bytes_per_step": exchanged.sent_bytes,
        "received_bytes_per_step": exchanged.received_bytes,
        "all_reduce": {**asdict(reduced), "bus_gbps": reduced.bus_gbps} if reduced else None,
        "missed_updates": asdict(stale) | {"mean": stale.mean} if stale else None,
        "ns_in_collectives": profile.breakdown.classes.get(EXCHANGE) if profile else None,
        "not_measured": why_not(exchanged),
    }
