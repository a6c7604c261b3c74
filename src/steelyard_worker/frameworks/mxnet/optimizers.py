"""Update rules: MXNet's own operators driven by a Gluon Trainer, and the canonical formulas written out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import mxnet as mx
import numpy as np
from mxnet import gluon, nd

from steelyard_worker.protocol import WRITTEN_OUT, Optimizer, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mxnet.gluon import Parameter
    from mxnet.nd import NDArray


def update_rule(spec: Optimizer, named: dict[str, Parameter]) -> Any:
    """Return an object with `step(batch_size)` over the trainable parameters, whose gradients `backward` has written."""
    rule = Strict(spec, named) if spec.implementation == "reference" else _native(spec, named)
    return Clipped(rule, spec.clip, list(named.values())) if spec.clip else rule


# Squares that are added in one product: OpenBLAS adds one after the other, and loses a float32 rounding with many of them.
ADDED = 2**18


class Clipped:
    """Scales all gradients together before the rule sees them, as Gluon's own `clip_global_norm` does, unread on the device.

    Its own is off by 2e-4 for an embedding of 33 million, as it adds all squares of a tensor in one product, and has no way for
    float64. This one costs a product for every quarter of a million.
    """

    def __init__(self, rule: Any, limit: float, parameters: list[Parameter]) -> None:
        self._rule, self._limit, self._parameters = rule, limit, parameters

    def step(self, batch_size: int) -> None:
        """Clip, then update."""
        gradients = [parameter.grad() for parameter in self._parameters]
        norm = nd.add_n(*(nd.dot(part, part) for gradient in gradients for part in _parts(gradient))).sqrt()
        scale = nd.minimum(self._limit / (norm + 1e-8), 1)
        for gradient in gradients:
            gradient *= scale
        self._rule.step(batch_size)


def _parts(gradient: NDArray) -> Iterator[NDArray]:
    """Give all elements as views of at most ADDED."""
    flat = gradient.reshape(-1)
    for start in range(0, flat.size, ADDED):
        yield flat[start : start + ADDED]


class Decayed:
    """AdamW: shrinks the decayed parameters by a factor, then leaves the step to Adam's operator.

    Together they take two thirds of the time of MXNet's own operator for it, `contrib.adamw_update`.
    """

    def __init__(self, rule: gluon.Trainer, factor: float, parameters: list[Parameter]) -> None:
        self._rule, self._factor, self._parameters = rule, factor, parameters

    def step(self, batch_size: int) -> None:
        """Decay, then update."""
        for parameter in self._parameters:
            weight = parameter.data()
            weight *= self._factor
        self._rule.step(batch_size)


def _native(spec: Optimizer, named: dict[str, Parameter]) -> Any:
    for name, parameter in named.items():
        # Left alone, a Gluon Trainer decays every parameter (P-43).
        parameter.wd_mult = 1.0 if name in spec.decay else 0.0
    if spec.name == "sgd":
        rule = mx.optimizer.NAG if spec.nesterov else mx.optimizer.SGD
        made = rule(learning_rate=spec.learning_rate, momentum=spec.momentum, wd=spec.weight_decay)
    elif spec.name in ("adam", "adamw"):
        made = _adam(spec, coupled=spec.weight_decay if spec.name == "adam" else 0.0)
    else:
        raise Refusal(
            "unsupported", f"No native {spec.name} is known for MXNet; known: sgd, adam, adamw. {WRITTEN_OUT}"
        )
    # kvstore=None: there is one device, so nothing has to be summed.
    trainer = gluon.Trainer(list(named.values()), made, kvstore=None)
    if spec.name != "adamw":
        return trainer
    return Decayed(
        trainer, 1 - spec.learning_rate * spec.weight_decay, [named[name] for name in named if name in spec.decay]
    )


def _adam(spec: Optimizer, coupled: float) -> mx.optimizer.Adam:
    """Return MXNet's Adam with the rounding of its constants taken out.

    The operator computes 1 - beta in float32 (optimizer_op-inl.h: `1.f - param.beta2`), so that for 0.999 the second
    moment comes out 1.3e-5 too small and every step 6e-6 too long: a hundred roundings. As m and v are linear in these
    factors, a learning rate and an epsilon changed by as little give exactly the declared formula.
    """
    first = (1 - float(np.float32(spec.beta1))) / (1 - spec.beta1)
    second = math.sqrt((1 - float(np.float32(spec.beta2))) / (1 - spec.beta2))
    return mx.optimizer.Adam(
        learning_rate=spec.learning_rate * second / first, beta1=spec.beta1, beta2=spec.beta2,
        epsilon=spec.epsilon * second, wd=coupled,
    )  # fmt: skip


class Strict:
    """The canonical formulas of every optimizer, tensor by tensor and in place; scalars are computed on the host."""

    def __init__(self, spec: Optimizer, named: dict[str, Parameter]) -> None:
        self._spec, self._named, self._t = spec, named, 0
        self._first = {name: nd.zeros_like(parameter.data()) for name, parameter in named.items()}
        self._second = {name: nd.zeros_like(parameter.data()) for name, parameter in named.items()}

    def step(self, batch_size: int) -> None:
        """Apply one update; the gradients are of a mean already, so `batch_size` is 1 (P-45)."""
        self._t += batch_size
        rule = {"sgd": self._sgd, "lamb": self._lamb}.get(self._spec.name, self._adam)
        for name, parameter in self._named.items():
            decay = self._spec.weight_decay if name in self._spec.decay else 0.0
            rule(name, parameter.data(), parameter.grad(), decay)

    def _sgd(self, name: str, p: NDArray, g: NDArray, decay: float) -> None:
        spec, u = self._spec, self._first[name]
        if decay:
            g = g + decay * p
        u *= spec.momentum
        u += g
        p -= spec.learning_rate * (g + spec.momentum * u if spec.nesterov else u)

    def _adam(self, name: str, p: NDArray, g: NDArray, decay: float) -> None:
        spec, m, v = self._spec, self._first[name], self._second[name]
        if decay and spec.name == "adamw":
            p *= 1 - spec.learning_rate * decay
        elif decay:
            g = g + decay * p
        self._remember(m, v, g)
        first, second = spec.corrections(self._t)
        if spec.form == "canonical":
            p -= spec.learning_rate * (m / first) / ((v / second).sqrt() + spec.epsilon)
        else:
            p -= (spec.learning_rate * math.sqrt(second) / first) * m / (v.sqrt() + spec.epsilon)

    def _lamb(self, name: str, p: NDArray, g: NDArray, decay: float) -> None:
        spec, m, v = self._spec, self._first[name], self._second[name]
        self._remember(m, v, g)
        first, second = spec.corrections(self._t)
        change = (m / first) / ((v / second).sqrt() + spec.epsilon) + decay * p
        # Read back: what a ratio is where a norm is zero has to be decided.
        ours, theirs = (float(each.norm().asscalar()) for each in (p, change))
        p -= spec.learning_rate * (ours / theirs if ours and theirs else 1.0) * change

    def _remember(self, m: NDArray, v: NDArray, g: NDArray) -> None:
        spec = self._spec
        m *= spec.beta1
        m += (1 - spec.beta1) * g
        v *= spec.beta2
        v += (1 - spec.beta2) * g * g
