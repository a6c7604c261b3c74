"""What the JAX adapter relies on: rules forget, and the compiled step is kept, when a trainer is set back."""

from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

from checks import restarts
from checks.jax.shared import adapter_of
from steelyard_worker.frameworks.jax import local, sharding, staged
from steelyard_worker.frameworks.jax.blocks import conv_block
from steelyard_worker.frameworks.jax.layers import cross_entropy


def forward(layers, sizes, batch):
    """Run the network of `restarts`."""
    x = conv_block(layers, "block", batch["image"], epsilon=restarts.EPSILON)
    return {"logits": layers.dense("head", jnp.mean(x, (1, 2)))}


IMPLEMENTATION = SimpleNamespace(
    forward=forward, loss=lambda outputs, batch: cross_entropy(outputs["logits"], batch["label"])
)
SUBJECT = restarts.Subject(IMPLEMENTATION)
# To compile a step takes as long as all other checks of a rule together. These differ in what they keep, and where.
RULES = ("momentum", "clipped adam", "reference adamw")
SCHEDULED = ("adam", "reference momentum")


@contextmanager
def remembering(trainer):
    """Let the rule keep its memory."""
    memory = jax.tree.map(np.asarray, trainer.carry[2])
    with (
        mock.patch.object(trainer, "_init", lambda _: jax.device_put(memory)),
        mock.patch.object(trainer._rule, "forget"),
    ):
        yield


def check_rules_begin_again_in_the_same_program():
    rules = {name: restarts.RULES[name] for name in RULES}
    restarts.check_rules(SUBJECT, adapter_of("jit"), remembering, rules=rules, scheduled=())
    for name in SCHEDULED:
        restarts.check_restart(SUBJECT, adapter_of("jit"), remembering, restarts.RULES[name], restarts.RATES)


class Spread:
    """An adapter whose trainers are those of a strategy, on the one device of this process."""

    def __init__(self, kind):
        self._adapter, self._kind = adapter_of("jit"), kind
        self.compilations = self._adapter.compilations

    def trainer(self, implementation, sizes, described, weights, rule, rates=None):
        """Return a new trainer."""
        adapter = self._adapter
        return self._kind(implementation, sizes, described, weights, rule, "float32", adapter._choices, rates)


@contextmanager
def remembering_of_copies(trainer):
    """Let the rule of the first copy keep its memory."""
    kept = trainer.carry
    trainer.carry = jax.tree.map(lambda each: np.asarray(each)[0], kept)  # NumPy compiles nothing
    with remembering(trainer):
        trainer.carry = kept
        yield


@contextmanager
def remembering_of_stages(trainer):
    """Let the rule of each stage keep its memory."""
    with mock.patch.object(type(trainer._updates[0]), "restart"):
        yield


def check_trainers_of_strategies_begin_again():
    devices = jax.devices()[:1]
    kinds = {
        "sharded": (sharding.trainer(devices, 1, by_share=True), remembering),
        "local": (local.trainer(devices), remembering_of_copies),
        "staged": (staged.trainer(devices, 2), remembering_of_stages),
    }
    for name, (kind, remember) in kinds.items():
        rule = replace(restarts.ADAM, implementation="reference")
        try:
            restarts.check_restart(SUBJECT, Spread(kind), remember, rule, restarts.RATES)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error
