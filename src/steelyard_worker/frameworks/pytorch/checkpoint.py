"""Read a state dict that `torch.save` has written: no pickled code runs, names are strict."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import torch

from steelyard_worker import checkpoints
from steelyard_worker.frameworks import named_tensors
from steelyard_worker.frameworks.pytorch.predictor import COUNTER, to_numpy

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import ModuleType

    from torch import Tensor, nn

    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.network import Network

# Where training scripts keep the state dict inside of what they save.
NESTED = ("state_dict", "model_state_dict", "model")
# What wrappers put before every name: DistributedDataParallel and torch.compile.
WRAPPERS = ("module.", "_orig_mod.")


def read(implementation: ModuleType, sizes: dict[str, Any], network: Network, path: Path) -> dict[str, Array]:
    """Load a file into the module of an implementation; returns its tensors, canonical. Raises Refusal."""
    state = _state(path)
    module: nn.Module = implementation.build(sizes)
    own = _without_counters(module.state_dict())
    checkpoints.check(path, _shapes(own), _shapes(state), "PyTorch")
    named = named_tensors.distinct(network, implementation.variables(module))
    unnamed = _unnamed(module, named)
    usual = {name: tensor.detach().clone() for name, tensor in unnamed.items()}
    module.load_state_dict(state, strict=False)  # counters of batches may be missing; everything else was compared
    for name, tensor in own.items():  # the same memory as the parameters
        checkpoints.check_value(path, name, to_numpy(tensor), to_numpy(state[name].double()))
    for name, tensor in unnamed.items():
        checkpoints.check_unnamed(path, name, to_numpy(usual[name]), to_numpy(tensor))
    return {name: to_numpy(tensor) for name, tensor in named.items() if not name.endswith(COUNTER)}


def _state(path: Path) -> dict[str, Tensor]:
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if "global" not in str(error).lower():
            raise
        raise checkpoints.refusal(
            path,
            "has pickled objects, such as a whole module, which could run code and are not read; "
            "save the weights alone with torch.save(network.state_dict(), FILE)",
        ) from error
    inner = next(
        (loaded[key] for key in NESTED if isinstance(loaded, dict) and isinstance(loaded.get(key), dict)), loaded
    )
    if not isinstance(inner, dict) or not inner or not all(isinstance(each, torch.Tensor) for each in inner.values()):
        raise checkpoints.refusal(path, f"holds no state dict, neither by itself nor under {' or '.join(NESTED)}")
    return _without_counters(_unwrapped(inner))


def _unwrapped(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    found = dict(state)
    while prefix := next((each for each in WRAPPERS if all(name.startswith(each) for name in found)), ""):
        found = {name.removeprefix(prefix): tensor for name, tensor in found.items()}
    return found


def _without_counters(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor for name, tensor in state.items() if not name.endswith(COUNTER)}


def _shapes(state: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in state.items()}


def _unnamed(module: nn.Module, named: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the module's own tensors that no canonical one is, or is a part of."""
    known = {tensor.untyped_storage().data_ptr() for tensor in named.values()}
    own = _without_counters(module.state_dict())
    return {name: tensor for name, tensor in own.items() if tensor.untyped_storage().data_ptr() not in known}
