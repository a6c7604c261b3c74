"""Canonical weights into Gluon parameters, and running statistics out of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import mxnet as mx
import numpy as np

from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mxnet.gluon import HybridBlock, Parameter

    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.network import Network


def load(named: dict[str, Parameter], network: Network, weights: Mapping[str, Array]) -> None:
    """Copy canonical weights into the parameters; one missing on either side, or of another shape, is refused.

    MXNet's layouts are the canonical ones: convolution OIHW, dense (out, in), LSTM gates i, f, g, o.
    """
    expected = {parameter.name: parameter.shape for parameter in network.parameters}
    for name in sorted(expected.keys() ^ named.keys()):
        raise Refusal("implementation", f"Tensor {name} is {'missing from' if name in expected else 'only in'} the block.")
    for name, shape in expected.items():
        if tuple(named[name].shape) != shape:
            raise Refusal("implementation", f"Tensor {name} has shape {tuple(named[name].shape)}, expected {shape}.")
        named[name].set_data(mx.nd.array(weights[name], dtype=named[name].dtype))


@dataclass(frozen=True)
class BatchNorm:
    """One batch norm as the graph has it: weight of the old statistic, and values per channel that it averages over."""

    momentum: float
    count: int


def batch_norms(network: HybridBlock, inputs: dict[str, tuple[int, ...]]) -> dict[str, BatchNorm]:
    """Return {block prefix: what it does} of every batch norm, read from the symbolic graph at the given input shapes."""
    graph = network(*(mx.sym.var(name) for name in inputs)).get_internals()
    attributes = graph.attr_dict()
    names = [name for name in graph.list_outputs() if "momentum" in attributes.get(name.removesuffix("_output"), {})]
    found = {}
    for name in names:
        _, (shape,), _ = graph[name].infer_shape_partial(**inputs)
        node = name.removesuffix("_output")
        count = int(np.prod(shape)) // shape[1]
        found[node.rsplit(".", 1)[0]] = BatchNorm(float(attributes[node]["momentum"]), count)
    return found
