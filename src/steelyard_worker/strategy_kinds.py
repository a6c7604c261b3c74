"""The kinds of strategies: what a strategy does, in any framework. A line of this table for each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StrategyKind:
    """The properties of the strategies of one kind.

    waits: in every step, every part waits for what the others have computed.
    connects: its parts, where they are processes, send each other tensors of the training.
    averages: its parts average gradients or weights.
    cuts: every part computes some layers for the whole batch. Otherwise a part computes a share of the batch.
    divides: every part holds only some of the weights, or of the optimizer's state.
    in_micro_batches: the batch is divided once more, so that the parts compute at the same time.
    otherwise: what it computes in place of what one process computes, whatever the network; empty: it may compute the same.
    """

    help: str
    waits: bool = True
    connects: bool = True
    averages: bool = False
    cuts: bool = False
    divides: bool = False
    in_micro_batches: bool = False
    otherwise: str = ""


DEVICES, PROCESSES, SHARDED, SERVER, LIBRARY = "devices", "processes", "sharded", "server", "library"
MODEL, PIPELINE = "model", "pipeline"
ASYNCHRONOUS, LOCAL, ALONE = "asynchronous", "local", "alone"

KINDS = {
    DEVICES: StrategyKind(
        "data parallel in one process: every device computes a share of the batch, gradients are averaged",
        connects=False,
    ),
    PROCESSES: StrategyKind(
        "data parallel in several processes: every rank computes a share of the batch, gradients are averaged",
        averages=True,
    ),
    SHARDED: StrategyKind(
        "as processes, with weights and optimizer state divided among the ranks", averages=True, divides=True
    ),
    SERVER: StrategyKind(
        "synchronous parameter server: ranks send gradients to server processes, which update the weights",
        averages=True,
    ),
    ASYNCHRONOUS: StrategyKind(
        "asynchronous parameter server: every gradient is applied when it arrives, nothing waits",
        waits=False,
        otherwise="gradients are computed from weights that other ranks have changed in the meantime",
    ),
    LIBRARY: StrategyKind("data parallel by a library beside the framework", averages=True),
    MODEL: StrategyKind(
        "model parallel: the network is cut in two or more, each part on a device of its own", cuts=True, divides=True
    ),
    PIPELINE: StrategyKind(
        "model parallel with micro-batches, so that the parts compute at the same time",
        cuts=True,
        divides=True,
        in_micro_batches=True,
    ),
    LOCAL: StrategyKind(
        "local updates: every rank trains alone, and the weights are averaged every few steps",
        waits=False,
        averages=True,
        otherwise="weights are averaged every few steps, so ranks drift apart in between",
    ),
    ALONE: StrategyKind(
        "ranks that exchange nothing: what the same computation takes without communication",
        waits=False,
        connects=False,
        otherwise="the ranks exchange nothing, and train on their shares at a rate so small that no weight moves",
    ),
}
# What holds for a kind that this version does not know, in the record of another one.
UNKNOWN = StrategyKind("unknown", waits=False, connects=False)


def of(kind: str) -> StrategyKind:
    """Return the table's entry for a kind."""
    return KINDS.get(kind, UNKNOWN)
