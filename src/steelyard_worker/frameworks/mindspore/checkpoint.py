"""Read a file that `mindspore.save_checkpoint` has written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mindspore
import numpy as np

from steelyard_worker import checkpoints
from steelyard_worker.frameworks import named_tensors
from steelyard_worker.frameworks.mindspore.predictor import to_numpy

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import ModuleType

    from mindspore import Parameter, nn

    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.network import Network

# Numbers that `ModelCheckpoint` saves with the weights.
COUNTERS = ("learning_rate", "momentum", "global_step", "epoch_num", "step_num", "beta1_power", "beta2_power")


def read(implementation: ModuleType, sizes: dict[str, Any], network: Network, path: Path) -> dict[str, Array]:
    """Load a file into the cell of an implementation; returns its tensors, canonical. Raises Refusal."""
    cell: nn.Cell = implementation.build(sizes)
    own: dict[str, Parameter] = {parameter.name: parameter for parameter in cell.get_parameters()}
    held = _of_network(mindspore.load_checkpoint(str(path)), own)
    checkpoints.check(path, _shapes(own), _shapes(held), "MindSpore")
    named = named_tensors.distinct(network, implementation.variables(cell))
    known = {id(parameter) for parameter in named.values()}
    unnamed = {name: parameter for name, parameter in own.items() if id(parameter) not in known}
    usual = {name: np.array(parameter.init_data().asnumpy()) for name, parameter in unnamed.items()}
    wanted = {name: to_numpy(parameter) for name, parameter in held.items()}
    for name, parameter in own.items():
        parameter.set_data(mindspore.Tensor(wanted[name].astype(np.float32)))
        checkpoints.check_value(path, name, to_numpy(parameter), wanted[name])
    for name, array in usual.items():
        checkpoints.check_unnamed(path, name, array, wanted[name])
    return {name: to_numpy(parameter) for name, parameter in named.items()}


def _of_network(held: Mapping[str, Parameter], own: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """Return what is held without the state of an optimizer: its counters, and tensors such as `moments.first.weight`."""
    return {
        name: parameter
        for name, parameter in held.items()
        if name in own or (name not in COUNTERS and name.partition(".")[2] not in own)
    }


def _shapes(found: Mapping[str, Parameter]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(parameter.shape) for name, parameter in found.items()}
