"""The update of the tensors of one stage, where gradients are clipped by the norm of those of all stages."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from steelyard_worker.frameworks.jax import optimizers

if TYPE_CHECKING:
    from steelyard_worker.case import Optimizer
    from steelyard_worker.frameworks.base import Array

    Tensors = dict[str, jax.Array]


class Update:
    """`memory` is the optimizer state of this stage's tensors. Gradients come in parts, by the stages that read a tensor."""

    def __init__(self, optimizer: Optimizer, tensors: Tensors, rates: Array | None) -> None:
        # Clipped here, because no stage knows the norm of all gradients.
        self._rule = optimizers.update_rule(replace(optimizer, clip=0.0), list(tensors), rates)
        self._clip = optimizer.clip
        self._init = jax.jit(self._rule.init)
        self.memory = self._init(tensors) if tensors else None
        self._update = jax.jit(self._run, donate_argnums=(0, 1))
        self.square = jax.jit(_square)

    def restart(self, tensors: Tensors) -> None:
        """Begin again with these tensors."""
        self._rule.forget()
        self.memory = self._init(tensors) if tensors else None

    def run(self, tensors: Tensors, gradients: list[Tensors], squares: list[jax.Array] | None) -> Tensors:
        """Return the updated tensors; `squares`: of the gradients of all stages, None: nothing is clipped."""
        if not tensors:
            return tensors
        tensors, self.memory = self._update(tensors, self.memory, gradients, squares, self._rule.scalars())
        return tensors

    def _run(self, tensors: Any, memory: Any, parts: Any, squares: Any, scalars: Any) -> tuple[Any, Any]:
        gradients = _sum(parts)
        if squares is not None:
            norm = jnp.sqrt(sum(squares))
            gradients = {name: jnp.where(norm < self._clip, g, g / norm * self._clip) for name, g in gradients.items()}
        return self._rule.update(tensors, gradients, memory, scalars)


def _sum(parts: list[Tensors]) -> Tensors:
    return {name: sum(part[name] for part in parts if name in part) for name in parts[0]}


def _square(parts: list[Tensors]) -> jax.Array:
    return sum((jnp.vdot(g, g) for g in _sum(parts).values()), jnp.zeros(()))
