"""The loss, loading of canonical weights, and the batch norms that a graph contains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mxnet as mx
import numpy as np
from mxnet.gluon import HybridBlock, nn

from steelyard_worker import dropout as knob
from steelyard_worker.frameworks import named_tensors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mxnet.gluon import Parameter

    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.network import Network


class CrossEntropy(HybridBlock):
    """Mean softmax cross-entropy from logits (N, classes) and integer labels (N,)."""

    def hybrid_forward(self, F: Any, logits: Any, label: Any) -> Any:
        # With an explicit temperature MXNet does not use oneDNN's log_softmax, which takes the same time but is wrong by 4e-6
        # (P-53). That error is visible in a loss of two classes and in its gradient.
        scores = F.log_softmax(logits, axis=-1, temperature=1.0)
        return F.mean(-F.pick(scores, label, axis=-1))


def dropout(rate: float) -> HybridBlock:
    """Return inverted dropout where the knob `dropout` is on: units become zero with this probability, the others grow."""
    return nn.Dropout(rate) if knob.is_on() else Unchanged()


class Unchanged(HybridBlock):
    """No operation; `nn.Identity` of MXNet copies its input."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return x


def choose_gradients(network: HybridBlock, embedding: str) -> None:
    """Give the embeddings of a network dense or row-sparse gradients, as the knob `embedding` says."""
    if isinstance(network, nn.Embedding) and embedding != "dense":
        # What `sparse_grad=True` of its constructor does.
        network._kwargs["sparse_grad"] = True  # noqa: SLF001
        network.weight._grad_stype = "row_sparse"  # noqa: SLF001
    for child in network._children.values():  # noqa: SLF001
        choose_gradients(child, embedding)


def load(
    named: dict[str, Parameter], network: Network, weights: Mapping[str, Array], place: Callable[[Parameter], Any]
) -> None:
    """Initialise the parameters with canonical weights; MXNet's layouts are the canonical ones.

    `place` returns the device of a parameter, or all devices that get a copy.

    Each weight is copied once, directly from its memory-mapped file: initialising with zeros first takes twice the time.
    """
    named_tensors.check(network, {name: tuple(parameter.shape) for name, parameter in named.items()})
    for name, parameter in named.items():
        array = np.asarray(weights[name], parameter.dtype, order="C")
        parameter._load_init(mx.nd.from_numpy(array), place(parameter))  # noqa: SLF001 - load_parameters without a file


@dataclass(frozen=True)
class BatchNorm:
    """One batch norm in the graph: the weight of the old statistic, and the number of values per channel that it averages."""

    momentum: float
    count: int


def batch_norms(network: HybridBlock, inputs: dict[str, tuple[int, ...]]) -> dict[str, BatchNorm]:
    """Return {block prefix: BatchNorm}, read from the symbolic graph at the given input shapes.

    Batch norms that always normalise by their running statistics never change them and are left out.
    """
    outputs = network(*(mx.sym.var(name) for name in inputs))
    graph = (mx.sym.Group(list(outputs)) if isinstance(outputs, (tuple, list)) else outputs).get_internals()
    attributes = graph.attr_dict()
    norms = {
        node for node, found in attributes.items() if "momentum" in found and found.get("use_global_stats") != "True"
    }
    names = [name for name in graph.list_outputs() if name.removesuffix("_output") in norms]
    found = {}
    for name in names:
        own = {each: shape for each, shape in inputs.items() if each in graph[name].list_inputs()}
        _, (shape,), _ = graph[name].infer_shape_partial(**own)
        node = name.removesuffix("_output")
        count = int(np.prod(shape)) // shape[1]
        found[node.rsplit(".", 1)[0]] = BatchNorm(float(attributes[node]["momentum"]), count)
    return found
