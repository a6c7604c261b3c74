"""What the knob `accumulate` has to leave as it is, the losses and every tensor after two steps, and that steps are in parts."""

from unittest import mock

import numpy as np

from checks.drawn import random_weights
from checks.recomputation_effects import WORKLOADS, batch_of, described, tiny
from steelyard_worker import accumulation, network
from steelyard_worker.case import Optimizer

NAME = "lstm-imdb"
RULE = Optimizer("sgd", 0.01, momentum=0.9, clip=1.0)


def trainer_of(framework, adapter, changed=None):
    """Return a trainer of the smallest network without batch norm, and a batch; `changed` gets its implementation first."""
    implementation, described_as = network.load_implementation(WORKLOADS / NAME, NAME, framework), described(NAME)
    if changed:
        changed(implementation)
    trainer = adapter.trainer(implementation, tiny(NAME), described_as, random_weights(described_as), RULE)
    return trainer, trainer.put(batch_of(described_as, tiny(NAME)["batch"]))


def check_same(framework, adapter_of, limit=1e-9, numbers=(2, 4)):
    """`adapter_of(parts)` is in float64 unless `limit` is that of another precision; `numbers`: of parts."""
    found = [after_two_steps(*trainer_of(framework, adapter_of(parts))) for parts in (1, *numbers)]
    for parts, other in zip(numbers, found[1:], strict=True):
        for key, expected in found[0].items():
            distance = np.linalg.norm(other[key] - expected)
            assert distance <= limit * max(1, np.linalg.norm(expected)), (parts, key, distance)


def after_two_steps(trainer, batch):
    """Return the losses of two steps and every tensor after them."""
    handles = [trainer.step(batch) for _ in range(2)]
    trainer.synchronise()
    outputs = {f"output/{name}": each for name, each in trainer.outputs(batch).items()}
    return {"losses": np.array(trainer.losses(handles))} | outputs | trainer.state()


def check_parts(framework, adapter, parts):
    """A step whose loss is a function has it called for parts of the batch only."""
    seen = []

    def spied(implementation):
        own = implementation.loss

        def loss(outputs, batch):
            seen.append(int(next(iter(batch.values())).shape[0]))
            return own(outputs, batch)

        implementation.loss = loss

    trainer, batch = trainer_of(framework, adapter, spied)
    trainer.step(batch)
    trainer.synchronise()
    assert set(seen) == {tiny(NAME)["batch"] // parts}, seen


def check_divided(framework, adapter, parts):
    """A step asks once into how many parts its batch is divided."""
    asked = []

    def counted(wanted, samples):
        asked.append((wanted, samples))
        return wanted

    trainer, batch = trainer_of(framework, adapter)
    with mock.patch.object(accumulation, "parts_for", counted):
        trainer.step(batch)
        trainer.synchronise()
    assert set(asked) == {(parts, tiny(NAME)["batch"])}, asked
