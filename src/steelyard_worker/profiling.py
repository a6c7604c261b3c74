"""Which operations of the framework run when: steps under its own profiler, in a process that is in no verdict.

The same number of steps is timed without the profiler before and after, so that its cost is known. All times of a profile are
nanoseconds since the start of the profiled block. Of several ranks the first one is profiled, and the others do the same steps.
"""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from steelyard_worker import batches, inference, measure, tensors, timing
from steelyard_worker.case import INFERENCE
from steelyard_worker.protocol import PROFILE, PROFILE_BEGINS, PROFILE_ENDS, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from steelyard_worker.frameworks.base import Adapter, Array
    from steelyard_worker.network import Network
    from steelyard_worker.protocol import EventWriter, Job
    from steelyard_worker.ranks import Ranks

    Event = tuple[Any, str, float, float]

# The profiled block lasts about this long: a profile of thousands of operations per step needs memory and disk.
BLOCK_S = 1.0
FEWEST_STEPS, MOST_STEPS = 3, 20
# Blocks without the profiler on either side of the profiled one.
PLAIN_BLOCKS = 2


class Profiler(Protocol):
    """A framework's own profiler. It keeps its trace files in the folder that it was made with."""

    def record(self, work: Callable[[], None]) -> None:
        """Run `work` under the profiler. Called several times; only the last record counts."""

    def operations(self) -> tuple[float, list[Event]]:
        """Return the start of `work`, and (thread, name, start, duration) of every event, all in ns of the profiler's clock."""

    def files(self) -> list[Path]:
        """Return the trace files that a person can open."""


@dataclass(frozen=True)
class Operations:
    """The events of a block. `names`: the different names; the arrays have one element per event, int32 and int64."""

    names: list[str]
    thread: Array
    name: Array
    start_ns: Array
    duration_ns: Array


def gathered(origin_ns: float, events: list[Event]) -> Operations:
    """Return events with times since `origin_ns`, ordered by start, longer ones first where they start together."""
    ordered = sorted(events, key=lambda event: (event[2], -event[3]))
    names, threads = dict[str, int](), dict[Any, int]()
    return Operations(
        name=np.array([names.setdefault(each[1], len(names)) for each in ordered], np.int32),
        thread=np.array([threads.setdefault(each[0], len(threads)) for each in ordered], np.int32),
        start_ns=np.array([round(each[2] - origin_ns) for each in ordered], np.int64),
        duration_ns=np.array([round(each[3]) for each in ordered], np.int64),
        names=list(names),
    )


class Waiting:
    """A feed that records the waiting time for each batch."""

    def __init__(self, feed: Iterator[Any], clock: timing.Clock) -> None:
        self._feed, self._clock = feed, clock
        self.waits: list[tuple[int, int]] = []

    def __iter__(self) -> Waiting:
        return self

    def __next__(self) -> Any:
        began = self._clock()
        batch = next(self._feed)
        self.waits.append((began, self._clock() - began))
        return batch


def profile(
    job: Job,
    network: Network,
    adapter: Adapter,
    built: Any,
    events: EventWriter,
    recorder: timing.Recorder,
    ranks: Ranks = timing.ALONE,
) -> None:
    """Warm up on the first input of the schedule, then time plain blocks, a profiled one, and plain blocks again."""
    if not hasattr(adapter, "profiler"):
        raise Refusal("unsupported", f"The adapter of {job.case.framework} has no profiler().")
    folder, clock = Path(job.folder), timing.clock_of(adapter)
    source, *_ = job.schedule.inputs
    timed = inference.Passes(built) if job.case.task == INFERENCE else built
    session = measure.Session(job.schedule, network, adapter, timed, events, recorder, ranks=ranks)
    if not ranks.leads:
        session.follow(job)
        return
    batch = built.put(ranks.share(batches.synthetic_batch(job.data)))
    feed: Any = itertools.repeat(batch)
    if source == "pipeline":
        feed = adapter.pipeline(built, ranks.source(batches.open_source(job.data)), job.case.loader_workers)
    session.first_step(feed, source, job.spawned_ns)
    step_ns = median(session.warm_up(feed, source, job.schedule.warmup)[-3:])
    steps = min(MOST_STEPS, max(FEWEST_STEPS, math.ceil(BLOCK_S * 1e9 / max(1, step_ns))))

    def plain() -> None:
        for _ in range(PLAIN_BLOCKS):
            recorder.keep(timed, session.timed(feed, source, "plain", steps), source, "plain")

    def profiled(phase: str, steps: int) -> timing.Block:
        kept: list[timing.Block] = []
        profiler.record(lambda: kept.append(session.timed(waiting, source, phase, steps)))
        return kept[0]

    plain()
    profiler: Profiler = adapter.profiler(folder / PROFILE, built, batch)
    waiting = feed if hasattr(timed, "run") else Waiting(feed, clock)
    # The first session of a profiler starts threads and allocates.
    recorder.keep(timed, profiled("warm-up", 1), source, "warm-up")
    if isinstance(waiting, Waiting):
        waiting.waits.clear()
    print(PROFILE_BEGINS, flush=True)
    block = profiled("profiled", steps)
    print(PROFILE_ENDS, flush=True)
    recorder.keep(timed, block, source, "profiled")
    plain()
    ranks.end()
    began = time.perf_counter()
    found = gathered(*profiler.operations())
    if not found.names:
        raise Refusal("unsupported", f"The profiler of {job.case.framework} recorded no operation.")
    waits = np.array(waiting.waits if isinstance(waiting, Waiting) else [], np.int64).reshape(-1, 2)
    waits[:, 0] -= block.start_ns
    arrays = {"thread": found.thread, "name": found.name, "start_ns": found.start_ns, "duration_ns": found.duration_ns}
    tensors.write(folder / PROFILE / "operations", arrays | {"waits_ns": waits}, {"names": found.names})
    events.write(
        "profiled",
        steps=steps,
        elapsed_ns=block.elapsed_ns,
        cpu_ns=block.cpu_ns,
        events=len(found.name),
        files=[str(path.relative_to(folder)) for path in profiler.files()],
        read_s=round(time.perf_counter() - began, 3),
    )
