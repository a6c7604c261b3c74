"""Blocks of steps: how one is timed and recorded; only this module reads the clock.

Within a block nothing is read back from the device: there is one synchronisation at each end and one time stamp per step.
"""

from __future__ import annotations

import math
import time
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from steelyard_worker import traffic
from steelyard_worker.memory import Peaks
from steelyard_worker.protocol import LOSSES, SAMPLES, Refusal
from steelyard_worker.ranks import Ranks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from steelyard_worker.frameworks.base import Adapter, Array
    from steelyard_worker.meters import Meters
    from steelyard_worker.protocol import EventWriter

    Clock = Callable[[], int]

# The phase of all blocks on the second input of a process, where its peak memory is recorded.
SECOND_INPUT = "second input"
ALONE = Ranks()

# Bound here, before an implementation is loaded, so that one that replaces functions of `time` does not reach them.
monotonic: Clock = time.perf_counter_ns
processor_time: Clock = time.process_time_ns


def clock_of(adapter: Adapter) -> Clock:
    """Return the clock of the process: the machine's, or the scripted one of a fake framework."""
    return getattr(adapter, "scripted_clock", monotonic)


class Steps(Protocol):
    """An object whose steps are timed: a trainer, or the passes of a predictor."""

    def step(self, batch: Any) -> Any:
        """Do one step; it may return before the work is done."""

    def synchronise(self) -> None:
        """Wait until every step has finished."""

    def losses(self, handles: list[Any]) -> Array:
        """Return the losses of steps, float32: one for each handle, or none at all."""


@dataclass(frozen=True)
class Block:
    """Consecutive steps between two synchronisations.

    `stamps_ns[i]` is the clock when the call of step i returned. It is for diagnosis only, as calls may return before the work
    is done. `cpu_ns` is the CPU time that all threads of the process used: it stands still while the process does.
    `energy_uj`: what each meter of the machine counted, microjoules. `gpu_percent`: use of the GPU at the end; None: not known.
    `carried`: by the connections of this rank; None of a single process, and where that cannot be seen.
    """

    start_ns: int
    elapsed_ns: int
    cpu_ns: int
    stamps_ns: array[int]
    handles: list[Any]
    energy_uj: dict[str, int] = field(default_factory=dict)
    gpu_percent: int | None = None
    carried: traffic.Traffic | None = None


def time_block(
    timed: Steps, feed: Iterator[Any], steps: int, clock: Clock, meters: Meters | None = None, ranks: Ranks = ALONE
) -> Block:
    """Time `steps` steps; fetching batches from the feed is included, as it is part of real training.

    Where the framework drives the training, its own loop does the steps. Meters and the counters of connections are read before
    and after what is timed. All ranks begin together, and a block ends when the last of them has finished.
    """
    stamps, handles, step, run = array("q"), [], timed.step, getattr(timed, "run", None)
    timed.synchronise()
    before, connections = meters.read() if meters else {}, ranks.carried()
    ranks.barrier()
    cpu = processor_time()
    start = clock()
    if run:
        handles = run(feed, steps, lambda: stamps.append(clock()))
    else:
        for _ in range(steps):
            handles.append(step(next(feed)))
            stamps.append(clock())
    timed.synchronise()
    ranks.barrier()
    end = clock()
    cpu = processor_time() - cpu
    energy, carried = meters.since(before) if meters else {}, traffic.since(connections, ranks.carried())
    gpu = meters.gpu_percent() if meters else None
    return Block(start, end - start, cpu, stamps, handles, energy, gpu, carried)


def time_alone(timed: Steps, feed: Iterator[Any], steps: int, clock: Clock) -> Block:
    """Time `steps` steps one by one; what `timed.step` does must be done when it returns.

    Fetching a batch is no part of a step. The times of a block are those of its steps, one after the other, without what was
    between them.
    """
    stamps, handles, elapsed, cpu = array("q"), [], 0, 0
    first = clock()
    for number in range(steps):
        batch = next(feed)
        timed.synchronise()
        before, start = time.process_time_ns(), clock()
        handles.append(timed.step(batch))
        elapsed += clock() - start
        cpu += time.process_time_ns() - before
        first = first if number else start
        stamps.append(first + elapsed)
    return Block(first, elapsed, cpu, stamps, handles)


class Recorder:
    """Turns blocks into events; stamps and losses go to binary files. Each block ends a phase of `peaks`."""

    def __init__(self, folder: Path, events: EventWriter, peaks: Peaks | None = None, ranks: Ranks = ALONE) -> None:
        self._samples = (folder / SAMPLES).open("ab")
        self._losses = (folder / LOSSES).open("ab")
        self._events = events
        self._ranks = ranks
        self.peaks = peaks or Peaks()
        self._first_input = ""
        self.steps = 0

    def keep(self, timed: Steps, block: Block, source: str, phase: str, epoch: int = 0) -> None:
        """Read back the losses of a block and store it, outside the timed region; a loss that is not finite ends the trial.

        `epoch` counts from 1; 0 where a process does not train whole epochs.
        """
        losses, steps = self._ranks.joined_losses(timed.losses(block.handles)), len(block.stamps_ns)
        for file, values in ((self._samples, block.stamps_ns), (self._losses, losses)):
            file.write(values.tobytes())
            file.flush()
        self._events.write(
            "samples",
            input=source,
            phase=phase,
            steps=steps,
            start_ns=block.start_ns,
            elapsed_ns=block.elapsed_ns,
            cpu_ns=block.cpu_ns,
            energy_uj=block.energy_uj,
            gpu_percent=block.gpu_percent,
            first_step=self.steps,
            epoch=epoch,
            sent_bytes=block.carried.sent if block.carried else None,
            received_bytes=block.carried.received if block.carried else None,
        )
        self.steps += steps
        if not math.isfinite(losses.sum(dtype="f8")):
            self._refuse(losses)
        self._first_input = self._first_input or source
        if phase != "first":
            self.peaks.end(phase if source == self._first_input else SECOND_INPUT)

    def close(self) -> None:
        """Close the files."""
        self._samples.close()
        self._losses.close()

    def _refuse(self, losses: Array) -> None:
        for number, loss in enumerate(losses.tolist(), self.steps - len(losses) + 1):
            if not math.isfinite(loss):
                raise Refusal("nan-loss", f"The loss of training step {number} is {loss}.")
