"""Update rules: Keras's optimizers, TensorFlow's fused update kernels, and reference implementations of the formulas."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import tensorflow as tf

from steelyard_worker.frameworks import update_scalars
from steelyard_worker.protocol import WRITTEN_OUT, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from steelyard_worker.case import Optimizer
    from steelyard_worker.frameworks.base import Array

    Named = dict[str, tf.Variable]
    # What computes an update from gradients; a rule can also forget what it has seen.
    Update = Callable[[list[tf.Tensor]], None]


NATIVE = ("sgd", "adam", "adamw")


class Rule(Protocol):
    """An update rule over some variables."""

    def __call__(self, gradients: list[tf.Tensor]) -> None:
        """Apply one update."""

    def forget(self) -> None:
        """Assign to the rule's own variables what they had before the first step; functions that use them are kept."""


def update_rule(
    spec: Optimizer, named: Named, kernel: str, rates: Array | None = None, sparse: Collection[str] = ()
) -> Rule:
    """Return a function of the gradients, in the order of `named`, that updates the variables.

    `kernel` selects the native rules: "fused", TensorFlow's one-pass operators, or "keras", `keras.optimizers`. `rates`: of every
    step. Gradients are dense but those of the names in `sparse`, which are slices of rows.
    """
    if sparse:
        if rates is not None:
            raise Refusal("unsupported", "Learning rates that change were not built for sparse gradients.")
        return Sparse(spec, named, kernel, sparse)
    if spec.implementation == "reference":
        rule: Rule = Reference(spec, named, rates)
    else:
        _check_native(spec)
        rule = Fused(spec, named, rates) if kernel == "fused" else OfKeras(spec, named, rates)
    return Clipped(rule, spec.clip) if spec.clip else rule


def zero(variables: Iterable[tf.Variable]) -> None:
    """Assign zeros to variables, wherever each of them is."""
    for variable in variables:
        with tf.device(variable.device):
            variable.assign(tf.zeros(variable.shape, variable.dtype))


class Clipped:
    """Clips the global norm of all gradients, then applies a rule."""

    def __init__(self, rule: Rule, limit: float) -> None:
        self._rule, self._limit = rule, limit

    def __call__(self, gradients: list[tf.Tensor]) -> None:
        """Clip, then update."""
        self._rule(tf.clip_by_global_norm(gradients, self._limit)[0])

    def forget(self) -> None:
        """Make the rule begin again."""
        self._rule.forget()


def _check_native(spec: Optimizer) -> None:
    if spec.name not in NATIVE:
        available = ", ".join(NATIVE)
        raise Refusal(
            "unsupported", f"TensorFlow has no native {spec.name} here; available: {available}. {WRITTEN_OUT}"
        )


class Sparse:
    """SGD that adds slices to the rows they belong to, which is the rule for dense gradients if there is no momentum."""

    def __init__(self, spec: Optimizer, named: Named, kernel: str, sparse: Collection[str]) -> None:
        if spec.name != "sgd" or spec.momentum or spec.weight_decay or spec.clip or spec.implementation == "reference":
            raise Refusal(
                "unsupported", "TensorFlow updates slices by native SGD without momentum, decay and clipping."
            )
        self._rows = [name in sparse for name in named]
        self._tables = [variable for name, variable in named.items() if name in sparse]
        self._rate = spec.learning_rate
        dense = {name: variable for name, variable in named.items() if name not in sparse}
        self._dense = update_rule(spec, dense, kernel) if dense else None

    def __call__(self, gradients: list[tf.Tensor | tf.IndexedSlices]) -> None:
        """Apply one update."""
        slices = [gradient for gradient, rows in zip(gradients, self._rows, strict=True) if rows]
        for table, each in zip(self._tables, slices, strict=True):
            table.scatter_sub(tf.IndexedSlices(self._rate * each.values, each.indices))
        if self._dense:
            self._dense([gradient for gradient, rows in zip(gradients, self._rows, strict=True) if not rows])

    def forget(self) -> None:
        """Make the rule for dense gradients begin again; the other one has no memory."""
        if self._dense:
            self._dense.forget()


