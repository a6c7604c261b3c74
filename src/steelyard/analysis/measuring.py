"""How a run measured: its protocols, turns, the measured limits of the machine, and the data of its groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steelyard.results.record import RunRecord


TURNS = "After their warm-up, the contenders of a round compute in turns of at least {} s. Those that wait are stopped."
BANDWIDTH = "{:,.1f} GB/s with {} {}: a = a + s * b in arrays that no cache holds"


@dataclass(frozen=True)
class Data:
    """The data of a group: what it is, and the hash by which it is recognised."""

    group: str
    origin: str
    identity: str


def protocols(record: RunRecord) -> list[str]:
    """Return a sentence for every protocol."""
    return [f"{each.name}: {each.text}." for each in record.plan.protocols]


def turns(record: RunRecord) -> list[tuple[str, str]]:
    """Return (name, sentence) for every group whose contenders compute in turns."""
    return [
        (f"turns of {group.name}", TURNS.format(group.protocol.schedule.turn_min_s))
        for group in record.plan.groups
        if group.takes_turns and len(group.variants) > 1
    ]


def limits(record: RunRecord) -> list[tuple[str, str]]:
    """Return (name, sentence) for every measured limit of the machine: arithmetic, and the bandwidth of its memory."""
    peaks = [
        ("arithmetic peak", f"{gflops:,.0f} GFLOP/s in {precision}, the fastest matrix product measured with {source}")
        for precision, sources in record.peak.items()
        for source, gflops in sources.items()
    ]
    return peaks + [
        ("bandwidth of memory", BANDWIDTH.format(gbps, threads, "thread" if threads == "1" else "threads"))
        for threads, gbps in record.bandwidth.items()
    ]


def weights(record: RunRecord) -> list[tuple[str, str]]:
    """Return (name, description) of the file of the initial weights; nothing where they were drawn."""
    return [("initial weights", record.plan.initial_weights)] if record.plan.initial_weights else []


def data(record: RunRecord) -> list[Data]:
    """Return the data of every group."""
    return [Data(group, inputs["origin"], inputs["identity"]) for group, inputs in record.inputs.items()]
