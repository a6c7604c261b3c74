"""What the JAX adapter relies on: how tensors are updated."""

from functools import partial

import jax
import jax.numpy as jnp

from checks import golden_updates as golden
from steelyard_worker.case import Optimizer
from steelyard_worker.frameworks.jax import optimizers


def trajectory(spec, rates=None, wrap=lambda update: update):
    """Return p after each of three gradients, from p = 1."""
    tensors = {"p": jnp.ones(1, jnp.float32)}
    rule = optimizers.update_rule(spec, ["p"], rates)
    update = wrap(rule.update)
    memory, path = rule.init(tensors), []
    for gradient in golden.GRADIENTS:
        tensors, memory = update(tensors, {"p": jnp.full(1, gradient, jnp.float32)}, memory, rule.scalars())
        path.append(float(tensors["p"][0]))
    return path


def check_each_step_has_its_own_learning_rate_in_one_program():
    compiled = []

    def jitted(update):
        compiled.append(jax.jit(update))
        return compiled[-1]

    at_rates = partial(trajectory, rates=golden.RATES, wrap=jitted)
    for implementation in ("reference", "native"):
        golden.compare(at_rates, golden.CANONICAL_AT_RATES, 3e-6, implementation=implementation)
    golden.compare(at_rates, golden.RATE_IN_MOMENTUM_AT_RATES, implementation="reference", form="rate-in-momentum")
    assert {each._cache_size() for each in compiled} == {1}
    # A constant rate is a number in the program, and nothing is looked up.
    tensors = {"p": jnp.ones(1, jnp.float32)}
    for rates, looked_up in ((None, False), (golden.RATES, True)):
        native = optimizers.update_rule(golden.ADAM, ["p"], rates)
        program = str(jax.make_jaxpr(native.update)(tensors, tensors, native.init(tensors), {}))
        assert ("dynamic_slice" in program or "gather" in program) is looked_up, program


def check_both_implementations_give_the_golden_trajectories():
    for implementation in ("reference", "native"):
        golden.compare(trajectory, golden.CANONICAL, implementation=implementation)


def check_the_epsilon_hat_form_gives_its_golden_trajectories():
    golden.compare(trajectory, golden.EPSILON_HAT, implementation="reference", form="epsilon-hat")


def check_optax_corrects_the_bias_in_float32():
    """P-41: a relative difference of 7e-6 in the first step of 0.1 (half of 1.4e-5 in the square root's argument)."""
    native, *_ = trajectory(Optimizer("adam", 0.1))
    single, *_ = trajectory(Optimizer("adam", 0.1, implementation="reference", correction="float32"))
    double, *_ = trajectory(Optimizer("adam", 0.1, implementation="reference", correction="float64"))
    assert abs(native - single) < 1e-7 < 5e-7 < abs(native - double), (native, single, double)
