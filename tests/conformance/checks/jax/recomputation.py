"""What the JAX adapter relies on: blocks that are computed twice to save memory."""

from unittest import mock

import jax
import numpy as np

from checks import recomputation_effects
from checks.jax.shared import WORKLOADS, adapter_of
from steelyard_worker import network
from steelyard_worker.frameworks.jax import layers, layouts, traced


def check_recomputation_changes_nothing_but_memory():
    adapters = [adapter_of(precision="float64", knobs={"recomputation": each}) for each in ("none", "blocks")]
    recomputation_effects.check_networks("jax", *adapters, names=("resnet18", "bert"))


def check_every_block_of_a_network_is_computed_again():
    for name in ("resnet18", "resnet50", "vgg16", "bert", "gnmt", "deepspeech2", "googlenet", "inceptionv3"):
        assert blocks_computed_again(name) == len(recomputation_effects.described(name).blocks), name


def blocks_computed_again(name):
    """Trace the forward pass of a network; return how many of its operations are blocks under `jax.checkpoint`."""
    sizes, described = recomputation_effects.tiny(name), recomputation_effects.described(name)
    implementation = network.load_implementation(WORKLOADS / name, name, "jax")
    weights = {p.name: layouts.to_native(p.kind, np.zeros(p.shape, "f4"), "float32") for p in described.parameters}
    batch = {
        key: layouts.input_to_native(each, "float32")
        for key, each in recomputation_effects.batch_of(described, sizes["batch"]).items()
    }

    def forward(tensors, batch):
        chosen = layers.Layers(tensors, True, layers.Choices(recomputation=True))
        return implementation.forward(chosen, sizes, batch), chosen.statistics

    shapes = jax.tree.map(lambda array: jax.ShapeDtypeStruct(array.shape, array.dtype), (weights, batch))
    return sum(each.primitive.name in traced.CHECKPOINTS for each in jax.make_jaxpr(forward)(*shapes).jaxpr.eqns)


def check_recomputation_without_effect_is_reported():
    adapter = adapter_of(knobs={"recomputation": "blocks"})
    assert adapter.applied()["recomputation"] == "blocks"
    with mock.patch.object(jax, "checkpoint", lambda function, **_: function):
        assert adapter.applied()["recomputation"] == "none"
