"""Layers as functions over named tensors: weights are looked up by canonical name, new statistics are collected.

One `Layers` lives as long as one trace of the forward pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jax import lax

from steelyard_worker.frameworks.jax import convolution
from steelyard_worker.frameworks.jax.recurrence import Recurrence
from steelyard_worker.probes import is_collecting
from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from steelyard_worker.frameworks.jax.convolution import Pair
    from steelyard_worker.frameworks.jax.recurrence import Cell


@dataclass(frozen=True)
class Choices:
    """How layers are computed where several formulations differ in speed only.

    `parts`: into how many a step divides its batch.
    """

    convolution: str = "auto"
    recurrence: Recurrence = field(default_factory=Recurrence)
    dropout: bool = False
    recomputation: bool = False
    lstm: str = "loop"
    parts: int = 1


# Name under which a trainer keeps the state of its random generator among the statistics.
RANDOM = "dropout.random"


@dataclass(frozen=True)
class Layers:
    """Forward pass over `weights`; when `training`, new running statistics are added to `statistics`.

    With dropout, the state of the random generator is one of the statistics.
    """

    weights: Mapping[str, jax.Array]
    training: bool
    choices: Choices
    statistics: dict[str, jax.Array] = field(default_factory=dict)

    def weight(self, name: str) -> jax.Array:
        """Look a tensor up by its canonical name."""
        if name not in self.weights:
            raise Refusal(
                "implementation", f"The JAX implementation uses a tensor {name}, which network.py does not list."
            )
        return self.weights[name]

    def conv(
        self, name: str, x: jax.Array, stride: int | Pair, padding: int | Pair, *, bias: bool = False
    ) -> jax.Array:
        """Convolve (N, H, W, C) with `<name>.weight` (K, K', C, O), with the same zero padding at both ends of an axis.

        With `bias`, `<name>.bias` (O,) is added.
        """
        y = convolution.convolve(self.choices.convolution, x, self.weight(f"{name}.weight"), stride, padding)
        return y + self.weight(f"{name}.bias") if bias else y

    def batch_norm(self, name: str, x: jax.Array, epsilon: float, momentum: float) -> jax.Array:
        """Normalise the last axis; `momentum` is the weight of the new statistic.

        The running variance uses the unbiased estimate: the factor n/(n-1) is applied to the C values of the batch variance in
        the training step (P-03), at a negligible cost.
        """
        if self.training:
            axes, count = tuple(range(x.ndim - 1)), x.size // x.shape[-1]
            mean, variance = jnp.mean(x, axes), jnp.var(x, axes)
            self._move(f"{name}.running_mean", mean, momentum)
            self._move(f"{name}.running_var", variance * (count / (count - 1)), momentum)
        else:
            mean, variance = self.weight(f"{name}.running_mean"), self.weight(f"{name}.running_var")
        scale = lax.rsqrt(variance + epsilon) * self.weight(f"{name}.gamma")
        return (x - mean) * scale + self.weight(f"{name}.beta")

    def _move(self, name: str, new: jax.Array, momentum: float) -> None:
        self.statistics[name] = (1 - momentum) * self.weight(name) + momentum * lax.stop_gradient(new)

    def dense(self, name: str, x: jax.Array) -> jax.Array:
        """(N, in) -> (N, out), with bias."""
        return x @ self.weight(f"{name}.weight") + self.weight(f"{name}.bias")

    def dropout(self, x: jax.Array, rate: float) -> jax.Array:
        """Inverted dropout in training: units become zero with the probability `rate`, the others grow."""
        if not (self.training and self.choices.dropout):
            return x
        state, own = jax.random.split(self.statistics.get(RANDOM, self.weights[RANDOM]))
        self.statistics[RANDOM] = state
        return jnp.where(jax.random.bernoulli(own, 1 - rate, x.shape), x / (1 - rate), 0)

    def block(self, function: Callable[..., jax.Array], *arrays: jax.Array) -> jax.Array:
        """Return `function(layers, *arrays)`, a block of the network; with recomputation, the backward pass computes it again.

        Inner tensors that are collected would not exist outside of such a block, so then it is an ordinary part.
        """
        if not (self.training and self.choices.recomputation) or is_collecting():
            return function(self, *arrays)

        def run(*arrays: jax.Array) -> tuple[jax.Array, dict[str, jax.Array]]:
            inner = replace(self, statistics=dict(self.statistics))
            return function(inner, *arrays), inner.statistics

        found, statistics = jax.checkpoint(run)(*arrays)
        self.statistics.update(statistics)
        return found

    def recur(self, name: str, cell: Cell, x: jax.Array, backward: bool, valid: jax.Array | None = None) -> jax.Array:
        """Recurrent layer with one bias (P-21) over (T, N, in), from the last step if `backward`: (T, N, H).

        Where `valid` (T, N, 1) is 0 instead of 1, the states are set to zero.
        """
        w_ih, w_hh, b = (self.weight(f"{name}.{kind}") for kind in ("w_ih", "w_hh", "b"))
        return self.choices.recurrence.run(cell, x, w_ih, w_hh, b, backward, valid)


def cross_entropy(logits: jax.Array, label: jax.Array) -> jax.Array:
    """Mean softmax cross-entropy from logits (N, classes) and indices (N,)."""
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), label[:, None], axis=1)
    return -jnp.mean(chosen)
