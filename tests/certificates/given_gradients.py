"""Update rules in float32 with NumPy, right and with a mistake, for the few tensors with given gradients."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.certificates import rule_inputs
from steelyard_worker import rules, tensors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard_worker.case import Optimizer
    from steelyard_worker.protocol import Job

    Array = np.ndarray[Any, Any]

SINGLE = np.float32
# Mistakes, each from its step on, counted from 1.
STOPPED_CORRECTION, STOPPED_RATE, DECAY_OUTSIDE, FORGOTTEN, EPSILON, LARGEST_MOMENT, FROZEN, UNDEFINED, *OF_GROUPS = (
    "bias correction stops at step 5",
    "learning rate stands still after step 5",
    "decay left out of the velocity",
    "momentum reset at step 50",
    "epsilon changed from step 11 on",
    "AMSGrad",
    "decay of a frozen tensor",
    "not a number",
    "rate of groups ignored",
    "decay of groups ignored",
    "groups of other tensors",
)
RATE_IGNORED, DECAY_IGNORED, OTHER_TENSORS = OF_GROUPS


# Whose rate a tensor has where groups are of other tensors.
NEIGHBOURS = {
    "kernel.weight": "kernel.bias",
    "kernel.bias": "norm.gamma",
    "norm.gamma": "norm.beta",
    "norm.beta": "table.weight",
    "table.weight": "kernel.weight",
}


def train(
    rule: Optimizer, weights: Mapping[str, Array], given: Mapping[str, Array], rates: Any, mistake: str
) -> dict[str, list[Array]]:
    """Return every tensor before the first step and after each; everything is computed in float32."""
    p = {name: array.copy() for name, array in weights.items()}
    m = {name: np.zeros_like(array) for name, array in p.items()}
    v, most = ({name: np.zeros_like(array) for name, array in p.items()} for _ in range(2))
    states = {name: [array.copy()] for name, array in p.items()}
    for t, gradients in enumerate(rule_inputs.gradients(dict(given)), 1):
        place = min(t, 5) if mistake == STOPPED_RATE else t
        rate = SINGLE(rates[place - 1] if rates is not None else rule.learning_rate)
        norm = SINGLE(np.sqrt(sum(np.sum(np.square(g.astype(SINGLE))) for g in gradients.values())))
        scale = SINGLE(rule.clip) / norm if rule.clip and norm > rule.clip else SINGLE(1)
        of_step = rate
        for name, gradient in gradients.items():
            multiple = rule.rate_of(NEIGHBOURS[name] if mistake == OTHER_TENSORS else name)
            rate = of_step * SINGLE(1 if mistake == RATE_IGNORED else multiple)
            g = gradient.astype(SINGLE) * scale
            own = rule if mistake != DECAY_IGNORED else replace(rule, groups=())
            decay = SINGLE(own.decay_of(name))
            if mistake == FORGOTTEN and t == 50:
                m[name][...] = 0
            if rule.name == "sgd":
                outside = mistake == DECAY_OUTSIDE
                g = g if outside else g + decay * p[name]
                m[name] = SINGLE(rule.momentum) * m[name] + g
                change = g + SINGLE(rule.momentum) * m[name] if rule.nesterov else m[name]
                p[name] -= rate * (change + decay * p[name] if outside else change)
                continue
            epsilon = rule.epsilon * (2 if mistake == EPSILON and t >= 11 else 1)
            if rule.name == "adamw":
                p[name] *= 1 - rate * decay
            elif rule.name == "adam":
                g = g + decay * p[name]
            m[name] = SINGLE(rule.beta1) * m[name] + SINGLE(1 - rule.beta1) * g
            v[name] = SINGLE(rule.beta2) * v[name] + SINGLE(1 - rule.beta2) * g * g
            most[name] = np.maximum(most[name], v[name])
            second_moment = most[name] if mistake == LARGEST_MOMENT else v[name]
            first, second = rule.corrections(min(t, 5) if mistake == STOPPED_CORRECTION else t)
            change = m[name] / SINGLE(first) / (np.sqrt(second_moment / SINGLE(second)) + SINGLE(epsilon))
            if rule.name == "lamb":
                change = change + decay * p[name]
                rate_of = rate * np.linalg.norm(p[name]) / np.linalg.norm(change)
                p[name] -= SINGLE(rate_of) * change
            else:
                p[name] -= rate * change
        if mistake == FROZEN:
            p["fixed.weight"] *= SINGLE(1 - 1e-6)
        if mistake == UNDEFINED and t == 7:
            p["norm.beta"][0] = np.nan
        for name, array in p.items():
            states[name].append(array.copy())
    return states


def dump(
    rule: Optimizer, weights: Mapping[str, Array], given: Mapping[str, Array], rates: Any = None, mistake: str = ""
) -> dict[str, Array]:
    """Return what `steelyard_worker.rules.dump` saves."""
    stronger, factor = rules.strong(rule)
    scaled = None if rates is None else np.asarray(rates) * SINGLE(factor)
    found = {}
    for part, own, of_steps in ((rules.OWN, rule, rates), (rules.STRONG, stronger, scaled)):
        for name, states in train(own, weights, given, of_steps, mistake).items():
            found[f"{part}/{name}"] = np.stack(states)
    return found


def write(job: Job, mistake: str = "") -> None:
    """Write what the process of a job saves."""
    rates = tensors.read(Path(job.rates))["rates"] if job.rates else None
    rule = replace(job.case.optimizer, implementation="reference")
    found = dump(rule, tensors.read(Path(job.weights)), tensors.read(Path(job.data.synthetic)), rates, mistake)
    tensors.write(Path(job.folder) / "perturbation0", found)
    (Path(job.folder) / "events.jsonl").write_text("")
