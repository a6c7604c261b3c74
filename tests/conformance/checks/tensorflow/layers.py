"""What the TensorFlow adapter relies on: layers and the loss."""

import numpy as np
import tensorflow as tf

from checks import ctc_golden
from checks.tensorflow.shared import WORKER
from steelyard_worker import network
from steelyard_worker.frameworks.tensorflow import layers, layouts, pooling

WORKLOADS = WORKER / "workloads"


def batch_norm(dtype):
    """Return a new layer over two channels and the variables that it created, which are not initialised."""
    variables = layers.Variables(dtype)
    layer = layers.BatchNorm(variables, "bn", 2, epsilon=1e-5, momentum=0.1)
    for name, value in (("gamma", 1), ("beta", 0), ("running_mean", 0), ("running_var", 1)):
        variables.named[f"bn.{name}"].assign(tf.fill(2, tf.constant(value, dtype)))
    return layer, variables.named


def check_statistics_change_only_in_training_and_the_variance_is_unbiased():
    for dtype in (tf.float32, tf.float64):
        for options in ({}, {"jit_compile": True}):
            layer, named = batch_norm(dtype)
            x = tf.reshape(tf.range(8, dtype=dtype), (2, 1, 2, 2))
            tf.function(lambda x, layer=layer: layer(x, False), **options)(x)
            np.testing.assert_array_equal(named["bn.running_mean"], (0, 0))
            y = tf.function(lambda x, layer=layer: layer(x, True), **options)(x)
            np.testing.assert_allclose(named["bn.running_mean"], (0.3, 0.4), rtol=1e-6)
            np.testing.assert_allclose(named["bn.running_var"], (1.566667, 1.566667), rtol=1e-6)
            np.testing.assert_allclose(y[0, 0, 0], np.full(2, -3 / np.sqrt(5 + 1e-5)), rtol=1e-6)


def check_the_fused_batch_norm_uses_the_given_epsilon():
    # The compatibility function raises 1e-5 to 1.001e-5; with a variance near zero the two differ visibly.
    x = tf.constant([[[[1e-3, 0.0]]], [[[-1e-3, 1.0]]]])
    y = batch_norm(tf.float32)[0](x, True).numpy().ravel()[0]
    assert abs(y - 1e-3 / np.sqrt(1e-6 + 1e-5)) < 1e-6, y


def check_pools_by_the_library_and_by_slices_agree():
    """Maxima rounded up on even and odd extents, with ties; averages that include padding: values and gradients."""
    generator = np.random.default_rng(3)
    ties = tf.constant(generator.integers(-2, 2, (2, 7, 7, 3)).astype("f4"))
    smooth = tf.constant(generator.standard_normal((2, 7, 7, 3), "f4"))
    cases = [
        *((pooling.MaxPool, ties[:, :n, :n], each) for n in (6, 7) for each in ((3, 2), (3, 1, 1), (2, 2), (3, 2, 1))),
        *((pooling.AveragePool, smooth, each) for each in ((3, 1, 1), (5, 3))),
    ]
    for layer, x, each in cases:
        for options in ({"ceil": True}, {}) if layer is pooling.MaxPool else ({},):
            pools = [layer(layers.Variables(tf.float32, fuse=fuse), *each, **options) for fuse in (True, False)]
            (y, dx), (z, dz) = (pooled_with_gradient(pool, x) for pool in pools)
            np.testing.assert_allclose(y, z, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(dx, dz, rtol=1e-5, atol=1e-6)


def pooled_with_gradient(pool, x):
    """Return a pool's output of x, and the gradient of a sum in which every position has a different weight."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = pool(x)
        total = tf.reduce_sum(y * np.arange(1, np.prod(y.shape) + 1, dtype="f4").reshape(y.shape) / 100)
    return y, tape.gradient(total, x)


def check_an_average_includes_its_padding_and_a_maximum_rounds_up():
    for fuse in (True, False):
        variables = layers.Variables(tf.float32, fuse=fuse)
        averaged = pooling.AveragePool(variables, 3, 1, 1)(tf.ones((1, 3, 3, 1)))
        np.testing.assert_allclose(averaged[0, :2, :2, 0] * 9, ((4, 6), (6, 9)), rtol=1e-6)
        rising = tf.reshape(tf.range(36.0), (1, 6, 6, 1))
        np.testing.assert_array_equal(pooling.MaxPool(variables, 3, 2, ceil=True)(rising)[0, 0, :, 0], (14, 16, 17))


def check_a_strided_convolution_pads_both_ends():
    weight = np.zeros((3, 3, 1, 1), "f4")
    weight[1] = 1  # the middle row: one-dimensional along the width
    x = tf.constant(np.tile(np.arange(1, 7, dtype="f4"), (1, 6, 1)).reshape(1, 6, 6, 1))
    for formulation in ("library", "matmul"):
        variables = layers.Variables(tf.float32, formulation)
        convolution = layers.Convolution(variables, "c", 1, 1, 3, 2, 1)
        variables.named["c.weight"].assign(weight)
        np.testing.assert_array_equal(convolution(x)[0, 0, :, 0], (3, 9, 15))


def check_layout_round_trips_are_bit_exact():
    for kind, axes in layouts.AXES.items():
        array = np.random.default_rng(1).standard_normal(tuple(range(2, 2 + len(axes)))).astype("f4")
        there = layouts.native(kind, array)
        assert there.flags.c_contiguous
        assert there.shape == tuple(array.shape[axis] for axis in axes)
        np.testing.assert_array_equal(layouts.canonical(kind, there), array)


def check_ctc_agrees_with_the_enumeration_of_all_paths():
    loss = network.load(WORKLOADS / "deepspeech2", "tensorflow").loss

    def found(logits, batch):
        logits = tf.convert_to_tensor(logits)
        with tf.GradientTape() as tape:
            tape.watch(logits)
            value = loss({"logits": logits}, batch)
        return value, tape.gradient(value, logits)

    for wrap in (lambda f: f, tf.function, lambda f: tf.function(f, jit_compile=True)):
        ctc_golden.compare(wrap(found))