class Rate:
    """The learning rate of a step: a constant, or a value of the array at the number of the step, looked up in the graph."""

    def __init__(self, constant: float, rates: Array | None) -> None:
        self._constant, self._rates = constant, None if rates is None else tf.constant(rates, tf.float64)

    def at(self, step: tf.Tensor) -> float | tf.Tensor:
        """Return the rate of a step, counted from 0: a number, or a float64 scalar; the last one stays for further steps."""
        if self._rates is None:
            return self._constant
        return tf.gather(self._rates, tf.minimum(tf.cast(step, tf.int64), len(self._rates) - 1))


def _scalar(value: float | tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    return tf.cast(value, dtype) if tf.is_tensor(value) else tf.constant(value, dtype)


class Fused:
    """The operators behind TensorFlow's own optimizers, which read and write parameter, moments and gradient once.

    ResourceApplyAdam is the epsilon-hat form (P-40). Its own bias corrections, 1 - beta^t in float32, are wrong by up to 1.5e-5
    at t = 2 (P-41). They are switched off, and the corrected learning rate is passed instead.
    """

    def __init__(self, spec: Optimizer, named: Named, rates: Array | None = None) -> None:
        self._spec, self._named, self._learning_rate = spec, named, Rate(spec.learning_rate, rates)
        self._first = {name: tf.Variable(tf.zeros_like(variable)) for name, variable in named.items()}
        moments = named if spec.name != "sgd" else {}
        self._second = {name: tf.Variable(tf.zeros_like(variable)) for name, variable in moments.items()}
        self._t = tf.Variable(0, dtype=tf.int64)
        dtype = next(iter(named.values())).dtype.as_numpy_dtype
        self._factor, self._epsilon = update_scalars.adam_constants(update_scalars.per_unit(spec), dtype)

    def __call__(self, gradients: list[tf.Tensor]) -> None:
        """Apply one update."""
        spec, learning_rate = self._spec, self._learning_rate.at(self._t)
        self._t.assign_add(1)
        rate = learning_rate if spec.name == "sgd" else self._corrected(learning_rate)
        for (name, variable), gradient in zip(self._named.items(), gradients, strict=True):
            decay, multiple = spec.decay_of(name), spec.rate_of(name)
            if decay and spec.name == "adamw":
                variable.assign(variable * _scalar(1 - learning_rate * multiple * decay, variable.dtype))
            elif decay:
                gradient = gradient + decay * variable
            (self._sgd if spec.name == "sgd" else self._adam)(name, variable, gradient, rate * multiple)

    def forget(self) -> None:
        """Begin again with moments of zero."""
        zero((*self._first.values(), *self._second.values(), self._t))

    def _corrected(self, rate: float | tf.Tensor) -> tf.Tensor:
        first, second = bias_corrections(self._spec, self._t)
        return rate * self._factor * tf.sqrt(second) / first

    def _sgd(self, name: str, variable: tf.Variable, gradient: tf.Tensor, rate: float | tf.Tensor) -> None:
        tf.raw_ops.ResourceApplyMomentum(
            var=variable.handle,
            accum=self._first[name].handle,
            grad=gradient,
            lr=_scalar(rate, variable.dtype),
            momentum=self._spec.momentum,
            use_nesterov=self._spec.nesterov,
        )

    def _adam(self, name: str, variable: tf.Variable, gradient: tf.Tensor, rate: tf.Tensor) -> None:
        spec, none = self._spec, tf.zeros((), variable.dtype)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._first[name].handle,
            v=self._second[name].handle,
            beta1_power=none,
            beta2_power=none,
            lr=tf.cast(rate, variable.dtype),
            beta1=spec.beta1,
            beta2=spec.beta2,
            epsilon=self._epsilon,
            grad=gradient,
        )


