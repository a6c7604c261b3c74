"""What the knob `recomputation` has to leave as it is: outputs, loss, gradients, and every tensor after two steps, in float64."""

from pathlib import Path

import numpy as np
import tomllib

import steelyard_worker
from checks.drawn import random_weights
from steelyard_worker import network
from steelyard_worker.case import Optimizer

WORKLOADS = Path(steelyard_worker.__file__).parent / "workloads"
# Two passes of a block round in the same way, but compilers may put together different operations.
LIMIT = 1e-9


def tiny(name):
    """Return the sizes of a workload's tiny preset."""
    return tomllib.loads((WORKLOADS / name / "spec.toml").read_text())["presets"]["tiny"]["sizes"]


def described(name):
    """Return the network of that preset."""
    return network.describe(WORKLOADS / name, tiny(name))


def check_networks(framework, plain, again, names, limit=LIMIT):
    """`plain` and `again` are adapters without and with recomputation, in float64 unless `limit` is that of another precision."""
    for name in names:
        sizes = tiny(name)
        network_of = described(name)
        assert network_of.blocks, name
        parts = (
            network.load_implementation(WORKLOADS / name, name, framework),
            sizes,
            network_of,
            random_weights(network_of),
        )
        batch, found = batch_of(network_of, sizes["batch"]), []
        for adapter in (plain, again):
            trainer = adapter.trainer(*parts, Optimizer("sgd", 0.01, momentum=0.9))
            outputs, loss, gradients = trainer.gradients(trainer.put(batch))
            for _ in range(2):
                trainer.step(trainer.put(batch))
            trainer.synchronise()
            found.append(
                {"loss": np.array(loss)}
                | outputs
                | {f"grad/{key}": g for key, g in gradients.items()}
                | trainer.state()
            )
        for key, expected in found[0].items():
            distance = np.linalg.norm(found[1][key] - expected)
            assert distance <= limit * max(1, np.linalg.norm(expected)), (name, key, distance)


def batch_of(described, samples):
    """Return a random batch."""
    draw = np.random.default_rng(2)
    if described.draw:
        return described.draw(draw, samples)
    return {
        each.name: draw.integers(0, each.high, (samples, *each.shape)).astype(each.dtype)
        if each.high
        else draw.standard_normal((samples, *each.shape)).astype(each.dtype)
        for each in described.inputs
    }
