"""Update rules: MindSpore's own optimizers, and reference implementations of the canonical formulas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from mindspore import Parameter, ParameterTuple, Tensor, nn, ops
from mindspore.nn.learning_rate_schedule import LearningRateSchedule

from steelyard_worker.frameworks import update_scalars
from steelyard_worker.protocol import WRITTEN_OUT, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard_worker.case import Optimizer
    from steelyard_worker.frameworks.base import Array


def update_rule(
    spec: Optimizer, named: dict[str, Parameter], rates: Array | None = None
) -> tuple[nn.Cell, tuple[str, ...]]:
    """Return a cell that takes the gradients, and the names of the tensors in the order of these gradients.

    `rates`: of every step.
    """
    if spec.implementation == "reference" and rates is not None:
        raise Refusal("unsupported", "MindSpore's written-out update rules have constant learning rates only.")
    if spec.implementation == "reference":
        return Reference(spec, named), tuple(named)
    if spec.name == "adamw":
        return AdamW(spec, named, rates), tuple(named)
    return _native(spec, named, rates)


# Attributes in which rules keep what they have seen, and their first value. Others, such as the learning rate, are constants.
MEMORY = {
    "moments": 0,
    "accum": 0,
    "stat": 1,
    "moment1": 0,
    "moment2": 0,
    "beta1_power": 1,
    "beta2_power": 1,
    "global_step": 0,
    "first": 0,
    "second": 0,
    "powers": 1,
    "step": 0,
}


def forget(rule: nn.Cell) -> None:
    """Set a rule back to its first step; graphs that have its parameters are kept."""
    for name, first in MEMORY.items():
        found = getattr(rule, name, ())
        for parameter in (found,) if isinstance(found, Parameter) else found:
            put(parameter, np.full_like(parameter.asnumpy(), first))


def put(parameter: Parameter, array: Array) -> None:
    """Copy an array into the memory that a parameter has.

    With `set_data` it would get other memory. MindSpore's own rules are graphs in PyNative mode as well, and would update what it
    had before.
    """
    ops.assign(parameter, Tensor(array))


class Rates(LearningRateSchedule):
    """The rate of each step, which MindSpore counts from 0 (P-46); the last one stays for further steps."""

    def __init__(self, rates: Array) -> None:
        super().__init__()
        self.rates, self.last = Tensor(rates), len(rates) - 1

    def construct(self, step: Tensor) -> Tensor:
        """Return the rate of a step, int32 (1,)."""
        return ops.gather(self.rates, ops.minimum(step, self.last), 0)


def _native(spec: Optimizer, named: dict[str, Parameter], rates: Array | None) -> tuple[nn.Cell, tuple[str, ...]]:
    rate = _rate(spec.learning_rate, rates)
    parts = update_scalars.parts(spec, named)
    parameters: list[Any] = list(named.values())
    if len(parts) > 1 or any(part.rule.weight_decay for part in parts):
        # Without groups, names that contain "beta" or "gamma" are exempt from weight decay (P-43).
        parameters = [_group(part, named, rates) for part in parts]
    rules: dict[str, Callable[..., nn.Cell]] = {
        "sgd": lambda p: _descent(spec, p, rate),
        "adam": lambda p: nn.Adam(p, rate, beta1=spec.beta1, beta2=spec.beta2, eps=spec.epsilon),
    }
    if spec.name not in rules:
        available = ", ".join([*rules, "adamw"])
        raise Refusal("unsupported", f"MindSpore has no native {spec.name} here; available: {available}. {WRITTEN_OUT}")
    return rules[spec.name](parameters), tuple(name for part in parts for name in part.names)


def _group(part: update_scalars.Part, named: dict[str, Parameter], rates: Array | None) -> dict[str, Any]:
    found = {"params": [named[name] for name in part.names], "weight_decay": part.rule.weight_decay}
    own = {"lr": _rate(part.rule.learning_rate, update_scalars.rates_times(rates, part.rate))}
    return found | (own if part.rate != 1 else {})


def _rate(constant: float, rates: Array | None) -> float | Rates:
    return constant if rates is None else Rates(np.asarray(rates, np.float32))


def _descent(spec: Optimizer, parameters: list[Any], rate: float | Rates) -> nn.Cell:
    """Return `nn.Momentum` where it can do the rule: it takes half the time of `nn.SGD`, which stores a third array per tensor.

    Its `use_nesterov` has no effect on CPU (P-39).
    """
    if spec.momentum and not spec.nesterov:
        return nn.Momentum(parameters, rate, spec.momentum)
    return nn.SGD(parameters, rate, momentum=spec.momentum, nesterov=spec.nesterov)


class AdamW(nn.Cell):
    """MindSpore's fused Adam kernel after a separate decay of the parameters.

    That takes a tenth of the time of `experimental.optim.AdamW`, which is composed of a dozen operators, and a third of the time
    of the AdamWeightDecay kernel, which has no bias correction (P-40). The Adam kernel's own corrections, 1 - beta^t in float32,
    are wrong by up to 1.5e-5 at t = 2 (P-41). They are switched off, and the corrected learning rate is passed instead.
    """

    def __init__(self, spec: Optimizer, named: dict[str, Parameter], rates: Array | None = None) -> None:
        super().__init__()
        self.first_beta, self.second_beta = spec.beta1, spec.beta2
        self.constant = rates is None
        constants = spec if self.constant else update_scalars.per_unit(spec)
        self.rate, self.epsilon = update_scalars.adam_constants(constants)
        self.decays = tuple(spec.decay_of(name) for name in named)
        self.multiples = tuple(spec.rate_of(name) for name in named)
        self.factors = tuple(1 - spec.of_tensor(name).learning_rate * spec.decay_of(name) for name in named)
        self.schedule = None if rates is None else Rates(rates)
        self.step = Parameter(Tensor(np.zeros(1, np.int32)), name="step", requires_grad=False)
        self.tensors = ParameterTuple(tuple(named.values()))
        self.first = self.tensors.clone(prefix="first", init="zeros")
        self.second = self.tensors.clone(prefix="second", init="zeros")
        self.betas = Tensor(np.array([spec.beta1, spec.beta2]))
        self.powers = Parameter(Tensor(np.ones(2)), name="powers", requires_grad=False)
        self.update = ops.Adam()

    def construct(self, gradients: tuple[Tensor, ...]) -> bool:
        """Apply one update."""
        powers = self.powers * self.betas
        ops.assign(self.powers, powers)
        rate = self.rate * ops.sqrt(1 - powers[1]) / (1 - powers[0])
        now = None if self.constant else self._now()
        rate = (rate if self.constant else rate * now).astype("float32")
        for i in range(len(self.tensors)):
            p = self.tensors[i]
            if self.decays[i] > 0:
                decay = self.multiples[i] * self.decays[i]
                ops.assign(p, p * (self.factors[i] if self.constant else 1 - now * decay))
            self.update(
                p,
                self.first[i],
                self.second[i],
                0.0,
                0.0,
                rate if self.multiples[i] == 1.0 else (rate * self.multiples[i]).astype("float32"),
                self.first_beta,
                self.second_beta,
                self.epsilon,
                gradients[i],
            )
        return True

    def _now(self) -> Tensor:
        """Return the learning rate of this step, float32 (), and count the step."""
        now = self.schedule(self.step).reshape(())
        ops.assign(self.step, self.step + 1)
        return now


class Reference(nn.Cell):
    """The canonical formula of every optimizer, tensor by tensor.

    Scalars that change from step to step are computed on the host (`scalars`) and passed to the graph, so nothing is recompiled.
    """

    def __init__(self, spec: Optimizer, named: dict[str, Parameter]) -> None:
        super().__init__()
        self.rule, self.canonical, self.nesterov = spec.name, spec.form == "canonical", spec.nesterov
        self.momentum, self.epsilon = spec.momentum, spec.epsilon
        self.rates = tuple(spec.of_tensor(name).learning_rate for name in named)
        self.multiples = tuple(spec.rate_of(name) for name in named)
        self.beta1, self.beta2 = spec.beta1, spec.beta2
        self.keep1, self.keep2 = 1 - spec.beta1, 1 - spec.beta2
        self.decays = tuple(spec.decay_of(name) for name in named)
        self.tensors = ParameterTuple(tuple(named.values()))
        self.first = self.tensors.clone(prefix="first", init="zeros")
        self.second = self.tensors.clone(prefix="second", init="zeros")

    def construct(self, gradients: tuple[Tensor, ...], one: Tensor, two: Tensor) -> bool:
        """Apply one update; `one` and `two` are what `scalars` returns."""
        for i in range(len(self.tensors)):
            if self.rule == "sgd":
                self._sgd(i, gradients[i])
            elif self.rule == "lamb":
                self._lamb(i, gradients[i], one, two)
            else:
                self._adam(i, gradients[i], one, two)
        return True

    def _sgd(self, i: int, gradient: Tensor) -> None:
        p, u, decay = self.tensors[i], self.first[i], self.decays[i]
        g = gradient + decay * p if decay else gradient
        velocity = self.momentum * u + g
        ops.assign(u, velocity)
        ops.assign(p, p - self.rates[i] * (g + self.momentum * velocity if self.nesterov else velocity))

    def _adam(self, i: int, gradient: Tensor, one: Tensor, two: Tensor) -> None:
        p, m, v, decay, rate = self.tensors[i], self.first[i], self.second[i], self.decays[i], self.rates[i]
        old = p * (1 - rate * decay) if decay and self.rule == "adamw" else p
        g = gradient + decay * p if decay and self.rule != "adamw" else gradient
        mean, square = self._moments(m, v, g)
        if self.canonical:
            ops.assign(p, old - rate * (mean / one) / (ops.sqrt(square / two) + self.epsilon))
        else:
            size = one if self.multiples[i] == 1.0 else one * self.multiples[i]
            ops.assign(p, old - size * mean / (ops.sqrt(square) + self.epsilon))

    def _lamb(self, i: int, g: Tensor, one: Tensor, two: Tensor) -> None:
        p, m, v, decay = self.tensors[i], self.first[i], self.second[i], self.decays[i]
        mean, square = self._moments(m, v, g)
        change = (mean / one) / (ops.sqrt(square / two) + self.epsilon) + decay * p
        norm, change_norm = ops.sqrt(ops.sum(p * p)), ops.sqrt(ops.sum(change * change))
        nonzero = ops.logical_and(norm > 0, change_norm > 0)
        ratio = norm / ops.where(nonzero, change_norm, ops.ones_like(change_norm))
        ratio = ops.where(nonzero, ratio, ops.ones_like(norm))
        ops.assign(p, p - self.rates[i] * ratio * change)

    def _moments(self, m: Parameter, v: Parameter, g: Tensor) -> tuple[Tensor, Tensor]:
        mean = self.beta1 * m + self.keep1 * g
        square = self.beta2 * v + self.keep2 * g * g
        ops.assign(m, mean)
        ops.assign(v, square)
        return mean, square


def scalars(spec: Optimizer, t: int) -> tuple[float, float]:
    """Return the scalars of step t: the two bias corrections, or the step size of the epsilon-hat form and 1."""
    first, second, rate = update_scalars.of_step(spec, t)
    return (first, second) if spec.form == "canonical" else (rate, 1.0)
