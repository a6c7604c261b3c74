"""Update rules: MXNet's own operators run by a Gluon Trainer, and reference implementations of the canonical formulas."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import mxnet as mx
from mxnet import gluon, nd

from steelyard_worker.frameworks import update_scalars
from steelyard_worker.frameworks.mxnet.served import Rates
from steelyard_worker.protocol import WRITTEN_OUT, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mxnet.gluon import Parameter
    from mxnet.nd import NDArray

    from steelyard_worker.case import Optimizer
    from steelyard_worker.frameworks.base import Array


def update_rule(spec: Optimizer, named: dict[str, Parameter], rates: Array | None = None, lazy: bool = False) -> Any:
    """Return an object with `step(batch_size)` over the trainable parameters, with gradients from `backward`.

    `rates`: of every step. `lazy`: the rows that a row-sparse gradient lacks are not updated; otherwise they are updated as if it
    were zero there.
    """
    reference = spec.implementation == "reference"
    rule = Reference(spec, named, rates) if reference else _native(spec, named, rates, lazy)
    return Clipped(rule, spec.clip, list(named.values())) if spec.clip else rule


# Largest number of squares in one product. OpenBLAS adds them one after the other in float32, which loses accuracy with many.
MAX_SUMMANDS = 2**18


class Clipped:
    """Clips the global norm of all gradients, then applies a rule; nothing is read back to the host.

    Gluon's own `clip_global_norm` adds all squares of a tensor in one product, so it is wrong by 2e-4 for an embedding of 33
    million elements, and it does not support float64. This one uses one product for every quarter of a million elements.
    """

    def __init__(self, rule: Any, limit: float, parameters: list[Parameter]) -> None:
        self._rule, self._limit, self._parameters = rule, limit, parameters

    def step(self, batch_size: int) -> None:
        """Clip, then update."""
        clip([parameter.grad() for parameter in self._parameters], self._limit)
        self._rule.step(batch_size)


def clip(gradients: Sequence[NDArray], limit: float) -> None:
    """Clip the global norm of gradients on one device, in place."""
    multiply(gradients, scale_for(squares(gradients), limit))


def squares(gradients: Sequence[NDArray]) -> NDArray:
    """Return the sum of the squares of all elements."""
    return nd.add_n(*(nd.dot(part, part) for gradient in gradients for part in _parts(gradient)))


def scale_for(squares: NDArray, limit: float) -> NDArray:
    """Return what gradients with this sum of squares are multiplied by."""
    return nd.minimum(limit / (squares.sqrt() + 1e-8), 1)


def multiply(gradients: Sequence[NDArray], scale: NDArray) -> None:
    """Multiply gradients in place."""
    for gradient in gradients:
        gradient *= scale


def _parts(gradient: NDArray) -> Iterator[NDArray]:
    """Yield all elements as views of at most MAX_SUMMANDS elements."""
    flat = gradient.reshape(-1)
    for start in range(0, flat.size, MAX_SUMMANDS):
        yield flat[start : start + MAX_SUMMANDS]


class Decayed:
    """AdamW: multiplies the decayed parameters by factors, then runs Adam's operator.

    Together that takes two thirds of the time of MXNet's own AdamW operator, `contrib.adamw_update`.
    """

    def __init__(self, rule: gluon.Trainer, spec: Optimizer, named: dict[str, Parameter], rates: Array | None) -> None:
        self._rule, self._spec, self._rates, self._steps = rule, spec, rates, 0
        decays = {name: spec.rate_of(name) * spec.decay_of(name) for name in named}
        self._decays = [(named[name], decay) for name, decay in decays.items() if decay]

    def step(self, batch_size: int) -> None:
        """Decay, then update."""
        rate = self._spec.learning_rate if self._rates is None else update_scalars.rate_at(self._rates, self._steps)
        self._steps += 1
        for parameter, decay in self._decays:
            weight = parameter.data()
            weight *= 1 - rate * decay
        self._rule.step(batch_size)


class DecayedFirst(mx.optimizer.NAG):
    """Nesterov's momentum, whose decay is added to the gradient before the update.

    MXNet's operator reads a weight for the decay in the momentum after it has written the new one (`nag_mom_update` in place), so
    what a weight remembers would be off by rate times decay.
    """

    def _get_wd(self, index: Any) -> float:
        del index
        return 0.0

    def _update_impl(
        self, index: Any, weight: NDArray, grad: NDArray, state: Any, multi_precision: bool = False
    ) -> None:
        decay = super()._get_wd(index)
        if decay:
            grad += decay / self.rescale_grad * weight
        super()._update_impl(index, weight, grad, state, multi_precision)


def _rate(factor: float, constant: float, rates: Array | None) -> dict[str, Any]:
    """Return the arguments of an optimizer for its learning rate; `factor` multiplies the rates of the steps."""
    if rates is None:
        return {"learning_rate": constant}
    return {"learning_rate": factor, "lr_scheduler": Rates(rates, factor)}


def native(spec: Optimizer, named: dict[str, Parameter], rates: Array | None, lazy: bool) -> mx.optimizer.Optimizer:
    """Return MXNet's own optimizer; of AdamW without the decay. Refusal: it has none."""
    for name, parameter in named.items():
        # By default, a Gluon Trainer decays every parameter (P-43).
        parameter.wd_mult = spec.decay_of(name) / spec.weight_decay if spec.weight_decay else 0.0
        parameter.lr_mult = spec.rate_of(name)
    if spec.name == "sgd":
        constants = {**_rate(1.0, spec.learning_rate, rates), "momentum": spec.momentum, "wd": spec.weight_decay}
        return DecayedFirst(**constants) if spec.nesterov else mx.optimizer.SGD(lazy_update=lazy, **constants)
    if spec.name in ("adam", "adamw"):
        return mx.optimizer.Adam(**adam_constants(spec, rates, lazy))
    raise Refusal("unsupported", f"MXNet has no native {spec.name} here; available: sgd, adam, adamw. {WRITTEN_OUT}")


