"""Update rules that run inside MXNet's stores, which update one tensor at a time; ranks send them to servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mxnet as mx
import numpy as np

from steelyard_worker.frameworks import update_scalars

if TYPE_CHECKING:
    from mxnet.nd import NDArray

    from steelyard_worker.frameworks.base import Array


class Rates(mx.lr_scheduler.LRScheduler):
    """The rate of each step, which MXNet counts from 1 (P-46); `base_lr` multiplies it."""

    def __init__(self, rates: Array, factor: float) -> None:
        super().__init__(factor)
        self._rates = rates

    def __call__(self, num_update: int) -> float:
        """Return the rate of an update."""
        return self.base_lr * update_scalars.rate_at(self._rates, num_update - 1)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a server: MXNet sends rules as text, which cannot hold the bytes of an array."""
        return vars(self) | {"_rates": self._rates.tolist()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state that a rank has sent."""
        vars(self).update(state | {"_rates": np.array(state["_rates"], np.float32)})


class DecayedAdam(mx.optimizer.Adam):
    """AdamW: multiplies tensors by factors, then runs Adam's operator.

    `decays`: the decay of a step by the key of a tensor, at a learning rate of 1. `rate`: the learning rate without Adam's
    factors, or the rates of the steps.
    """

    def __init__(self, decays: dict[int, float], rate: float | Rates, **adam: Any) -> None:
        super().__init__(**adam)
        self.decays, self.plain_rate = decays, rate

    def update(self, index: int, weight: NDArray, grad: NDArray, state: Any) -> None:
        """Decay, then update."""
        if decay := self.decays.get(index, 0.0):
            step = self._index_update_count.get(index, 0) + 1
            rate = self.plain_rate(step) if isinstance(self.plain_rate, Rates) else self.plain_rate
            weight *= 1 - rate * decay
        super().update(index, weight, grad, state)


class Counting(mx.optimizer.Optimizer):
    """Another rule, but to the tensor with one key it adds what arrives."""

    def __init__(self, rule: mx.optimizer.Optimizer, key: int) -> None:
        super().__init__(rescale_grad=rule.rescale_grad)
        self.rule, self.key = rule, key

    def create_state_multi_precision(self, index: int, weight: NDArray) -> Any:
        """Return the state of the rule."""
        return None if index == self.key else self.rule.create_state_multi_precision(index, weight)

    def update_multi_precision(self, index: int, weight: NDArray, grad: NDArray, state: Any) -> None:
        """Add, or update by the rule."""
        if index == self.key:
            weight += grad
        else:
            self.rule.update_multi_precision(index, weight, grad, state)


class Updates(mx.optimizer.Optimizer):
    """A rule for the tensors with these keys; any other tensor is replaced by what arrived, which is the sum over the ranks.

    A server has one rule for everything that it stores, and batch-norm statistics are averaged between steps.
    """

    def __init__(self, rule: mx.optimizer.Optimizer, keys: range) -> None:
        super().__init__(rescale_grad=rule.rescale_grad)
        self.rule, self.keys = rule, keys

    def create_state_multi_precision(self, index: int, weight: NDArray) -> Any:
        """Return the state of the rule; a sum has none."""
        return self.rule.create_state_multi_precision(index, weight) if index in self.keys else None

    def update_multi_precision(self, index: int, weight: NDArray, grad: NDArray, state: Any) -> None:
        """Update by the rule, or store the sum."""
        if index in self.keys:
            self.rule.rescale_grad = self.rescale_grad  # Gluon sets that of the rule that it knows
            self.rule.update_multi_precision(index, weight, grad, state)
        else:
            grad.copyto(weight)
