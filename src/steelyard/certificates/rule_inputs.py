"""The weights and gradients with which an update rule is checked by itself: small tensors, drawn once for all frameworks."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.files import atomic
from steelyard.files.paths import cache_folder
from steelyard_worker.network import Network
from steelyard_worker.rules import STEPS

Array = np.ndarray[Any, Any]

SEED = 20
# Powers of ten between which the elements of a gradient lie before a step scales all of them.
SMALLEST, LARGEST = -6.0, 0.5
# Steps with gradients a hundred times as large, and steps in which all gradients are nearly zero: there the state of a rule
# matters most.
LOUD = (3, 60)
QUIET = range(110, 160)
LOUD_FACTOR, QUIET_FACTOR = 100.0, 1e-4
# Elements whose gradient is always zero, so that they only decay; those whose gradient is zero in the first steps; and how often
# the gradient of another one is zero.
STILL, LATE, LATE_STEPS, ZERO = 0.1, 0.1, 20, 0.1
# Norms of gradients that are to be clipped, as powers of ten of the limit, and how close to the limit none is.
NORMS, APART = 1.5, 0.1


def write(network: Network, clip: float) -> tuple[Path, Path]:
    """Return the tensors folders of the weights and of the inputs of all steps, which are written where they are missing.

    `clip`: limit of the global norm of a step's gradients, which is exceeded in some steps; 0: there is none.
    """
    folder = cache_folder() / "data" / "update-rules"
    key = atomic.key("rule", SEED, STEPS, [[each.name, each.shape] for each in network.parameters], clip)
    weights = atomic.place_tensors(folder / f"weights-{key}", lambda: _weights(network), {})
    inputs = atomic.place_tensors(folder / f"inputs-{key}", lambda: _inputs(network, clip), {"steps": STEPS})
    return weights, inputs


def gradients(given: Mapping[str, Array]) -> list[dict[str, Array]]:
    """Return the gradient of every trained tensor, float64, step by step, from the inputs of all steps."""
    named = {"kernel.weight": "weight", "kernel.bias": "bias", "norm.gamma": "gamma", "norm.beta": "beta"}
    found = []
    for step in range(STEPS):
        own = {name: given[each][step].astype(np.float64) for name, each in named.items()}
        table = np.zeros((int(given["rows"].max()) + 1, given["table"].shape[-1]))
        table[given["rows"][step]] = given["table"][step]
        found.append(own | {"table.weight": table})
    return found


def _weights(network: Network) -> dict[str, Array]:
    """Return weights between 0.001 and 3 in size; one of eight is zero, so that it holds nothing but its own updates."""
    generator = np.random.Generator(np.random.PCG64([SEED, 1]))
    found = {}
    for each in network.parameters:
        size = 10 ** generator.uniform(-3, 0.5, each.shape) * generator.choice([-1.0, 1.0], each.shape)
        found[each.name] = np.where(generator.random(each.shape) < 1 / 8, 0, size).astype(np.float32)
    return found


def _inputs(network: Network, clip: float) -> dict[str, Array]:
    generator = np.random.Generator(np.random.PCG64([SEED, 2]))
    scales = {each.name: _scales(each.shape, generator) for each in network.inputs if each.dtype == "float32"}
    late: dict[str, Array] = {name: np.less(generator.random(scale.shape), LATE) for name, scale in scales.items()}
    steps = [_step(step, scales, late, clip, generator) for step in range(1, STEPS + 1)]
    found: dict[str, Array] = {name: np.stack([each[name] for each in steps]).astype(np.float32) for name in scales}
    for each in network.inputs:
        if each.dtype == "int32":
            count = each.shape[0]
            rows = [generator.permutation(each.high)[:count] for _ in range(STEPS)]
            found[each.name] = np.stack(rows).astype(np.int32)
    return found


def _scales(shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    size: Array = 10 ** generator.uniform(SMALLEST, LARGEST, shape)
    return np.where(generator.random(shape) < STILL, 0, size)


def _step(
    step: int, scales: dict[str, Array], late: dict[str, Array], clip: float, generator: np.random.Generator
) -> dict[str, Array]:
    factor = 10 ** generator.uniform(-0.5, 0.5) * (LOUD_FACTOR if step in LOUD else 1.0)
    found = {}
    for name, scale in scales.items():
        drawn = factor * scale * generator.standard_normal(scale.shape)
        zero = (generator.random(scale.shape) < ZERO) | (late[name] & (step <= LATE_STEPS))
        found[name] = np.where(zero, 0, drawn)
    if clip:
        # The fixed tensor has no gradient, so it is no part of the norm.
        norm = np.sqrt(sum(np.sum(array**2) for name, array in found.items() if name != "fixed"))
        power = generator.uniform(APART, NORMS) * generator.choice([-1.0, 1.0])
        found = {name: array * (clip * 10**power / norm) for name, array in found.items()}
    quiet = QUIET_FACTOR if step in QUIET else 1.0
    return {name: array * quiet for name, array in found.items()}
