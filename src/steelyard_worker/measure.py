"""The order of what one process measures: its first step, then warm-up and counted blocks per input, or whole epochs."""

from __future__ import annotations

import math
import os
import signal
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard_worker import batches, end_check, evaluation, job_kinds, steady, tensors
from steelyard_worker.meters import Meters
from steelyard_worker.protocol import NOT_SCORED, Length, predictions_folder
from steelyard_worker.timing import ALONE, clock_of, monotonic, time_block

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard_worker.batches import Batch
    from steelyard_worker.frameworks.base import Adapter, Trainer
    from steelyard_worker.network import Network
    from steelyard_worker.protocol import EventWriter, Job, Schedule
    from steelyard_worker.ranks import Ranks
    from steelyard_worker.timing import Block, Recorder

# Blocks of the warm-up are short, so that a compilation in one is noticed soon.
WARMUP_BLOCK_STEPS = 5
# Blocks of an epoch last about a minute, so that a process which trains for hours shows that it is alive.
EPOCH_BLOCK_NS = 60 * 10**9
# Another process has used the processor's caches while this one waited. A step that takes longer is not noticeably slower for it.
FILLS_CACHES_S = 0.25

# What the first rank announces: a block of steps, a forward pass of an evaluation, a comparison of batches with the order, and,
# at the end, to set the trainer back and to do the certified steps again.
STEPS, FORWARD, BATCHES, BACK, AGAIN = "steps", "forward", "batches", "back", "again"

# The input pipeline that was measured last stays open until the process ends, unless it has processes of its own: TensorFlow
# takes up to five seconds to close one, and the next process would wait for it.
_open: list[Any] = []


def open_pipeline(adapter: Adapter, timed: Any, source: batches.Source, workers: int) -> Iterator[Any]:
    """Return the batches of the framework's own input pipeline, as `timed` takes them. `workers`: its processes."""
    feed = adapter.pipeline(timed, source, workers)
    if not workers:
        _open.append(feed)
    return feed


def release_pipeline() -> None:
    """Let the pipeline of an earlier input be closed, so that it neither computes nor holds memory beside the next one."""
    _open.clear()


def measure(
    job: Job,
    network: Network,
    adapter: Adapter,
    trainer: Trainer,
    events: EventWriter,
    recorder: Recorder,
    ranks: Ranks = ALONE,
) -> None:
    """Follow the schedule of one process: first step, then warm-up and counted blocks per input; or whole epochs.

    It is evaluated after `train_steps`: after the counted blocks and some training, or earlier if they would go beyond. Where it
    trains whole epochs, it is evaluated after the last one, or after each.
    """
    session = Session(
        job.schedule, network, adapter, trainer, events, recorder, device=job.case.settings.device, ranks=ranks
    )
    if not ranks.leads:
        session.follow(job)
        return
    for source in job.schedule.inputs:
        release_pipeline()
        if source == "pipeline":
            opened = batches.open_source(job.data)
            feed = session.feed(job, source)
            session.first_step(feed, source, job.spawned_ns)
            session.to_evaluate = job if job.schedule.evaluate else None
            if job.schedule.epochs:
                session.run_epochs(feed, source, opened)
            else:
                # An adaptive process takes as many steps as it needs, but every framework is evaluated after the same number.
                session.measure_input(feed, source, job.schedule.warmup)
                session.evaluate(feed)
            session.compare_batches(feed, source, job)
        else:
            feed = session.feed(job, source)
            if recorder.steps == 0:
                session.first_step(feed, source, job.spawned_ns)
            session.measure_input(feed, source, job.schedule.warmup)
    session.train_again(job)
    ranks.end()


