"""Canonical names for `torch.nn` modules."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from torch import nn

from steelyard_worker import dropout as knob

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

BATCH_NORM = {"weight": "gamma", "bias": "beta", "running_mean": "running_mean", "running_var": "running_var"}
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.LayerNorm)
# Modules that initialise their weights on construction, by `Module.reset_parameters`.
INITIALISING = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Embedding, nn.RNNBase)


@contextmanager
def uninitialised() -> Iterator[None]:
    """Construct modules without initial values: all weights are loaded, and random initialisation takes seconds."""
    usual = [(kind, kind.reset_parameters) for kind in INITIALISING]
    for kind in INITIALISING:
        kind.reset_parameters = lambda _: None
    try:
        yield
    finally:
        for kind, method in usual:
            kind.reset_parameters = method


def dropout(rate: float) -> nn.Module:
    """Return inverted dropout where the knob `dropout` is on: units become zero with this probability, the others grow."""
    return nn.Dropout(rate) if knob.is_on() else nn.Identity()


def choose_gradients(network: nn.Module, embedding: str) -> None:
    """Give the embeddings of a network dense or sparse gradients, as the knob `embedding` says."""
    for module in network.modules():
        if isinstance(module, nn.Embedding):
            module.sparse = embedding != "dense"


def sparse_tensors(network: nn.Module) -> set[int]:
    """Return the identities of the tensors that get sparse gradients."""
    return {id(module.weight) for module in network.modules() if isinstance(module, nn.Embedding) and module.sparse}


def named_by_module(network: nn.Module) -> dict[str, Tensor]:
    """Map canonical names to tensors of modules with canonical dotted names; norms are renamed."""
    found: dict[str, Tensor] = {}
    for path, module in network.named_modules():
        own = dict(module.named_parameters(recurse=False)) | dict(module.named_buffers(recurse=False))
        if isinstance(module, NORMS):
            own = {BATCH_NORM[name]: tensor for name, tensor in own.items() if name in BATCH_NORM}
        found |= {f"{path}.{name}": tensor for name, tensor in own.items()}
    return found
