"""Mistakes in update rules that begin after the steps of a certificate, or that networks hide, are found by the rule itself.

Each certificate of a network passed with them: it looks at five steps.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from rule_bench import NAMES, Bench, Mutant

from steelyard_worker.case import Optimizer, RateSchedule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.conformance

COSINE = RateSchedule("cosine", "steps", length=3000)
SGD = Optimizer("sgd", 0.1, 0.9, weight_decay=1e-4, decay=NAMES)
ADAM = Optimizer("adam", 1e-3)
WRITTEN_OUT = replace(ADAM, implementation="reference")
SCHEDULED = Optimizer("sgd", 0.05, 0.9, schedule=COSINE)
CLIPPED = Optimizer("adamw", 1e-3, weight_decay=0.01, decay=NAMES[:1], clip=1.0)
TORCH, JAX = "frameworks/pytorch/optimizers.py", "frameworks/jax/optimizers.py"
FUSED = "    return rules[spec.name](groups)\n"


def before_each_step(change: str) -> str:
    """Return what PyTorch's own optimizer is returned with instead: `change` is done before every step."""
    return f"    own = rules[spec.name](groups)\n    own.register_step_pre_hook(lambda *_: ({change}, None)[1])\n    return own\n"


TORCH_MUTANTS = [
    Mutant(
        "bias correction stops at step 5",
        "pytorch",
        ADAM,
        "from step 6 on",
        TORCH,
        FUSED,
        before_each_step('[each["step"].clamp_(max=4) for each in own.state.values()]'),
    ),
    Mutant(
        "a schedule stands still after step 5",
        "pytorch",
        SCHEDULED,
        "from step 6 on",
        TORCH,
        "update_scalars.rate_at(rates, step))",
        "update_scalars.rate_at(rates, min(step, 4)))",
    ),
    Mutant(
        "decay left out of the velocity",
        "pytorch",
        replace(SGD, implementation="reference"),
        "from step 2 on",
        TORCH,
        "g = p.grad + decay * p if decay else p.grad\n        inner",
        "g = p.grad\n        p.mul_(1 - spec.learning_rate * decay)\n        inner",
    ),
    Mutant(
        "decay left out of the velocity, Nesterov",
        "pytorch",
        replace(SGD, nesterov=True, implementation="reference"),
        "from step",
        TORCH,
        "g = p.grad + decay * p if decay else p.grad\n        inner",
        "g = p.grad\n        p.mul_(1 - spec.learning_rate * decay)\n        inner",
    ),
    Mutant(
        "momentum reset at step 50",
        "pytorch",
        SGD,
        "from step 50 on",
        TORCH,
        FUSED,
        before_each_step(
            "(setattr(own, 'count', getattr(own, 'count', 0) + 1), own.count == 50 and "
            '[each["momentum_buffer"].zero_() for each in own.state.values()])'
        ),
    ),
    Mutant(
        "epsilon changed from step 11 on",
        "pytorch",
        WRITTEN_OUT,
        "from step 11 on",
        TORCH,
        "((v / second).sqrt() + spec.epsilon))\n        else",
        "((v / second).sqrt() + spec.epsilon * (1 + (self._t > 10))))\n        else",
    ),
    Mutant(
        "AMSGrad",
        "pytorch",
        ADAM,
        "from step",
        TORCH,
        "torch.optim.Adam(g, spec.learning_rate, (spec.beta1, spec.beta2), spec.epsilon, fused=True)",
        "torch.optim.Adam(g, spec.learning_rate, (spec.beta1, spec.beta2), spec.epsilon, amsgrad=True, fused=True)",
    ),
    Mutant(
        "frozen tensors are trained",
        "pytorch",
        SGD,
        "'fixed.weight'",
        "frameworks/pytorch/trainer.py",
        "[each.name for each in network.parameters if each.trainable and each.name in self._named]",
        "[each.name for each in network.parameters if [self._named[each.name].requires_grad_()]]",
    ),
]
JAX_MUTANTS = [
    Mutant(
        "bias correction stops at step 5",
        "jax",
        WRITTEN_OUT,
        "from step 6 on",
        JAX,
        "update_scalars.of_step(spec, self._t)._asdict()",
        "update_scalars.of_step(spec, min(self._t, 5))._asdict()",
    ),
    Mutant(
        "a schedule stands still after step 5",
        "jax",
        SCHEDULED,
        "from step 6 on",
        JAX,
        "jnp.minimum(count, len(rates) - 1)",
        "jnp.minimum(count, 4)",
    ),
    Mutant(
        "decay left out of the velocity",
        "jax",
        SGD,
        "from step 2 on",
        JAX,
        "return [optax.add_decayed_weights(spec.weight_decay, decayed), rules[spec.name]()]",
        "return [rules[spec.name](), optax.add_decayed_weights(-rate * spec.weight_decay, decayed)]",
    ),
    Mutant(
        "decay left out of the velocity, Nesterov",
        "jax",
        replace(SGD, nesterov=True),
        "from step",
        JAX,
        "return [optax.add_decayed_weights(spec.weight_decay, decayed), rules[spec.name]()]",
        "return [rules[spec.name](), optax.add_decayed_weights(-rate * spec.weight_decay, decayed)]",
    ),
    Mutant(
        "momentum reset at step 50",
        "jax",
        SGD,
        "from step 50 on",
        "frameworks/jax/trainer.py",
        "        self.carry, self.loss = self.update(",
        "        self.count = getattr(self, 'count', 0) + 1\n"
        "        if self.count == 50:\n"
        "            self.carry = (*self.carry[:2], jax.tree.map(jax.numpy.zeros_like, self.carry[2]))\n"
        "        self.carry, self.loss = self.update(",
    ),
    Mutant(
        "epsilon changed from step 11 on",
        "jax",
        WRITTEN_OUT,
        "from step 11 on",
        JAX,
        'corrected = jnp.sqrt(v / scalar["second"]) + spec.epsilon',
        'corrected = jnp.sqrt(v / scalar["second"]) + spec.epsilon * (1 + (scalar["second"] > 0.0105))',
    ),
    Mutant("AMSGrad", "jax", ADAM, "from step", JAX, "optax.adam(", "optax.amsgrad("),
]
UNCHANGED = [
    Mutant("unchanged", framework, replace(rule, implementation=implementation), "")
    for framework in ("pytorch", "tensorflow", "jax", "mxnet", "mindspore")
    for rule in (replace(SGD, nesterov=True), CLIPPED)
    for implementation in ("native", "reference")
]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, interpreter: Callable[[str], Path]) -> Iterator[Bench]:
    with ExitStack() as stack:
        yield Bench(tmp_path_factory.mktemp("rules"), interpreter, stack)


@pytest.mark.parametrize("mutant", TORCH_MUTANTS + JAX_MUTANTS, ids=lambda each: f"{each.framework}: {each.name}")
def test_a_mistake_in_a_rule_is_found_with_its_first_step(bench: Bench, mutant: Mutant) -> None:
    found = bench.check(mutant)
    print(found.sentence)
    assert not found.passed
    assert mutant.names in found.sentence


@pytest.mark.parametrize(
    "mutant", UNCHANGED, ids=lambda each: f"{each.framework}: {each.rule.name}, {each.rule.implementation}"
)
def test_a_right_rule_is_within_rounding(bench: Bench, mutant: Mutant) -> None:
    found = bench.check(mutant)
    print(f"{found.worst:.3f}")
    assert found.passed, found.sentence
    assert found.worst < 0.75