@dataclass
class Session:
    """State that the phases of one process share. `trainer`: a Trainer, or the passes of a predictor, which is not evaluated."""

    schedule: Schedule
    network: Network
    adapter: Adapter
    trainer: Any
    events: EventWriter
    recorder: Recorder
    start_s: float = 0.0  # from the start of the process to the end of its warm-up
    step_s: float = 0.0  # of the input that was measured last; 0: none was
    to_evaluate: Job | None = None  # the job, until it has been evaluated
    block_steps: int = WARMUP_BLOCK_STEPS  # of the next block of an epoch
    compiled: int = 0  # compilations before the first step
    ahead: int = 0  # batches of the feed that were no steps
    fetched: Counter[str] = field(default_factory=Counter)  # batches that steps took, by input
    latest_s: float = 0.0  # a step of the latest block
    device: str = "cpu"
    ranks: Ranks = ALONE

    def __post_init__(self) -> None:
        self.clock = clock_of(self.adapter)
        self.meters = Meters(self.device)

    def feed(self, job: Job, source: str) -> Iterator[Any]:
        """Return the batches of an input, or this rank's shares of them, as the trainer takes them."""
        if source == "pipeline":
            opened = self.ranks.source(batches.open_source(job.data))
            return open_pipeline(self.adapter, self.trainer, opened, job.case.loader_workers)
        taking_turns = batches.synthetic_batches(job.data, job.schedule.batch)
        if job.schedule.batch:  # the largest batch that fits is one that lies on the device alone
            taking_turns = taking_turns[:1]
        return batches.Turns([self.trainer.put(self.ranks.share(batch)) for batch in taking_turns])

    def follow(self, job: Job) -> None:
        """Do what the first rank announces, until it has finished: blocks of steps, and forward passes of an evaluation."""
        feeds: dict[str, Iterator[Any]] = {}
        for order, *values in self.ranks.orders():
            if order == FORWARD:
                self._forward_together(*values)
                continue
            if order == BACK:
                end_check.set_back(job, self.trainer, self.ranks)
                continue
            if order == AGAIN:
                self._train_again_together(job, *values)
                continue
            if order == BATCHES:
                (source,) = values
                self._compare_together(feeds[source], source, job)
                continue
            source, phase, steps, epoch = values
            if source not in feeds:
                feeds[source] = self.feed(job, source)
            self.recorder.keep(self.trainer, self._block(feeds[source], source, steps), source, phase, epoch)

    def timed(
        self, feed: Iterator[Any], source: str, phase: str, steps: int, epoch: int = 0, meters: Meters | None = None
    ) -> Block:
        """Time one block, on all ranks at once."""
        self.ranks.announce((STEPS, source, phase, steps, epoch))
        return self._block(feed, source, steps, meters)

    def _block(self, feed: Iterator[Any], source: str, steps: int, meters: Meters | None = None) -> Block:
        block = time_block(self.trainer, feed, steps, self.clock, meters, self.ranks)
        self.fetched[source] += steps
        self.latest_s = block.elapsed_ns / 1e9 / steps
        return block

    def forward(self, batch: Batch) -> Batch:
        """Return the outputs for a batch of an evaluation, which the ranks share.

        The last sample is repeated where the ranks cannot share the batch equally.
        """
        samples = len(next(iter(batch.values())))
        if missing := -samples % self.ranks.count:
            rows = np.minimum(np.arange(samples + missing), samples - 1)
            batch = {name: array[rows] for name, array in batch.items()}
        self.ranks.announce((FORWARD, batch))
        found = self._forward_together(batch)
        return {name: array[:samples] for name, array in found.items()} if missing else found

    def _forward_together(self, batch: Batch) -> Batch:
        return self.ranks.joined_outputs(self.trainer.outputs(self.trainer.put(self.ranks.share(batch))))

    def compare_batches(self, feed: Iterator[Any], source: str, job: Job) -> None:
        """Compare the next batches of an input pipeline with the order, after everything that is timed on it.

        So one that left out, repeated or exchanged batches is noticed, in whichever rank.
        """
        if not job_kinds.of(job.kind).in_rounds:
            return
        self.ranks.announce((BATCHES, source))
        each = self._compare_together(feed, source, job)
        worst = max(each, key=lambda found: (found.differs, found.not_checked))
        worst.write(self.events, source, self.fetched[source] + self.ahead)
        self.recorder.peaks.end_aside(end_check.PHASE)

    def _compare_together(self, feed: Iterator[Any], source: str, job: Job) -> list[end_check.Compared]:
        opened = self.ranks.source(batches.open_source(job.data))
        fetched = self.fetched[source] + self.ahead
        return self.ranks.gathered(end_check.compared_batches(self.trainer, feed, opened, fetched))

    def train_again(self, job: Job) -> None:
        """Do the first certified steps once more, with the trainer that was timed, after everything else."""
        if reason := end_check.reason_against(job, self.trainer, self.ranks):
            end_check.EndCheck(not_checked=reason).write(self.events)
            return
        elapsed_s = (self.clock() - job.spawned_ns) / 1e9 if job.spawned_ns else math.inf
        steps = end_check.affordable_steps(job.certify.steps, self.latest_s, elapsed_s)
        if reason := end_check.left_to_the_first_round(job.round, steps, self.latest_s, elapsed_s):
            end_check.EndCheck(not_checked=reason).write(self.events)
            return
        began = monotonic()
        self.ranks.announce((BACK,))
        if reason := end_check.set_back(job, self.trainer, self.ranks):
            end_check.EndCheck(not_checked=reason).write(self.events)
            return
        self.ranks.announce((AGAIN, steps))
        self._train_again_together(job, steps).write(self.events, monotonic() - began)

    def _train_again_together(self, job: Job, steps: int) -> end_check.EndCheck:
        found = end_check.trained_again(job, self.network, self.trainer, self.ranks, steps)
        self.recorder.peaks.end_aside(end_check.PHASE)
        return found

    def first_step(self, feed: Iterator[Any], source: str, spawned_ns: int) -> None:
        """Time the first step alone: it includes compilation, allocation and autotuning, which users wait for.

        It is counted only if whole epochs are trained and none is warm-up.
        """
        self.compiled = self.adapter.compilations()
        counted = self.schedule.epochs and not self.schedule.warmup.count
        phase, epoch = "counted" if counted else "first", min(1, self.schedule.epochs)
        block = self.timed(feed, source, phase, 1, epoch)
        self.start_s = (self.clock() - spawned_ns) / 1e9 if spawned_ns else block.elapsed_ns / 1e9
        self.events.write(
            "phase", name="first-step", elapsed_ns=block.elapsed_ns, since_spawn_ns=int(self.start_s * 1e9)
        )
        self.recorder.peaks.end("first-step")
        self.recorder.keep(self.trainer, block, source, phase, epoch)

    def run_epochs(self, feed: Iterator[Any], source: str, opened: batches.Source) -> None:
        """After the first step, run whole epochs; evaluations are between the blocks."""
        schedule, recorder, steps = self.schedule, self.recorder, opened.steps_per_epoch
        seen: set[tuple[int, ...]] = set()
        for epoch in range(1, schedule.epochs + 1):
            phase = "counted" if epoch > schedule.warmup.count else "warm-up"
            before = self.adapter.compilations() if epoch > 1 else self.compiled
            while recorder.steps < epoch * steps:
                left = epoch * steps - recorder.steps
                (step_ns,) = self._run(feed, source, phase, min(left, self.block_steps), epoch)
                self.block_steps = max(1, EPOCH_BLOCK_NS // max(1, step_ns))
            shapes = opened.shapes(range(self.ahead + (epoch - 1) * steps, self.ahead + epoch * steps))
            self.events.write(
                "epoch",
                epoch=epoch,
                shapes=len(shapes),
                new_shapes=len(shapes - seen),
                compilations=self.adapter.compilations() - before,
            )
            if epoch > 1 and phase == "counted" and shapes <= seen:
                self._warn_if_compiled(before, source)
            seen |= shapes
            if schedule.evaluate_epochs and self.to_evaluate:
                self._evaluate_now(self.to_evaluate, epoch)
        if not schedule.evaluate_epochs:
            self.evaluate(feed)

    def measure_input(self, feed: Iterator[Any], source: str, warmup: Length) -> None:
        """Warm up, then take the counted blocks of one input: at least one.

        A process that has measured another input is warm, so only the change of input needs an adaptive warm-up; its second
        input is counted for the fewest steps.
        """
        adaptive, settled = warmup.unit == "adaptive", self.step_s > 0
        if adaptive and settled:
            warmup = Length("steps", steady.fewest_steps(self.step_s, steady.SETTLED_STEPS))
        self.step_s = max(1e-9, _typical(self.warm_up(feed, source, warmup)) / 1e9)
        sizes = self._block_sizes(briefly=adaptive and settled)
        again = int(self.schedule.turns and self.step_s < FILLS_CACHES_S)
        if self._evaluate_before(feed, sum(sizes) + again * len(sizes)):
            self._run(feed, source, "warm-up", WARMUP_BLOCK_STEPS)
        before = self.adapter.compilations()
        for place, size in enumerate(sizes):
            if self.schedule.turns:
                self._wait_for_turn(source, len(sizes) - place)
                self._run(feed, source, "warm-up", again)
            block = self.timed(feed, source, "counted", size, meters=self.meters)
            self.recorder.keep(self.trainer, block, source, "counted")
        self._warn_if_compiled(before, source)

    def _wait_for_turn(self, source: str, blocks: int) -> None:
        """Stop this process and those that it has started until its turn comes. `blocks`: how many it has left on this input."""
        self.events.write("waits", input=source, blocks=blocks)
        os.killpg(os.getpgrp(), signal.SIGSTOP)

    def _warn_if_compiled(self, before: int, source: str) -> None:
        if recompiled := self.adapter.compilations() - before:
            self.events.write("warning", name="compiled-while-counted", count=recompiled, input=source)

    def warm_up(self, feed: Iterator[Any], source: str, warmup: Length) -> list[int]:
        """Run the warm-up; returns the time per step (ns) of each of its blocks."""
        if warmup.unit == "adaptive":
            return self._warm_up_until_steady(feed, source)
        return self._run(feed, source, "warm-up", warmup.count)

    def _run(self, feed: Iterator[Any], source: str, phase: str, steps: int, epoch: int = 0) -> list[int]:
        """Run one block, if it has any steps; returns its time per step (ns) in a list."""
        if steps <= 0:
            return []
        block = self.timed(feed, source, phase, steps, epoch, self.meters if phase == "counted" else None)
        self.recorder.keep(self.trainer, block, source, phase, epoch)
        return [block.elapsed_ns // steps]

    def _warm_up_until_steady(self, feed: Iterator[Any], source: str) -> list[int]:
        """Return the time per step (ns) of each of the last blocks, which are equally long."""
        schedule, began = self.schedule, self.clock()
        warm_up = steady.WarmUp(schedule.warmup_min_steps, WARMUP_BLOCK_STEPS)
        while True:
            if self._evaluate_before(feed, warm_up.block):
                began = self.clock()
            compiled, steps = self.adapter.compilations(), warm_up.block
            (step_ns,) = self._run(feed, source, "warm-up", steps)
            self.start_s += step_ns * steps / 1e9
            warm_up.add(step_ns)
            elapsed_s = (self.clock() - began) / 1e9
            long_enough = elapsed_s >= schedule.warmup_min_s and warm_up.is_steady()
            if long_enough and self.adapter.compilations() == compiled:
                return warm_up.blocks_ns
            capped = warm_up.steps >= schedule.warmup_cap_steps or elapsed_s >= schedule.warmup_cap_s
            if capped and warm_up.blocks_ns:
                self.events.write("warning", name="no-steady-state", steps=warm_up.steps, input=source)
                return warm_up.blocks_ns

    def _block_sizes(self, briefly: bool) -> list[int]:
        """Return the steps of every counted block. `briefly`: in place of several turns, as few steps as are enough."""
        schedule, step_s = self.schedule, self.step_s
        if schedule.counted.unit == "steps":
            return [schedule.counted.count]
        low = steady.fewest_steps(step_s, schedule.counted_min)
        high = schedule.counted_min if briefly else schedule.counted_max
        total = steady.counted_steps(self.start_s, step_s, schedule.noise_ratio, low, high)
        shortest_s = schedule.turn_min_s if schedule.turns else schedule.block_min_s
        size = steady.block_steps(step_s, shortest_s, schedule.block_min_steps)
        fewest = steady.turns(self.start_s, size * step_s, schedule.turns) if schedule.turns and not briefly else 1
        return [size] * max(fewest, math.ceil(total / size))

    def _evaluate_before(self, feed: Iterator[Any], steps: int) -> bool:
        """Evaluate now if these steps would go beyond the step count of the evaluation; returns whether it did."""
        beyond = self.schedule.warmup.unit == "adaptive" and self.recorder.steps + steps > self.schedule.train_steps
        if not self.to_evaluate or not beyond:
            return False
        self.evaluate(feed)
        return True

    def evaluate(self, feed: Iterator[Any]) -> None:
        """Train to the step count of the evaluation, then store the predictions on the test split, unless that is done.

        Predictions come with the number of steps trained so far; the metric scores them later.
        """
        job, self.to_evaluate = self.to_evaluate, None
        if job is None:
            return
        if self.schedule.warmup.unit == "adaptive":
            self._run(feed, "pipeline", "training", self.schedule.train_steps - self.recorder.steps)
        self._evaluate_now(job)

    def _evaluate_now(self, job: Job, epoch: int = 0) -> None:
        began = self.clock()
        try:
            predictions, samples = evaluation.predictions(job, self.network, self.forward)
        except evaluation.WrongPredictions as wrong:
            self.events.write("warning", name=NOT_SCORED, reason=str(wrong))
            self.recorder.peaks.end("evaluation")
            return
        elapsed_ns = self.clock() - began
        tensors.write(predictions_folder(Path(job.folder), epoch), predictions, {"steps": self.recorder.steps})
        self.events.write("evaluated", steps=self.recorder.steps, elapsed_ns=elapsed_ns, samples=samples, epoch=epoch)
        self.recorder.peaks.end("evaluation")


def _typical(block_ns: list[int]) -> float:
    """Return the median over the last blocks; 0 without any."""
    return median(block_ns[-steady.WINDOW :]) if block_ns else 0.0
