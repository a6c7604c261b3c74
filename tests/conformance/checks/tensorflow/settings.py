"""What the TensorFlow adapter relies on: settings that are read back."""

from functools import partial
from unittest import mock

import tensorflow as tf

from checks.tensorflow.shared import KNOBS, adapter_of
from steelyard_worker.frameworks.tensorflow import layers, optimizers, traced
from steelyard_worker.frameworks.tensorflow.recurrence import Recurrence


def check_settings_without_effect_are_reported():
    """Functions that run eagerly, formulations that are not used, and kernels of another rule."""
    chosen = {"onednn": True, "convolution": "matmul", "lstm": "cell", "recurrence": "deferred", "update": "keras"}
    chosen |= {"embedding": "sparse", "shapes": "dynamic"}
    adapter = adapter_of("graph", **chosen)
    found = adapter.applied()
    assert {**found, **chosen, "mode": "graph"} == found, found
    tf.config.run_functions_eagerly(True)
    try:
        assert adapter.applied()["mode"] == "eager"
    finally:
        tf.config.run_functions_eagerly(False)
    with mock.patch.object(adapter, "_compile", partial(tf.function, autograph=False)):
        assert adapter.applied()["shapes"] == "static"
    with mock.patch.object(layers, "convolve", lambda _, x, weight, *__: tf.nn.conv2d(x, weight, 1, "SAME")):
        assert adapter.applied()["convolution"] == "library"
    for other in ("loop", "hoisted"):
        with mock.patch.object(Recurrence, "resolved", lambda *_, other=other: Recurrence(other)):
            assert adapter.applied()["recurrence"] == other
    with mock.patch.object(optimizers, "OfKeras", optimizers.Fused):
        assert adapter.applied()["update"] == "fused"


def check_automatic_and_fixed_formulations_are_distinguished():
    for mode, automatic in (("graph", "library"), ("xla", "auto")):
        adapter = adapter_of(mode)
        assert {**adapter.applied(), **KNOBS, "mode": mode} == adapter.applied()
        assert traced.convolution(adapter._variables, "matmul") == automatic
        with mock.patch.object(Recurrence, "resolved", lambda *_: Recurrence("deferred")):
            assert adapter.applied()["recurrence"] == "deferred"
