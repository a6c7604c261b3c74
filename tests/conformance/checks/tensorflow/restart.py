"""What the TensorFlow adapter relies on: rules forget, and the traced step is kept, when a trainer is set back."""

from contextlib import contextmanager
from types import SimpleNamespace
from unittest import mock

import tensorflow as tf

from checks import restarts
from checks.tensorflow.shared import KNOBS
from steelyard_worker.case import Settings
from steelyard_worker.frameworks.tensorflow import layers, optimizers
from steelyard_worker.frameworks.tensorflow.adapter import Adapter
from steelyard_worker.frameworks.tensorflow.blocks import ConvBlock
from steelyard_worker.frameworks.tensorflow.split import SplitTrainer


def build(sizes, variables):
    """Return the network of `restarts`."""
    block = ConvBlock(variables, "block", 3, restarts.CHANNELS, 3, epsilon=restarts.EPSILON)
    head = layers.Dense(variables, "head", restarts.CHANNELS, restarts.CLASSES)
    return lambda image, training: {"logits": head(tf.reduce_mean(block(image, training), (1, 2)))}


def loss(outputs, batch):
    """Return the mean cross-entropy."""
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(batch["label"], outputs["logits"]))


SUBJECT = restarts.Subject(SimpleNamespace(INPUTS=("image",), build=build, loss=loss))
# Keras's SGD refuses rates that change, and Keras has no clipping for `fit` here.
OF_KERAS = {name: restarts.RULES[name] for name in ("momentum", "nesterov", "adam", "adamw")}


@contextmanager
def remembering(trainer):
    """Let the rule keep its memory."""
    with mock.patch.object(optimizers, "zero"), mock.patch.object(optimizers, "forget_by_keras"):
        yield


def adapter_of(mode, **knobs):
    """Return an adapter."""
    return Adapter(Settings(mode, knobs=KNOBS | knobs))


def check_every_rule_begins_again_without_a_graph():
    restarts.check_rules(SUBJECT, adapter_of("eager"), remembering, {"lamb"})


def check_optimizers_of_keras_begin_again_in_the_same_graph():
    adapter = adapter_of("graph", update="keras")
    restarts.check_rules(SUBJECT, adapter, remembering, rules=OF_KERAS, scheduled=("adam",))


def check_rules_begin_again_in_the_same_graph_or_program():
    for mode, name, rates in (("graph", "clipped adam", restarts.RATES), ("xla", "reference adamw", None)):
        restarts.check_restart(SUBJECT, adapter_of(mode), remembering, restarts.RULES[name], rates)


def check_fit_goes_on_with_the_same_function():
    restarts.check_restart(SUBJECT, adapter_of("fit"), remembering, restarts.ADAM)


def check_a_network_in_parts_begins_again():
    adapter = adapter_of("graph")

    def trainer(*arguments):
        return SplitTrainer(["/CPU:0", "/CPU:0"], 1, adapter._wrap, adapter._variables(), *arguments[:-1], "fused")

    split = SimpleNamespace(trainer=trainer, compilations=adapter.compilations)
    restarts.check_restart(SUBJECT, split, remembering, restarts.MOMENTUM)
