"""Learning rates of every step as arrays, made once for all frameworks, so that none computes a schedule of its own (P-46)."""

import hashlib
import math
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard.files.paths import cache_folder
from steelyard_worker.case import Case, Optimizer

Rates = np.ndarray[Any, np.dtype[np.float32]]

FEWEST_REAL = 2
"""The steps of a certificate that have the learning rates of the first steps of training."""


def check(case: Case) -> None:
    """Check that the learning rates of a case can be computed. UserError: they change by epochs, and it has no data."""
    schedule = case.optimizer.schedule
    if schedule.changes and schedule.unit == "epochs" and not case.data:
        raise UserError(
            f"The learning rate of {case.workload}:{case.preset} changes by epochs, but synthetic batches have none. Choose a "
            "preset with data, another optimizer, or a schedule with unit = 'steps'."
        )


def write(rule: Optimizer, steps: int, per_epoch: int) -> Path | None:
    """Return the tensors folder with `rates` of these steps, float32; None for a constant rate. The first call writes it."""
    return _placed(learning_rates(rule, steps, per_epoch)) if rule.schedule.changes else None


def write_certificate(rule: Optimizer, steps: int, per_epoch: int) -> str:
    """Return the tensors folder with the rates of a certificate's steps; empty for a constant rate."""
    return str(_placed(certificate_rates(rule, steps, per_epoch))) if rule.schedule.changes else ""


def _placed(found: Rates) -> Path:
    folder = cache_folder() / "data" / "rates" / atomic.key("rates", hashlib.sha256(found.tobytes()).hexdigest())
    return atomic.place_tensors(folder, lambda: {"rates": found}, {"steps": len(found)})


def learning_rates(rule: Optimizer, steps: int, per_epoch: int) -> Rates:
    """Return the learning rate of each of the first `steps` steps, float32 (steps,), computed in float64.

    `per_epoch`: steps of an epoch.
    """
    schedule, size = rule.schedule, per_epoch if rule.schedule.unit == "epochs" else 1
    step = np.arange(steps, dtype=np.float64)
    scale: np.ndarray[Any, np.dtype[np.floating[Any]]] = np.ones(steps)
    if schedule.kind == "cosine":
        scale = (1 + np.cos(np.pi * np.minimum(step / (schedule.length * size), 1))) / 2
    elif schedule.kind == "step":
        places = np.array(schedule.at or [0]) * size
        passed = np.searchsorted(places, step, side="right") if schedule.at else step // (schedule.every * size)
        scale = float(schedule.factor) ** passed
    if schedule.warmup:
        scale = scale * np.minimum((step + 1) / (schedule.warmup * size), 1)
    return (rule.learning_rate * scale).astype(np.float32)


def certificate_rates(rule: Optimizer, steps: int, per_epoch: int) -> Rates:
    """Return learning rates for the steps of a certificate: those of the first steps, then some from the whole schedule.

    They change, even where the first change of the schedule comes after thousands of steps. The losses of the first
    `comparable_losses` steps are those of training.
    """
    schedule, size = rule.schedule, per_epoch if rule.schedule.unit == "epochs" else 1
    # Two changes of a step, most of a cosine, whose end is 0, or half of the warm-up, at whose end the rate is the usual one.
    reach = {"step": max((2 * schedule.every, *schedule.at)) * size, "cosine": 0.9 * schedule.length * size}
    last = math.floor(reach.get(schedule.kind, schedule.warmup * size / 2 - 1))
    real = min(FEWEST_REAL, steps - 1)
    spread = [math.ceil(last * (place + 1) / (steps - real)) for place in range(steps - real)]
    return learning_rates(rule, max(last + 1, real), per_epoch)[[*range(real), *spread]]


def comparable_losses(rule: Optimizer, steps: int) -> int:
    """Return how many losses of a certificate of this many steps are those of training: each depends on earlier updates only."""
    return min(FEWEST_REAL, steps - 1) + 1 if rule.schedule.changes else steps
