"""What the JAX adapter relies on: dropout."""

from unittest import mock

import jax
import jax.numpy as jnp

from checks import dropout_effects
from checks.jax.shared import adapter_of
from steelyard_worker.frameworks.jax import layers


def check_dropout_has_its_rate_and_acts_in_training_only():
    state = {layers.RANDOM: jax.random.key(1)}

    def dropped(ones, rate):
        found = layers.Layers(dict(state), training=True, choices=layers.Choices(dropout=True))
        y = found.dropout(jnp.asarray(ones), rate)
        state.update(found.statistics)
        return y

    dropout_effects.check_layer(dropped)
    off, on = (adapter_of(knobs={"dropout": each}) for each in ("off", "on"))
    dropout_effects.check_networks("jax", off, on, names=["vgg16", "vgg16:convolutions"])


def check_dropout_without_effect_is_reported():
    adapter = adapter_of(knobs={"dropout": "on"})
    assert adapter.applied()["dropout"] == "on"
    with mock.patch.object(layers.Layers, "dropout", lambda _, x, rate: x):
        assert adapter.applied()["dropout"] == "off"