class OfKeras:
    """Optimizers of `keras.optimizers`, which have one learning rate: one for all variables, or one for each of their groups."""

    def __init__(self, spec: Optimizer, named: Named, rates: Array | None) -> None:
        places = {name: place for place, name in enumerate(named)}
        self._variables, self._optimizers = list(named.values()), []
        for rule, multiple, names in _parts_of_keras(spec, named):
            own = {name: named[name] for name in names}
            made = keras_optimizer(rule, own, update_scalars.rates_times(rates, multiple))
            self._optimizers.append((made, [places[name] for name in names]))
        # In Keras, weight_decay is decoupled in every optimizer (P-42), so coupled decay is added to the gradient here.
        self._coupled = [spec.decay_of(name) if spec.name != "adamw" else 0.0 for name in named]

    def __call__(self, gradients: list[tf.Tensor]) -> None:
        """Apply one update."""
        full = [g + d * v if d else g for g, d, v in zip(gradients, self._coupled, self._variables, strict=True)]
        for optimizer, places in self._optimizers:
            optimizer.apply([full[place] for place in places], [self._variables[place] for place in places])

    def forget(self) -> None:
        """Begin again with moments of zero."""
        for optimizer, _ in self._optimizers:
            forget_by_keras(optimizer)


def _parts_of_keras(spec: Optimizer, named: Named) -> list[update_scalars.Part]:
    """Return what has an optimizer of its own. Variables that do not decay need none, because Keras can exempt them."""
    if not spec.groups:
        return [update_scalars.Part(spec, 1.0, tuple(named))]
    return update_scalars.parts(spec, named)


def forget_by_keras(optimizer: Any) -> None:
    """Set an optimizer of Keras back to its first step: all its variables but the learning rate begin with zero."""
    rate = optimizer.learning_rate  # with a schedule, a tensor, which is none of the variables
    for variable in optimizer.variables:
        if variable is not rate:
            variable.assign(np.zeros(variable.shape, variable.dtype))


def keras_optimizer(spec: Optimizer, named: Named, rates: Array | None = None) -> Any:
    """Return an optimizer of `keras.optimizers` for these variables; Refusal: it has no such rule."""
    import keras

    _check_native(spec)
    if rates is not None and spec.momentum:
        raise Refusal(
            "unsupported",
            "Keras' SGD keeps each step's learning rate in its momentum (P-38). Use --knob tensorflow.update=fused.",
        )
    variables = list(named.values())
    keras.config.set_floatx(variables[0].dtype.name)  # the precision of the learning rate
    optimizer = _keras_optimizer(spec, spec.learning_rate if rates is None else _keras_schedule(rates))
    if spec.name == "adamw":
        exempt = [variable for name, variable in named.items() if name not in spec.decay]
        optimizer.exclude_from_weight_decay(var_list=exempt)
    optimizer.build(variables)
    return optimizer


def _keras_schedule(rates: Array) -> Any:
    import keras

    class Rates(keras.optimizers.schedules.LearningRateSchedule):
        """The rate of each step, which Keras counts from 0 (P-46)."""

        def __init__(self) -> None:
            self._rate = Rate(0.0, rates)

        def __call__(self, step: tf.Tensor) -> tf.Tensor:
            return self._rate.at(step)

    return Rates()


def _keras_optimizer(spec: Optimizer, rate: Any) -> Any:
    import keras

    if spec.name == "sgd":
        return keras.optimizers.SGD(rate, momentum=spec.momentum, nesterov=spec.nesterov)
    betas = {"beta_1": spec.beta1, "beta_2": spec.beta2, "epsilon": spec.epsilon}
    if spec.name == "adam":
        return keras.optimizers.Adam(rate, **betas)
    return keras.optimizers.AdamW(rate, weight_decay=spec.weight_decay, **betas)


