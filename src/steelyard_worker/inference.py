"""What a process of an inference case does: forward passes in blocks for the throughput, then one by one for the latency.

Outputs stay on the device. A block has one synchronisation at each end. For the latency there is one after each batch, and the
batch lies on the device before. The first outputs are read back and compared with those of the certificate.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard_worker import batches, measure, timing
from steelyard_worker.certify import fingerprint
from steelyard_worker.protocol import CHECKED_BATCHES, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard_worker.frameworks.base import Adapter, Array, Predictor
    from steelyard_worker.network import Network
    from steelyard_worker.protocol import EventWriter, Job

# Batches that are timed one by one before those of the latency, to see how many of these fit.
WARMUP_BATCHES = 5


class Passes:
    """A predictor in the place of a trainer: a step is a forward pass, and there are no losses.

    Only the latest outputs are kept, as in a user's loop. `alone`: wait for each pass before the next one.
    """

    def __init__(self, predictor: Predictor, alone: bool = False) -> None:
        self._infer, self._alone = predictor.infer, alone
        self.synchronise = predictor.synchronise
        self._latest: Any = None

    def step(self, batch: Any) -> None:
        """Run one forward pass."""
        self._latest = self._infer(batch)
        if self._alone:
            self.synchronise()

    def losses(self, handles: list[Any]) -> Array:
        """Return no losses."""
        del handles
        return np.empty(0, np.float32)


def measure_inference(
    job: Job, network: Network, adapter: Adapter, predictor: Predictor, events: EventWriter, recorder: timing.Recorder
) -> None:  # fmt: skip
    """Follow the schedule of one process: first batch, checked outputs, warm-up and counted blocks per input, latency."""
    schedule = job.schedule
    passes, device = Passes(predictor), job.case.settings.device
    session = measure.Session(schedule, network, adapter, passes, events, recorder, device=device)
    cached = predictor.put(batches.synthetic_batch(job.data))
    for place, source in enumerate(schedule.inputs):
        measure.release_pipeline()
        feed: Iterator[Any] = itertools.repeat(cached)
        opened = None
        if source == "pipeline":
            opened = batches.open_source(job.data)
            feed = measure.open_pipeline(adapter, predictor, opened, job.case.loader_workers)
            session.ahead = CHECKED_BATCHES - 1
        if place == 0:
            seen: list[Any] = []
            session.first_step(_noted(feed, seen), source, job.spawned_ns)
            _check(predictor, [*seen, *_following(feed, source)], events)
        if schedule.epochs and opened:
            session.run_epochs(feed, source, opened)
        else:
            session.measure_input(feed, source, schedule.warmup)
    _measure_latency(job, session, Passes(predictor, alone=True), cached)


def _noted(feed: Iterator[Any], seen: list[Any]) -> Iterator[Any]:
    """Yield the batches of a feed, and keep them in `seen`."""
    for batch in feed:
        seen.append(batch)
        yield batch


def _following(feed: Iterator[Any], source: str) -> list[Any]:
    """Return the batches after the first whose outputs are checked; a cached batch is always the same."""
    return [next(feed) for _ in range(CHECKED_BATCHES - 1)] if source == "pipeline" else []


def _check(predictor: Predictor, checked: list[Any], events: EventWriter) -> None:
    """Record the fingerprints of outputs, outside everything that is timed; outputs that are not finite end the trial."""
    for number, batch in enumerate(checked, 1):
        found = {name: fingerprint(array) for name, array in predictor.outputs(batch).items()}
        wrong = [name for name, value in found.items() if not math.isfinite(value)]
        if wrong:
            raise Refusal("nan-output", f"The output {wrong[0]} of batch {number} has values that are not finite.")
        events.write("outputs", batch=number, fingerprints=found)


def _measure_latency(job: Job, session: measure.Session, passes: Passes, batch: Any) -> None:
    """Time batches one by one: as many as the time for it allows, within the limits of the schedule."""
    schedule, feed = job.schedule, itertools.repeat(batch)
    warm = timing.time_block(passes, feed, WARMUP_BATCHES, session.clock)
    session.recorder.keep(passes, warm, "cached", "warm-up")
    fitting = int(schedule.latency_s * 1e9 * WARMUP_BATCHES / max(1, warm.elapsed_ns))
    count = min(schedule.latency_most, max(schedule.latency_fewest, fitting))
    session.recorder.keep(passes, timing.time_block(passes, feed, count, session.clock), "cached", "latency")
