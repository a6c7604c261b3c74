"""What the TensorFlow adapter relies on: dropout."""

from unittest import mock

import tensorflow as tf

from checks import dropout_effects
from checks.tensorflow.shared import adapter_of
from steelyard_worker.frameworks.tensorflow import layers


def check_dropout_has_its_rate_and_acts_in_training_only():
    layer_of = layers.Variables(tf.float32, dropout=True)
    dropout_effects.check_layer(
        lambda ones, rate: layers.Dropout(layer_of, rate)(tf.constant(ones), training=True).numpy()
    )
    eager = [adapter_of("eager", dropout=each) for each in ("off", "on")]
    dropout_effects.check_networks("tensorflow", *eager, names=dropout_effects.NETWORKS)
    compiled = [adapter_of("xla", dropout=each) for each in ("off", "on")]
    dropout_effects.check_networks("tensorflow", *compiled, names=["vgg16"])


def check_dropout_without_effect_is_reported():
    adapter = adapter_of("graph", dropout="on")
    assert adapter.applied()["dropout"] == "on"
    with mock.patch.object(layers.Dropout, "__call__", lambda _, x, training: x):
        assert adapter.applied()["dropout"] == "off"