def _native(spec: Optimizer, named: dict[str, Parameter], rates: Array | None, lazy: bool) -> Any:
    # kvstore=None: there is one device, so nothing has to be summed.
    trainer = gluon.Trainer(list(named.values()), native(spec, named, rates, lazy), kvstore=None)
    if spec.name != "adamw":
        return trainer
    return Decayed(trainer, spec, named, rates)


def adam_constants(spec: Optimizer, rates: Array | None, lazy: bool) -> dict[str, Any]:
    """Return the arguments of MXNet's Adam.

    Its kernel computes 1 - beta in float32 for tensors of any type (optimizer_op-inl.h).
    """
    factor, epsilon = update_scalars.adam_constants(update_scalars.per_unit(spec))
    constant, _ = update_scalars.adam_constants(spec)
    coupled = spec.weight_decay if spec.name == "adam" else 0.0
    return {
        **_rate(factor, constant, rates),
        "beta1": spec.beta1,
        "beta2": spec.beta2,
        "epsilon": epsilon,
        "wd": coupled,
        "lazy_update": lazy,
    }


class Reference:
    """The formula of every optimizer in its declared form, tensor by tensor and in place; scalars are computed on the host."""

    def __init__(self, spec: Optimizer, named: dict[str, Parameter], rates: Array | None = None) -> None:
        self._spec, self._named, self._rates, self._t = spec, named, rates, 0
        self._first = {name: nd.zeros_like(parameter.data()) for name, parameter in named.items()}
        self._second = {name: nd.zeros_like(parameter.data()) for name, parameter in named.items()}

    def step(self, batch_size: int) -> None:
        """Apply one update; gradients are those of a mean loss, so `batch_size` is 1 (P-45)."""
        if self._rates is not None:
            self._spec = replace(self._spec, learning_rate=update_scalars.rate_at(self._rates, self._t))
        self._t += batch_size
        rule = {"sgd": self._sgd, "lamb": self._lamb}.get(self._spec.name, self._adam)
        for name, parameter in self._named.items():
            rule(self._spec.of_tensor(name), name, parameter.data(), parameter.grad())

    def _sgd(self, spec: Optimizer, name: str, p: NDArray, g: NDArray) -> None:
        u, decay = self._first[name], spec.decay_of(name)
        if decay:
            g = g + decay * p
        inner, outer = update_scalars.rates_of(spec)
        u *= spec.momentum
        u += inner * g
        p -= outer * (inner * g + spec.momentum * u if spec.nesterov else u)

    def _adam(self, spec: Optimizer, name: str, p: NDArray, g: NDArray) -> None:
        m, v, decay = self._first[name], self._second[name], spec.decay_of(name)
        if decay and spec.name == "adamw":
            p *= 1 - spec.learning_rate * decay
        elif decay:
            g = g + decay * p
        self._update_moments(m, v, g)
        first, second, rate = update_scalars.of_step(spec, self._t)
        if spec.form == "canonical":
            p -= spec.learning_rate * (m / first) / ((v / second).sqrt() + spec.epsilon)
        else:
            p -= rate * m / (v.sqrt() + spec.epsilon)

    def _lamb(self, spec: Optimizer, name: str, p: NDArray, g: NDArray) -> None:
        m, v, decay = self._first[name], self._second[name], spec.decay_of(name)
        self._update_moments(m, v, g)
        first, second = spec.corrections(self._t)
        change = (m / first) / ((v / second).sqrt() + spec.epsilon) + decay * p
        # Read back to the host, because a norm of zero needs its own case. Not `norm()`, which is off by 6e-4 for a matrix of
        # 30,522 by 64: it adds up the squares one after the other.
        norm, change_norm = (float(nd.square(each).sum().asscalar()) ** 0.5 for each in (p, change))
        p -= spec.learning_rate * (norm / change_norm if norm and change_norm else 1.0) * change

    def _update_moments(self, m: NDArray, v: NDArray, g: NDArray) -> None:
        spec = self._spec
        m *= spec.beta1
        m += (1 - spec.beta1) * g
        v *= spec.beta2
        v += (1 - spec.beta2) * g * g
