"""At the end of a process: is what it computes still what was certified, and were its batches those of the order?

The trainer that was timed gets the initial weights back and does the first steps of the certificate once more; a predictor
computes the outputs of its first batches on newly placed ones. Nothing of this is timed. The orchestrator compares it with the
certificate.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard_worker import batches, certify, distances, job_kinds, placed, tensors
from steelyard_worker.case import INFERENCE
from steelyard_worker.network import STATISTICS
from steelyard_worker.protocol import CHECKED_BATCHES, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from steelyard_worker.frameworks.base import Array, Predictor, Trainer
    from steelyard_worker.network import Network
    from steelyard_worker.protocol import EventWriter, Job
    from steelyard_worker.ranks import Ranks

# The phase in which its peak memory is recorded, which is no part of that of the process.
PHASE = "end check"
# Steps that are done again take at most this share of the time since the process was started, but they are at least two: the
# memory of an update rule shows in the second.
SHARE_OF_TIME = 0.02
FEWEST_STEPS = 2
# Batches of a pipeline that are compared with the order at its end.
COMPARED_BATCHES = 3


@dataclass(frozen=True)
class EndCheck:
    """The results of the repeated computation (see the event `end-check`), or why there are none."""

    losses: list[float] = field(default_factory=list)
    changes: dict[str, list[float]] = field(default_factory=dict)
    unequal: str = ""
    outputs: dict[str, float] = field(default_factory=dict)
    not_checked: str = ""

    def write(self, events: EventWriter, elapsed_ns: int = 0) -> None:
        """Record it; `elapsed_ns`: how long it took."""
        events.write(
            "end-check",
            losses=self.losses,
            changes=self.changes,
            unequal=self.unequal,
            outputs=self.outputs,
            not_checked=self.not_checked,
            elapsed_ns=elapsed_ns,
        )


@dataclass(frozen=True)
class Compared:
    """How many batches of an input pipeline were compared with the order, the first that differs (0: none), or why none was."""

    compared: int = 0
    differs: int = 0
    not_checked: str = ""

    def write(self, events: EventWriter, source: str, fetched: int) -> None:
        """Record it of an input, of which `fetched` batches had been taken."""
        events.write(
            "batches",
            input=source,
            fetched=fetched,
            compared=self.compared,
            differs=self.differs,
            not_checked=self.not_checked,
        )


NO_RESTART = "the trainer cannot be set back"
OWN_LOOP = "the framework's own loop reads the input pipeline"
UNREADABLE = "the batches of this input pipeline cannot be read as arrays"


def reason_against(job: Job, trainer: Any, ranks: Ranks) -> str:
    """Return why a process is not compared with its certificate at its end, as the end of a sentence; empty where it is."""
    if not job_kinds.of(job.kind).in_rounds:
        return "the process measures nothing for a verdict"
    if job.schedule.batch:
        return "the process has another batch size than the certificate"
    if job.schedule.inputs[0] != ("pipeline" if job.data.prepared else "cached"):
        return "the process begins with the synthetic batch, the certificate with data"
    if job.case.task == INFERENCE:
        return ""
    if ranks.spread and ranks.spread.does.otherwise:
        return "the strategy computes something else on purpose"
    return "" if hasattr(trainer, "restart") else NO_RESTART


def affordable_steps(certified: int, step_s: float, elapsed_s: float) -> int:
    """Return how many of the certified steps are done again by a process that has run for `elapsed_s`; a step takes `step_s`."""
    fits = int(min(certified, SHARE_OF_TIME * elapsed_s / step_s)) if step_s > 0 else certified
    return min(certified, max(FEWEST_STEPS, fits))


def left_to_the_first_round(number: int, steps: int, step_s: float, elapsed_s: float) -> str:
    """Return why a process of a later round does not do `steps` steps again, as the end of a sentence; empty where it does.

    All rounds run the same code, so where the steps take more than their share of the time, that of the first round is enough.
    """
    if number > 1 and steps * step_s > SHARE_OF_TIME * elapsed_s:
        return f"the first round was, and here {steps} steps take more than {100 * SHARE_OF_TIME:.0f} % of the time"
    return ""


def set_back(job: Job, trainer: Trainer, ranks: Ranks) -> str:
    """Give a trainer its initial weights back; called on all ranks. Returns why one of them cannot do so; empty: all have."""
    reason = ""
    try:
        trainer.restart(tensors.read(Path(job.weights)))
    except Refusal as refusal:
        if refusal.kind != "unsupported":
            raise
        reason = f"{NO_RESTART} ({str(refusal).rstrip('.')})"
    return next(filter(None, ranks.gathered(reason)), "")


def trained_again(job: Job, network: Network, trainer: Trainer, ranks: Ranks, steps: int) -> EndCheck:
    """Do the first `steps` steps of its certificate with a trainer that was set back; called on all ranks.

    The first rank returns what all of them found. Refusal: a loss or a change is not finite.
    """
    names = [each.name for each in network.parameters if each.trainable or each.kind in STATISTICS]
    start, changes = _sampled(trainer, names), dict[str, Any]()
    handles = []
    for number, batch in enumerate(certify.certified_batches(job, steps), 1):
        handles.append(trainer.step(trainer.put(ranks.share(batch))))
        trainer.synchronise()
        if number == min(distances.CHANGED_AFTER, job.certify.steps):
            reached = _sampled(trainer, names)
            changes = {name: reached[name] - start[name] for name in reached}
    losses = ranks.joined_losses(trainer.losses(handles))
    found, unequal = _joined(ranks.gathered(changes), names)
    if ranks.leads:
        _check_finite(losses, found)
    written = {name: distances.written(values) for name, values in found.items()}
    return EndCheck([float(loss) for loss in losses], written, unequal)


def inferred_again(job: Job, predictor: Predictor) -> EndCheck:
    """Compute the first outputs once more, on newly placed batches. Refusal: one is not finite."""
    found = dict[str, float]()
    for number, batch in enumerate(certify.certified_batches(job, CHECKED_BATCHES if job.data.prepared else 1), 1):
        for name, array in predictor.outputs(predictor.put(batch)).items():
            found[f"inference{number}/{name}"] = value = certify.fingerprint(array)
            if not math.isfinite(value):
                message = (
                    f"At the end of the process, the output {name} of batch {number} has values that are not finite."
                )
                raise Refusal("nan-output", message)
    return EndCheck(outputs=found)


def compared_batches(trainer: Any, feed: Iterator[Any], source: batches.Source, fetched: int) -> Compared:
    """Compare the next batches of an input pipeline, after `fetched` ones, with those that the order has there."""
    if hasattr(trainer, "run"):
        return Compared(not_checked=OWN_LOOP)
    for step, batch in enumerate(itertools.islice(feed, COMPARED_BATCHES), fetched):
        found, expected = placed.arrays(batch), placed.arrays(trainer.put(source.batch(step)))
        if found is None or expected is None or len(found) != len(expected):
            return Compared(not_checked=UNREADABLE)
        if not placed.alike(found, expected):
            return Compared(step - fetched + 1, step + 1)
    return Compared(COMPARED_BATCHES)


def _sampled(trainer: Trainer, names: list[str]) -> dict[str, Array]:
    """Return some elements of each of these tensors, as far as this rank has them: float64, at places that depend on its size."""
    state = trainer.state()
    return {name: distances.some_elements(state[name]) for name in names if name in state}


def _joined(found: list[Mapping[str, Array]], names: list[str]) -> tuple[dict[str, Array], str]:
    """Return what any rank has of each tensor, and the first tensor of which ranks have different values; empty: none."""
    parts = {name: [each[name] for each in found if name in each] for name in names}
    unequal = (name for name, each in parts.items() if not all(np.array_equal(each[0], other) for other in each[1:]))
    return {name: each[0] for name, each in parts.items() if each}, next(unequal, "")


def _check_finite(losses: Array, changes: Mapping[str, Array]) -> None:
    for step, loss in enumerate(losses.tolist(), 1):
        if not math.isfinite(loss):
            raise Refusal("nan-loss", f"At the end of the process, the loss of certified step {step} is {loss}.")
    for name, values in changes.items():
        if not np.isfinite(values).all():
            message = (
                f"At the end of the process, certified steps change the tensor '{name}' to values that are not finite."
            )
            raise Refusal("nan-loss", message)
