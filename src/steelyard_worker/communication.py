"""What ranks exchange, measured by itself: the framework's own all-reduce of a buffer as large as the gradients.

Of an asynchronous strategy, how stale the gradients are. Either is a job of its own, with the ranks, cores and launcher of the
measured processes, so it does not affect those processes. Blocks of all-reduces are timed like blocks of steps: all ranks begin
together, and a block ends with the last of them.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from steelyard_worker import batches, timing, traffic
from steelyard_worker.protocol import Refusal
from steelyard_worker.strategy_kinds import ASYNCHRONOUS

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard_worker.frameworks.base import Adapter, CountingTrainer
    from steelyard_worker.network import Network
    from steelyard_worker.protocol import EventWriter, Job
    from steelyard_worker.ranks import Ranks

    Array = np.ndarray[Any, Any]

WARM_UP, COUNTED = "warm-up", "counted"
# All-reduces before the counted ones: connections widen their windows, and allocators fill their pools.
WARM_UP_CALLS = 3
# They may take a tenth of what later ones take, so a block as long as this says how many calls are counted.
WARM_UP_S = 0.1
# Counted blocks, and about how long each is. Where one all-reduce takes longer, all blocks together stay below a limit.
BLOCKS, BLOCK_S, LONGEST_S = 5, 0.3, 60.0
MOST_CALLS = 1000
# Steps of a training whose updates are counted, after those in which ranks compile.
WARM_UP_STEPS, STALE_STEPS = 10, 100
FLOAT = 4
# Different values of a buffer, a prime number of them, so that equal parts of it differ. Scalars that are checked at a time.
VALUES = 251
PIECE = 4096 * VALUES


class AllReduce(Protocol):
    """The sum or the mean of a buffer over all ranks, by the collective with which a strategy exchanges gradients."""

    name: str
    """The interface of the framework that does it, such as `torch.distributed.all_reduce (gloo)`."""
    mean: bool
    """Whether the result is the mean over the ranks, and not the sum."""

    def __call__(self) -> None:
        """Reduce the buffer; returns when this rank has the result. Later calls may continue with the result of earlier ones."""

    def result(self) -> Array:
        """Return what the first call has made of the buffer, float32 in its shape. Called after that one only."""


@dataclass
class Blocks:
    """Blocks of all-reduces, an event for each; the first rank says how long they are, and the others follow."""

    reduce: AllReduce
    ranks: Ranks
    clock: timing.Clock
    events: EventWriter
    size: int  # of the buffer, bytes

    def lead(self, phase: str, calls: int) -> float:
        """Do a block on all ranks; returns the seconds of a call."""
        self.ranks.announce((phase, calls))
        return self._do(phase, calls) / calls / 1e9

    def follow(self) -> None:
        """Do the blocks that the first rank announces."""
        for phase, calls in self.ranks.orders():
            self._do(phase, calls)

    def _do(self, phase: str, calls: int) -> int:
        before = self.ranks.carried()
        self.ranks.barrier()
        start = self.clock()
        for _ in range(calls):
            self.reduce()
        self.ranks.barrier()
        elapsed = self.clock() - start
        carried = traffic.since(before, self.ranks.carried())
        self.events.write(
            "all-reduce",
            collective=self.reduce.name,
            phase=phase,
            bytes=self.size,
            processes=self.ranks.count,
            calls=calls,
            elapsed_ns=elapsed,
            sent_bytes=carried.sent if carried else None,
        )
        return elapsed


def run(
    job: Job,
    network: Network,
    adapter: Adapter,
    build: Callable[[], CountingTrainer],
    events: EventWriter,
    ranks: Ranks,
) -> None:
    """Measure what fits the kind of the strategy. `build` makes the trainer that counts updates."""
    if job.spread and job.spread.kind == ASYNCHRONOUS:
        staleness(job, adapter, build, events, ranks)
    else:
        all_reduce(job, network, adapter, events, ranks)


def all_reduce(job: Job, network: Network, adapter: Adapter, events: EventWriter, ranks: Ranks) -> None:
    """Time all-reduces of a float32 buffer that has a scalar for each trainable one of the network.

    Refusal: the framework has no collective for it, or the result is not that of all ranks.
    """
    if not hasattr(adapter, "all_reduce"):
        raise Refusal("unsupported", f"The adapter of {job.case.framework} has no all_reduce().")
    scalars = network.trainable_count
    reduce: AllReduce = adapter.all_reduce(buffer(scalars, ranks.rank))
    reduce()
    check(reduce, scalars, ranks.count)
    blocks = Blocks(reduce, ranks, timing.clock_of(adapter), events, FLOAT * scalars)
    if not ranks.leads:
        blocks.follow()
        return
    seconds = blocks.lead(WARM_UP, WARM_UP_CALLS)
    if seconds * WARM_UP_CALLS < WARM_UP_S:
        seconds = blocks.lead(WARM_UP, _calls_within(WARM_UP_S, seconds))
    calls = _calls_within(BLOCK_S, seconds)
    for _ in range(min(BLOCKS, max(1, int(LONGEST_S / (calls * seconds))))):
        blocks.lead(COUNTED, calls)
    ranks.end()


def _calls_within(wanted_s: float, seconds: float) -> int:
    return min(MOST_CALLS, max(1, math.ceil(wanted_s / max(1e-9, seconds))))


def buffer(scalars: int, rank: int) -> Array:
    """Return the contribution of a rank, float32 (scalars,): small whole numbers, whose sums are exact."""
    return np.resize(np.arange(VALUES, dtype=np.float32) + rank, scalars)


def check(reduce: AllReduce, scalars: int, ranks: int) -> None:
    """Compare the result with the sum or mean of all ranks' contributions; Refusal: they differ."""
    found = np.asarray(reduce.result(), np.float32).reshape(-1)
    total = ranks * np.arange(VALUES, dtype=np.float32) + ranks * (ranks - 1) / 2
    expected = np.resize(total / ranks if reduce.mean else total, PIECE)
    pieces = [found[start : start + PIECE] for start in range(0, scalars, PIECE)]
    if len(found) != scalars or not all(np.allclose(each, expected[: len(each)], rtol=1e-6) for each in pieces):
        what = "mean" if reduce.mean else "sum"
        raise Refusal("ranks", f"{reduce.name} did not return the {what} of what {ranks} ranks brought.")


def staleness(
    job: Job, adapter: Adapter, build: Callable[[], CountingTrainer], events: EventWriter, ranks: Ranks
) -> None:
    """Train on one batch, and write how often a gradient of this rank had missed 0, 1, 2, ... updates of others.

    The first steps, in which ranks compile, are not in it.
    """
    if not hasattr(adapter, "counting_trainer"):
        raise Refusal("unsupported", f"The adapter of {job.case.framework} has no counting_trainer().")
    trainer, clock = build(), timing.clock_of(adapter)
    feed = itertools.repeat(trainer.put(ranks.share(batches.synthetic_batch(job.data))))
    timing.time_block(trainer, feed, WARM_UP_STEPS, clock, ranks=ranks)
    trainer.staleness()
    timing.time_block(trainer, feed, STALE_STEPS, clock, ranks=ranks)
    events.write("staleness", steps=STALE_STEPS, missed=np.bincount(trainer.staleness()).tolist())
