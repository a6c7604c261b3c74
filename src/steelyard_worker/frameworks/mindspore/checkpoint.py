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
BY_PATH = "save_checkpoint([{'name': name, 'data': p} for name, p in network.parameters_and_names()], FILE)"


def read(implementation: ModuleType, sizes: dict[str, Any], network: Network, path: Path) -> dict[str, Array]:
    """Load a file into the cell of an implementation; returns its tensors, canonical. Raises Refusal."""
    cell: nn.Cell = implementation.build(sizes)
    named = named_tensors.distinct(network, implementation.variables(cell))
    held = mindspore.load_checkpoint(str(path))
    own = _named_as_in(path, held, cell, named)
    held = _of_network(held, own)
    checkpoints.check(path, _shapes(own), _shapes(held), "MindSpore")
    known = {id(parameter) for parameter in named.values()}
    for name, parameter in own.items():
        wanted = to_numpy(held[name])
        if id(parameter) not in known:
            checkpoints.check_unnamed(path, name, parameter.init_data().asnumpy(), wanted)
        parameter.set_data(mindspore.Tensor(wanted.astype(np.float32)))
        checkpoints.check_value(path, name, to_numpy(parameter), wanted)
    return {name: to_numpy(parameter) for name, parameter in named.items()}


def _named_as_in(
    path: Path, held: Mapping[str, Parameter], cell: nn.Cell, named: Mapping[str, Parameter]
) -> dict[str, Parameter]:
    """Return the cell's parameters by the names that a file has: those of MindSpore, of the cells, or canonical ones.

    `insert_child_to_cell` leaves the names of parameters as they are, so several may share one. A file has one tensor for them.
    """
    parameters = list(cell.get_parameters())
    by_name = {parameter.name: parameter for parameter in parameters}
    by_path = dict(cell.parameters_and_names())
    found = max((by_name, by_path, dict(named)), key=lambda each: len(each.keys() & held.keys()))
    if found is by_name and len(by_name) < len(parameters):
        names = [parameter.name for parameter in parameters]
        shared = next(name for name in names if names.count(name) > 1)
        raise checkpoints.refusal(
            path,
            f"has one tensor '{shared}' for {names.count(shared)} of the implementation, which MindSpore names alike; save them "
            f"by their places: {BY_PATH}",
        )
    return found


def _of_network(held: Mapping[str, Parameter], own: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """Return what is held without the state of an optimizer: its counters, and tensors such as `moments.first.weight`."""
    return {
        name: parameter
        for name, parameter in held.items()
        if name in own or (name not in COUNTERS and name.partition(".")[2] not in own)
    }


def _shapes(found: Mapping[str, Parameter]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(parameter.shape) for name, parameter in found.items()}
