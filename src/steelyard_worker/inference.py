"""What a process of an inference case does: forward passes in blocks for the throughput, then one by one for the latency.

Outputs stay on the device. A block has one synchronisation at each end. For the latency there is one after each batch, and the
batch lies on the device before: it is placed anew for each pass, so that nothing can be kept for a batch. The first outputs are
read back and compared with those of the certificate, and so are those of newly placed batches at the end.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard_worker import batches, end_check, measure, placed, timing
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
        self.synchronise, self.put = predictor.synchronise, predictor.put
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
) -> None:
    """Follow the schedule of one process: first batch, checked outputs, warm-up and counted blocks per input, latency."""
    schedule = job.schedule
    passes, device = Passes(predictor), job.case.settings.device
    session = measure.Session(schedule, network, adapter, passes, events, recorder, device=device)
    synthetic = batches.synthetic_batches(job.data)
    cached = [predictor.put(batch) for batch in synthetic]
    for place, source in enumerate(schedule.inputs):
        measure.release_pipeline()
        feed: Iterator[Any] = batches.Turns(cached)
        opened = None
        if source == "pipeline":
            opened = batches.open_source(job.data)
            feed = measure.open_pipeline(adapter, predictor, opened, job.case.loader_workers)
            session.ahead = CHECKED_BATCHES - 1 if place == 0 else 0
        if place == 0:
            seen: list[Any] = []
            session.first_step(_noted(feed, seen), source, job.spawned_ns)
            _check(predictor, [*seen, *_following(feed, source)], events)
        if schedule.epochs and opened:
            session.run_epochs(feed, source, opened)
        else:
            session.measure_input(feed, source, schedule.warmup)
        if opened:
            session.compare_batches(feed, source, job)
    _measure_latency(job, session, Passes(predictor, alone=True), _placed_anew(predictor, synthetic))
    _infer_again(job, session, predictor)


def _infer_again(job: Job, session: measure.Session, predictor: Predictor) -> None:
    """Compute the first outputs once more, after everything else."""
    if reason := end_check.reason_against(job, predictor, session.ranks):
        end_check.EndCheck(not_checked=reason).write(session.events)
        return
    began = timing.monotonic()
    found = end_check.inferred_again(job, predictor)
    session.recorder.peaks.end_aside(end_check.PHASE)
    found.write(session.events, timing.monotonic() - began)


def _noted(feed: Iterator[Any], seen: list[Any]) -> Iterator[Any]:
    """Yield the batches of a feed, and keep them in `seen`."""
    for batch in feed:
        seen.append(batch)
        yield batch


def _placed_anew(predictor: Predictor, taking_turns: list[batches.Batch]) -> Iterator[Any]:
    """Yield batches without end, each placed for this one time, and ready to be used."""
    for batch in batches.Turns(taking_turns):
        found = predictor.put(batch)
        placed.wait(found)
        yield found


def _following(feed: Iterator[Any], source: str) -> list[Any]:
    """Return the batches after the first whose outputs are checked; those that lie on the device have the same samples."""
    return [next(feed) for _ in range(CHECKED_BATCHES - 1)] if source == "pipeline" else []


def _check(predictor: Predictor, checked: list[Any], events: EventWriter) -> None:
    """Record the fingerprints of outputs, outside everything that is timed; outputs that are not finite end the trial."""
    for number, batch in enumerate(checked, 1):
        found = {name: fingerprint(array) for name, array in predictor.outputs(batch).items()}
        wrong = [name for name, value in found.items() if not math.isfinite(value)]
        if wrong:
            raise Refusal("nan-output", f"The output {wrong[0]} of batch {number} has values that are not finite.")
        events.write("outputs", batch=number, fingerprints=found)


def _measure_latency(job: Job, session: measure.Session, passes: Passes, feed: Iterator[Any]) -> None:
    """Time batches one by one: as many as the time for it allows, within the limits of the schedule."""
    schedule = job.schedule
    warm = timing.time_alone(passes, feed, WARMUP_BATCHES, session.clock)
    session.recorder.keep(passes, warm, "cached", "warm-up")
    fitting = int(schedule.latency_s * 1e9 * WARMUP_BATCHES / max(1, warm.elapsed_ns))
    count = min(schedule.latency_most, max(schedule.latency_fewest, fitting))
    session.recorder.keep(passes, timing.time_alone(passes, feed, count, session.clock), "cached", "latency")
