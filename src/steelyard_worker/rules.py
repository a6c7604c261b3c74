"""Train a few tensors with given gradients, so that the update rule is seen by itself (see `update_rule/network.py`)."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard_worker import progress, tensors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from steelyard_worker.case import Optimizer
    from steelyard_worker.frameworks.base import Trainer
    from steelyard_worker.protocol import EventWriter, Job

    Array = np.ndarray[Any, Any]

STEPS = 200
# The rule is checked with its own constants, and once more with a learning rate and a weight decay that show in every step: a
# usual weight decay at a usual rate changes a weight by less than its rounding.
OWN, STRONG = "own", "strong"
STRONG_RATE, STRONG_DECAY = 2.0**-5, 2.0**-5


def strong(optimizer: Optimizer) -> tuple[Optimizer, float]:
    """Return the rule with a learning rate and a weight decay that show, and what the rates of its schedule are multiplied by."""
    factor = STRONG_RATE / optimizer.learning_rate
    decay = STRONG_DECAY if optimizer.weight_decay else 0.0
    return replace(optimizer, learning_rate=STRONG_RATE, weight_decay=decay), factor


def dump(job: Job, weights: Mapping[str, Array], build: Callable[..., Trainer], events: EventWriter) -> None:
    """Write `perturbation0`: own/<tensor>, which has the tensor before the first step and after every step, and strong/<tensor>.

    The inputs of a step are the arrays of the job's synthetic batch at its place.
    """
    build = progress.reported(build, events)
    given = tensors.read(Path(job.data.synthetic))
    rule, factor = strong(job.case.optimizer)
    found = _trained(OWN, build(weights), given)
    gc.collect()
    found |= _trained(STRONG, build(weights, rule, "trainer", factor), given)
    folder = Path(job.folder) / "perturbation0"
    tensors.write(folder, found, {"steps": STEPS})
    events.write("tensors", perturbation=0, folder=folder.name)


def _trained(part: str, trainer: Trainer, given: Mapping[str, Array]) -> dict[str, Array]:
    states = [_state(trainer)]
    for step in range(STEPS):
        trainer.step(trainer.put({name: np.array(array[step : step + 1]) for name, array in given.items()}))
        trainer.synchronise()
        states.append(_state(trainer))
    return {f"{part}/{name}": np.stack([each[name] for each in states]) for name in states[0]}


def _state(trainer: Trainer) -> dict[str, Array]:
    return {name: np.array(array) for name, array in trainer.state().items()}
