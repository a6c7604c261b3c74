"""The knob `recomputation`: blocks of a network that keep only their inputs, and are computed again in the backward pass."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from steelyard_worker.case import Settings

BLOCKS = "blocks"


def compute_again(network: nn.Module, names: Iterable[str], settings: Settings) -> None:
    """Make blocks of a network keep their inputs only. Refusal: the network has no module of such a name."""
    for name in names:
        try:
            block = network.get_submodule(name)
        except AttributeError:
            message = f"The PyTorch implementation has no module '{name}', which network.py lists as a block."
            raise Refusal("implementation", message) from None
        # Compiled, what the second pass assigns is left out, and PyTorch does not compile such contexts.
        contexts = {} if settings.mode == "compiled" else {"context_fn": partial(_contexts, _norms(block))}
        block.forward = partial(
            checkpoint,
            block.forward,
            use_reentrant=False,
            preserve_rng_state=settings.knobs["dropout"] == "on",
            **contexts,
        )


def _norms(block: nn.Module) -> list[Any]:
    """Return the batch norms of a block that have running statistics."""
    return [each for each in block.modules() if getattr(each, "track_running_stats", False)]


def _contexts(norms: list[Any]) -> tuple[Any, Any]:
    """Return the contexts of the first and of the second pass: running statistics move in the first one only (P-56)."""
    return nullcontext(), _statistics_kept(norms)


@contextmanager
def _statistics_kept(norms: list[Any]) -> Iterator[None]:
    """Give new statistics the weight 0. Without any statistics, the second pass would not store the same tensors as the first."""
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 0.0
    try:
        yield
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum


class _Counted(nn.Module):
    """Counts its forward passes."""

    passes = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.passes += 1
        return x.sin()


def observed(settings: Settings) -> str:
    """Return the value of the knob that a small network shows: in how many forward passes of its block a step results."""
    network = nn.Module()
    network.block = block = _Counted()
    if settings.knobs["recomputation"] == BLOCKS:
        compute_again(network, ["block"], settings)
    network.block(torch.ones(1, requires_grad=True)).backward()
    return BLOCKS if block.passes == 2 else "none"
