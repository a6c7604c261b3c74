"""What the TensorFlow adapter relies on: recurrent layers."""

import numpy as np
import tensorflow as tf

from steelyard_worker.frameworks.tensorflow import layers, recurrent, traced
from steelyard_worker.frameworks.tensorflow.recurrence import Recurrence


def check_the_formulations_of_recurrence_agree():
    generator, found = np.random.default_rng(0), {}
    x = tf.constant(generator.standard_normal((5, 3, 4)))
    values = [generator.standard_normal(shape) for shape in ((4, 24), (6, 24), (24,))]
    for formulation in ("loop", "hoisted", "deferred", "keras"):
        kind = "cell" if formulation == "keras" else "loop"
        variables = layers.Variables(tf.float64, recurrence=Recurrence(formulation), lstm=kind)
        assert traced.lstm(variables) == kind
        variables.named.clear()
        lstm = recurrent.Lstm(variables, "l", 4, 6)
        for variable, value in zip(variables.named.values(), values, strict=True):
            variable.assign(value)
        for run in (lambda f: f, tf.function):
            found[formulation, run] = [each.numpy() for each in run(_differentiated)(lstm, x)]
        np.testing.assert_allclose(lstm.every(x, backward=True)[::-1], lstm.every(x[::-1], backward=False), rtol=1e-12)
        np.testing.assert_allclose(lstm.every(x, backward=False)[-1], lstm.last(x), rtol=1e-12)
    assert len(found) == 8
    for way in found.values():
        for each, expected in zip(way, found["loop", tf.function], strict=True):
            np.testing.assert_allclose(each, expected, rtol=1e-10, atol=1e-13)


def _differentiated(lstm, x):
    """Return both outputs of a layer, and the gradients of a score that depends on both."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        every, last = lstm.every(x, backward=True), lstm.last(x)
        score = tf.reduce_sum(tf.sin(every)) + tf.reduce_sum(tf.cos(last))
    weights = tape.watched_variables()
    assert len(weights) == 3, weights
    return every, last, *tape.gradient(score, [x, *weights])


def check_recurrences_choose_by_units_per_sample():
    chosen = Recurrence(small="hoisted")
    assert [chosen.resolved(units, 8).formulation for units in (31, 32)] == ["hoisted", "deferred"]
    assert Recurrence("loop").resolved(1024, 1).formulation == "loop"


def check_the_fused_lstm_has_wrong_gradients():
    """The reason why tf.raw_ops.BlockLSTMV2 is not used: its gradient contradicts finite differences. If this fails, try it."""
    generator = np.random.default_rng(0)
    x, w = (tf.constant(generator.standard_normal(shape), tf.float32) for shape in ((2, 1, 1), (2, 4)))
    zeros = {name: tf.zeros(shape) for name, shape in (("cs_prev", (1, 1)), ("h_prev", (1, 1)), ("b", 4))}
    zeros |= {name: tf.zeros(1) for name in ("wci", "wcf", "wco")}

    def fused(x):
        steps = tf.constant(2, tf.int64)
        return tf.reduce_sum(tf.raw_ops.BlockLSTMV2(seq_len_max=steps, x=x, w=w, cell_clip=0.0, **zeros).h)

    with tf.GradientTape() as tape:
        tape.watch(x)
        score = fused(x)
    shift = tf.constant((0.01, 0.0), shape=(2, 1, 1))
    difference = float(fused(x + shift) - fused(x - shift)) / 0.02
    gradient = float(tape.gradient(score, x)[0, 0, 0])
    assert abs(difference + 0.1961) < 1e-3, difference
    assert abs(gradient - difference) > 0.1, gradient
