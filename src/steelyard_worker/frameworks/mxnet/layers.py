"""The loss, canonical weights into Gluon parameters, and what the graph says of its batch norms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mxnet as mx
import numpy as np
from mxnet.gluon import HybridBlock

from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mxnet.gluon import Parameter

    from steelyard_worker.frameworks.base import Array
    from steelyard_worker.network import Network


class CrossEntropy(HybridBlock):
    """Mean softmax cross-entropy from logits (N, classes) and integer labels (N,)."""

    def hybrid_forward(self, F: Any, logits: Any, label: Any) -> Any:
        # Naming a temperature, even that of 1, keeps oneDNN's log_softmax out, which is wrong by 4e-6 at the price of
        # the same time (P-53); a loss of two classes and its gradient show that.
        scores = F.log_softmax(logits, axis=-1, temperature=1.0)
        return F.mean(-F.pick(scores, label, axis=-1))


def load(named: dict[str, Parameter], network: Network, weights: Mapping[str, Array], context: Any) -> None:
    """Initialise the parameters with canonical weights; one missing on either side, or of another shape, is refused.

    MXNet's layouts are the canonical ones: convolution OIHW, dense (out, in), LSTM gates i, f, g, o. The weights are copied once,
    from where they are mapped: initialising with zeros and writing over them took twice the time.
    """
    expected = {parameter.name: parameter.shape for parameter in network.parameters}
    for name in sorted(expected.keys() ^ named.keys()):
        raise Refusal(
            "implementation", f"Tensor {name} is {'missing from' if name in expected else 'only in'} the block."
        )
    for name, shape in expected.items():
        if tuple(named[name].shape) != shape:
            raise Refusal("implementation", f"Tensor {name} has shape {tuple(named[name].shape)}, expected {shape}.")
        array = np.asarray(weights[name], named[name].dtype, order="C")
        named[name]._load_init(mx.nd.from_numpy(array), context)  # noqa: SLF001 - what load_parameters calls, without a file


@dataclass(frozen=True)
class BatchNorm:
    """One batch norm as the graph has it: weight of the old statistic, and values per channel that it averages over."""

    momentum: float
    count: int


def batch_norms(network: HybridBlock, inputs: dict[str, tuple[int, ...]]) -> dict[str, BatchNorm]:
    """Return {block prefix: what it does} of every batch norm, read from the symbolic graph at the given input shapes.

    Those that always normalise by their running statistics move none and are left out.
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
