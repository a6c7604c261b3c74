"""What the MindSpore adapter relies on: how tensors are updated."""

from functools import partial

import mindspore
import numpy as np
from mindspore import Parameter, Tensor

from checks import golden_updates as golden
from steelyard_worker.frameworks.mindspore import optimizers


def trajectory(spec, rates=None):
    """Return p after each of three gradients, from p = 1."""
    p = Parameter(Tensor(np.ones(1, np.float32)), name="p")
    update, _ = optimizers.update_rule(spec, {"p": p}, rates)
    path = []
    for number, gradient in enumerate(golden.GRADIENTS, 1):
        gradients = (Tensor(np.full(1, gradient, np.float32)),)
        if spec.implementation == "reference":
            update(gradients, *(Tensor(value, mindspore.float32) for value in optimizers.scalars(spec, number)))
        else:
            update(gradients)
        path.append(float(p.asnumpy()[0]))
    return path


def check_reference_rules_give_the_golden_trajectories():
    golden.compare(trajectory, golden.CANONICAL, 3e-6, implementation="reference")
    golden.compare(trajectory, golden.EPSILON_HAT, 3e-6, implementation="reference", form="epsilon-hat")


def check_each_step_has_its_own_learning_rate():
    momentum = {rule: values for rule, values in golden.CANONICAL_AT_RATES.items() if rule.name == "sgd"}
    for mode in (mindspore.GRAPH_MODE, mindspore.PYNATIVE_MODE):
        mindspore.set_context(mode=mode)
        for table in (momentum, golden.EPSILON_HAT_AT_RATES):
            golden.compare(partial(trajectory, rates=golden.RATES), table, 3e-6)
    mindspore.set_context(mode=mindspore.GRAPH_MODE)
    p = Parameter(Tensor(np.ones(1, np.float32)), name="p")
    assert not optimizers.update_rule(golden.MOMENTUM, {"p": p})[0].dynamic_lr  # a constant of the graph


def check_native_rules_have_their_declared_form():
    momentum = {rule: golden.CANONICAL[rule] for rule in (golden.MOMENTUM, golden.NESTEROV)}
    golden.compare(trajectory, momentum, 3e-6)
    golden.compare(trajectory, {golden.ADAM: golden.EPSILON_HAT[golden.ADAM]}, 3e-6)