class Reference:
    """The formula of every optimizer in its declared form, variable by variable."""

    def __init__(self, spec: Optimizer, named: Named, rates: Array | None = None) -> None:
        self._spec, self._named, self._learning_rate = spec, named, Rate(spec.learning_rate, rates)
        self._first = {name: tf.Variable(tf.zeros_like(variable)) for name, variable in named.items()}
        self._second = {name: tf.Variable(tf.zeros_like(variable)) for name, variable in named.items()}
        self._t = tf.Variable(0, dtype=tf.int64)

    def __call__(self, gradients: list[tf.Tensor]) -> None:
        """Apply one update."""
        rate = self._learning_rate.at(self._t)
        self._t.assign_add(1)
        rule = {"sgd": self._sgd, "lamb": self._lamb}.get(self._spec.name, self._adam)
        for (name, variable), gradient in zip(self._named.items(), gradients, strict=True):
            rule(name, variable, gradient, self._spec.decay_of(name), rate * self._spec.rate_of(name))

    def forget(self) -> None:
        """Begin again with moments of zero."""
        zero((*self._first.values(), *self._second.values(), self._t))

    def _sgd(self, name: str, p: tf.Variable, g: tf.Tensor, decay: float, rate: float | tf.Tensor) -> None:
        spec, u = self._spec, self._first[name]
        inner, outer = update_scalars.rates_of(replace(spec, learning_rate=_scalar(rate, p.dtype)))
        g = g + decay * p if decay else g
        u.assign(spec.momentum * u + inner * g)
        p.assign_sub(outer * (inner * g + spec.momentum * u if spec.nesterov else u))

    def _adam(self, name: str, p: tf.Variable, g: tf.Tensor, decay: float, rate: float | tf.Tensor) -> None:
        spec, m, v = self._spec, self._first[name], self._second[name]
        if decay and spec.name == "adamw":
            p.assign(p * _scalar(1 - rate * decay, p.dtype))
        elif decay:
            g = g + decay * p
        self._update_moments(m, v, g)
        first, second = bias_corrections(spec, self._t)
        if spec.form == "canonical":
            scale, root = tf.cast(1 / first, p.dtype), tf.cast(1 / second, p.dtype)
            p.assign_sub(_scalar(rate, p.dtype) * (m * scale) / (tf.sqrt(v * root) + spec.epsilon))
        else:
            scale = tf.cast(rate * tf.sqrt(second) / first, p.dtype)
            p.assign_sub(scale * m / (tf.sqrt(v) + spec.epsilon))

    def _lamb(self, name: str, p: tf.Variable, g: tf.Tensor, decay: float, rate: float | tf.Tensor) -> None:
        spec, m, v = self._spec, self._first[name], self._second[name]
        self._update_moments(m, v, g)
        scale, root = (tf.cast(1 / correction, p.dtype) for correction in bias_corrections(spec, self._t))
        change = m * scale / (tf.sqrt(v * root) + spec.epsilon) + decay * p
        norm, change_norm = tf.norm(p), tf.norm(change)
        ratio = tf.math.divide_no_nan(norm, change_norm)
        ratio = tf.where((norm > 0) & (change_norm > 0), ratio, tf.ones_like(norm))
        p.assign_sub(_scalar(rate, p.dtype) * ratio * change)

    def _update_moments(self, m: tf.Variable, v: tf.Variable, g: tf.Tensor) -> None:
        m.assign(self._spec.beta1 * m + (1 - self._spec.beta1) * g)
        v.assign(self._spec.beta2 * v + (1 - self._spec.beta2) * g * g)


def bias_corrections(spec: Optimizer, t: tf.Variable) -> tuple[tf.Tensor, tf.Tensor]:
    """Return 1 - beta1^t and 1 - beta2^t in the precision that the rule declares."""
    dtype = tf.float64 if spec.correction == "float64" else tf.float32
    # Computed in float64 and rounded once. Powers in float32 are sometimes off by one unit in the last place, differently in
    # every library.
    rounded = (float(dtype.as_numpy_dtype(beta)) for beta in (spec.beta1, spec.beta2))
    powers = (tf.constant(beta, tf.float64) ** tf.cast(t, tf.float64) for beta in rounded)
    # Back to float64, so that what is computed from a correction is not rounded a second time.
    first, second = (tf.cast(1 - tf.cast(power, dtype), tf.float64) for power in powers)
    return first, second
