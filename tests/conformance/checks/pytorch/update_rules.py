"""What the PyTorch adapter relies on: how tensors are updated."""

import math
from functools import partial

import torch

from checks import golden_updates as golden
from steelyard_worker.case import Optimizer
from steelyard_worker.frameworks.pytorch import optimizers


def trajectory(spec, rates=None):
    """Return p after each of three gradients, from p = 1."""
    p = torch.nn.Parameter(torch.ones(1))
    rule = optimizers.update_rule(spec, {"p": p}, rates)
    path = []
    for gradient in golden.GRADIENTS:
        p.grad = torch.full_like(p, gradient)
        rule.step()
        path.append(p.item())
    return path


def check_both_implementations_give_the_golden_trajectories():
    for implementation in ("reference", "native"):
        golden.compare(trajectory, golden.CANONICAL, implementation=implementation)


def check_each_step_has_its_own_learning_rate():
    at_rates = partial(trajectory, rates=golden.RATES)
    for implementation in ("reference", "native"):
        golden.compare(at_rates, golden.CANONICAL_AT_RATES, implementation=implementation)
    golden.compare(at_rates, golden.RATE_IN_MOMENTUM_AT_RATES, implementation="reference", form="rate-in-momentum")


def check_a_constant_rate_is_that_of_the_optimizer_alone():
    for rule in golden.CANONICAL:
        built = optimizers.update_rule(rule, {"p": torch.nn.Parameter(torch.ones(1))})
        assert isinstance(built, torch.optim.Optimizer), rule


def check_the_epsilon_hat_form_gives_its_golden_trajectories():
    golden.compare(trajectory, golden.EPSILON_HAT, implementation="reference", form="epsilon-hat")


def check_clipping_is_exact_for_large_tensors():
    """The reason why the norm is computed by rows. If the last line fails, PyTorch's own function is exact enough again."""
    large, small = (torch.nn.Parameter(torch.zeros(shape)) for shape in ((8192, 1024), (3,)))
    rule = optimizers.update_rule(Optimizer("sgd", 1.0, clip=1.0), {"large": large, "small": small})
    torch.manual_seed(0)
    for p in (large, small):
        p.grad = torch.randn(p.shape)
    own = torch.nn.utils.get_total_norm([large.grad, small.grad])
    exact = math.sqrt(sum(float(p.grad.double().square().sum()) for p in (large, small)))
    rule.step()
    moved = math.sqrt(sum(float(p.detach().double().square().sum()) for p in (large, small)))
    assert abs(moved - 1) < 2e-6, moved
    assert abs(float(own) / exact - 1) > 2e-5, float(own) / exact
