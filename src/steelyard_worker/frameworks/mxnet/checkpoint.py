"""Read a file that `save_parameters` of a Gluon block, or `save` of its parameters, has written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mxnet as mx
import numpy as np

from steelyard_worker import checkpoints
from steelyard_worker.frameworks import named_tensors

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import ModuleType

    from mxnet.gluon import HybridBlock, Parameter
    from mxnet.nd import NDArray

    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.network import Network


def read(implementation: ModuleType, sizes: dict[str, Any], network: Network, path: Path) -> dict[str, Array]:
    """Load a file into the block of an implementation; returns its tensors, canonical. Raises Refusal."""
    held = mx.nd.load(str(path))
    if not isinstance(held, dict):
        raise checkpoints.refusal(path, "holds arrays without names; save them with save_parameters(FILE)")
    block: HybridBlock = implementation.build(sizes)
    own = _named_as_in(held, block)
    checkpoints.check(path, {name: tuple(each.shape) for name, each in own.items()}, _shapes(held), "MXNet")
    for name, parameter in own.items():
        array = held[name].asnumpy()
        parameter._load_init(mx.nd.array(array, dtype=parameter.dtype), mx.cpu())  # noqa: SLF001 - load_parameters without a file
        checkpoints.check_value(path, name, parameter.data().asnumpy(), array)
    named: dict[str, Parameter] = named_tensors.distinct(network, implementation.variables(block))
    known = {id(parameter) for parameter in named.values()}
    for name, parameter in own.items():
        if id(parameter) not in known:  # the second bias of an LSTM, which the implementation keeps at zero
            checkpoints.check_unnamed(path, name, np.zeros(parameter.shape, np.float32), parameter.data().asnumpy())
    return {name: parameter.data().asnumpy() for name, parameter in named.items()}


def _named_as_in(held: Mapping[str, NDArray], block: HybridBlock) -> dict[str, Parameter]:
    """Return the block's parameters by attributes, as `save_parameters` names them, or by their own names, as `save` does."""
    by_attribute: dict[str, Parameter] = block._collect_params_with_prefix()  # noqa: SLF001 - the names of save_parameters
    by_name: dict[str, Parameter] = dict(block.collect_params().items())
    return max((by_attribute, by_name), key=lambda each: len(each.keys() & held.keys()))


def _shapes(held: Mapping[str, NDArray]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(array.shape) for name, array in held.items()}
