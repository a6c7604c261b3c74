"""What the MXNet adapter relies on: how tensors are updated."""

from functools import partial

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd

from checks import golden_updates as golden
from checks.mxnet.shared import parameter
from steelyard_worker.case import Optimizer
from steelyard_worker.frameworks.mxnet import optimizers


def trajectory(spec, rates=None):
    """Return p after each of three gradients, from p = 1."""
    p = parameter()
    rule = optimizers.update_rule(spec, {"p": p}, rates)
    path = []
    for gradient in golden.GRADIENTS:
        with autograd.record():
            loss = (p.data() * gradient).sum()
        loss.backward()
        rule.step(1)
        path.append(p.data().asscalar())
    return path


def check_each_step_has_its_own_learning_rate():
    """MXNet's SGD keeps each step's rate in its momentum: the form that `scheduled_form` in framework.toml declares."""
    at_rates = partial(trajectory, rates=golden.RATES)
    golden.compare(at_rates, golden.RATE_IN_MOMENTUM_AT_RATES, 3e-6)
    golden.compare(at_rates, golden.EPSILON_HAT_AT_RATES, 3e-6)
    golden.compare(
        at_rates, golden.RATE_IN_MOMENTUM_AT_RATES, 3e-6, implementation="reference", form="rate-in-momentum"
    )
    golden.compare(at_rates, golden.CANONICAL_AT_RATES, 3e-6, implementation="reference")
    constant = optimizers.update_rule(golden.MOMENTUM, {"p": parameter()})
    assert constant._optimizer.lr_scheduler is None


def check_clipping_is_exact_for_large_tensors():
    """The reason why the norm is summed in parts. If the last line fails, Gluon's own function is exact enough again."""
    named = {name: gluon.Parameter(name, shape=shape) for name, shape in (("large", (8192, 1024)), ("small", (3,)))}
    for each in named.values():
        each.initialize(mx.init.Zero())
    rule = optimizers.update_rule(Optimizer("sgd", 1.0, clip=1.0), named)
    gradients = {name: np.random.default_rng(0).standard_normal(each.shape, np.float32) for name, each in named.items()}
    with autograd.record():
        loss = nd.add_n(*((each.data() * nd.array(gradients[name])).sum() for name, each in named.items()))
    loss.backward()
    exact = np.sqrt(sum(np.square(array, dtype=np.float64).sum() for array in gradients.values()))
    own = gluon.utils.clip_global_norm([nd.array(array) for array in gradients.values()], 1.0)
    rule.step(1)
    moved = np.sqrt(sum(np.square(each.data().asnumpy(), dtype=np.float64).sum() for each in named.values()))
    assert abs(moved - 1) < 2e-6, moved
    assert abs(own / exact - 1) > 1e-5, own / exact


def check_reference_rules_give_the_golden_trajectories():
    golden.compare(trajectory, golden.CANONICAL, implementation="reference")
    golden.compare(trajectory, golden.EPSILON_HAT, implementation="reference", form="epsilon-hat")


def check_native_rules_have_their_declared_form():
    golden.compare(trajectory, {golden.MOMENTUM: golden.CANONICAL[golden.MOMENTUM]})
    golden.compare(trajectory, {golden.ADAM: golden.EPSILON_HAT[golden.ADAM]})
