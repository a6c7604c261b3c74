"""Clipping by the global norm of gradients that several ranks have parts of."""

from __future__ import annotations

import torch
from torch import distributed
from torch.distributed.tensor import DTensor

from steelyard_worker.frameworks.pytorch.optimizers import Clipped

EPSILON = 1e-6


class ClippedTogether(Clipped):
    """Clips as `Clipped` does; every rank adds the squares of its own part of the gradients, and divides its own part."""

    def step(self) -> None:
        """Clip, then update."""
        gradients = [_own(tensor.grad) for tensor in self._tensors]
        rows = [
            torch.linalg.vector_norm(g.flatten(1) if g.ndim > 1 else g[None], dim=1) for g in gradients if g.numel()
        ]
        total = torch.cat(rows).square().sum() if rows else torch.zeros((), device=self._tensors[0].device)
        distributed.all_reduce(total)
        torch._foreach_mul_(gradients, (self._limit / (total.sqrt() + EPSILON)).clamp(max=1.0))
        self._rule.step()


def _own(gradient: torch.Tensor) -> torch.Tensor:
    return gradient.to_local() if isinstance(gradient, DTensor) else gradient
