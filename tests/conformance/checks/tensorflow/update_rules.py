"""What the TensorFlow adapter relies on: how tensors are updated."""

from dataclasses import replace
from functools import partial

import numpy as np
import tensorflow as tf

from checks import golden_updates as golden
from steelyard_worker.case import Optimizer
from steelyard_worker.frameworks.tensorflow import optimizers
from steelyard_worker.protocol import Refusal


def trajectory(spec, kernel="fused", wrap=tf.function, rates=None):
    """Return p after each of three gradients, from p = 1."""
    p, path = tf.Variable(tf.ones(1)), []
    update = wrap(optimizers.update_rule(spec, {"p": p}, kernel, rates))
    for gradient in golden.GRADIENTS:
        update([tf.fill([1], gradient)])
        path.append(float(p[0]))
    return path


def check_the_reference_implementation_gives_the_golden_trajectories():
    golden.compare(trajectory, golden.CANONICAL, implementation="reference")
    golden.compare(trajectory, golden.EPSILON_HAT, implementation="reference", form="epsilon-hat")


def check_each_step_has_its_own_learning_rate_in_one_trace():
    functions = []

    def wrapped(update):
        functions.append(tf.function(update))
        return functions[-1]

    momentum = {rule: values for rule, values in golden.CANONICAL_AT_RATES.items() if rule.name == "sgd"}
    at_rates = partial(trajectory, rates=golden.RATES, wrap=wrapped)
    golden.compare(at_rates, golden.CANONICAL_AT_RATES, 3e-6, implementation="reference")
    golden.compare(at_rates, golden.RATE_IN_MOMENTUM_AT_RATES, implementation="reference", form="rate-in-momentum")
    golden.compare(at_rates, momentum, 3e-6)
    for kernel in ("fused", "keras"):
        golden.compare(partial(at_rates, kernel=kernel), golden.EPSILON_HAT_AT_RATES, 3e-6)
    assert {each.experimental_get_tracing_count() for each in functions} == {1}
    # A constant rate is a constant of the graph, and nothing is looked up.
    for rates, looked_up in ((None, False), (golden.RATES, True)):
        update = tf.function(optimizers.update_rule(golden.ADAM, {"p": tf.Variable(tf.ones(1))}, "fused", rates))
        operations = update.get_concrete_function([tf.ones(1)]).graph.get_operations()
        assert any(each.type == "GatherV2" for each in operations) is looked_up


def check_keras_momentum_is_refused_with_rates_that_change():
    """Keras keeps each step's rate in the momentum. If this fails, it computes the canonical form, and the refusal can go."""
    import keras

    p = tf.Variable(tf.ones(1))
    own = keras.optimizers.SGD(keras.optimizers.schedules.PiecewiseConstantDecay([0], [0.1, 0.02]), momentum=0.9)
    path = []
    for gradient in golden.GRADIENTS:
        own.apply([tf.fill([1], gradient)], [p])
        path.append(float(p[0]))
    np.testing.assert_allclose(path, golden.RATE_IN_MOMENTUM_AT_RATES[golden.MOMENTUM], rtol=2e-6)
    try:
        trajectory(golden.MOMENTUM, "keras", rates=golden.RATES)
    except Refusal as refusal:
        assert "tensorflow.update=fused" in str(refusal)
    else:
        raise AssertionError


def check_native_rules_give_the_golden_trajectories():
    momentum = {rule: values for rule, values in golden.CANONICAL.items() if rule.name == "sgd"}
    for kernel in ("fused", "keras"):
        for wrap in (tf.function, lambda update: update):
            golden.compare(partial(trajectory, kernel=kernel, wrap=wrap), momentum | golden.EPSILON_HAT)


def check_the_fused_adam_corrects_its_bias_as_exactly_as_declared():
    # With a tiny epsilon the first step is exactly the learning rate, if 1 - beta2^1 and the weight of g^2 are one number.
    steps = {}
    for kernel in ("fused", "keras"):
        p = tf.Variable(tf.zeros(1))
        optimizers.update_rule(Optimizer("adam", 1.0, epsilon=1e-30), {"p": p}, kernel)([tf.ones(1)])
        steps[kernel] = -float(p[0])
    assert abs(steps["fused"] - 1) < 3e-7, steps
    assert 3e-6 < abs(steps["keras"] - 1) < 3e-5, steps


def check_bias_corrections_are_those_of_the_other_frameworks():
    t = tf.Variable(0, dtype=tf.int64)
    for correction in ("float32", "float64"):
        spec = replace(golden.ADAM, correction=correction)
        for step in range(1, 7):
            t.assign(step)
            found = [float(each) for each in optimizers.bias_corrections(spec, t)]
            np.testing.assert_allclose(found, spec.corrections(step), rtol=1e-15)
