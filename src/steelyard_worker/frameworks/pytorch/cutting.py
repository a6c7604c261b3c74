"""Cut a network into parts that follow each other, where its forward pass is a fixed series of modules and operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import fx, nn

from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard_worker.frameworks.pytorch.predictor import Tensors


@dataclass(frozen=True)
class Part:
    """One part. It gets the tensors of the part before it in order, and inputs of the network by name.

    What it passes on is contiguous, as messages must be: images in channels-last format with their channels as the last axis. The
    last part returns the network's outputs, in the order of `outputs`.
    """

    module: fx.GraphModule
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class Tracer(fx.Tracer):
    """Traces the forward pass of a network: every module is one step of it, except that a sequence is a series of steps."""

    def is_leaf_module(self, module: nn.Module, name: str) -> bool:
        """Return whether a module is one step."""
        del name
        return not isinstance(module, nn.Sequential)


def cut(network: nn.Module, example: Tensors, names: Sequence[str], count: int, channels_last: bool) -> list[Part]:
    """Return the network as `count` parts with about equal numbers of multiplications; they share its modules.

    `example`: a batch on which the multiplications are counted. `names`: its arrays that the network takes, in order.
    Refusal: the forward pass is no fixed series, or has too few places to cut it.
    """
    try:
        graph = Tracer().trace(network)
    except (fx.proxy.TraceError, TypeError, RuntimeError, AttributeError) as error:
        message = (
            f"This network cannot be cut into parts, because its forward pass is no fixed series of modules: {error}"
        )
        raise Refusal("unsupported", message) from None
    values = _Values(fx.GraphModule(network, graph))
    with torch.no_grad():
        values.run(*[example[name] for name in names])
    nodes = [node for node in graph.nodes if node.op not in ("placeholder", "output")]
    (output,) = (node.args[0] for node in graph.nodes if node.op == "output")
    places = _chosen(network, nodes, values, count)
    bounds = [0, *places, len(nodes)]
    images = values.images if channels_last else set()
    return [_part(network, graph, nodes, bounds[number : number + 2], images, output) for number in range(count)]


class _Values(fx.Interpreter):
    """Runs the forward pass, and keeps of each step: the size of its tensor, and at how many places that has features."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module)
        self.places: dict[str, int] = {}
        self.sizes: dict[str, int] = {}
        self.images: set[str] = set()

    def run_node(self, node: fx.Node) -> Any:
        """Run one step."""
        found = super().run_node(node)
        first = found[0] if isinstance(found, tuple) and found else found
        if isinstance(first, torch.Tensor) and first.dim():
            self.places[node.name] = first.numel() // first.shape[1 if first.dim() == 4 else -1]
        if isinstance(found, torch.Tensor):
            self.sizes[node.name] = found.numel()
            self.images |= {node.name} if found.dim() == 4 else set()
        return found


def _chosen(network: nn.Module, nodes: list[fx.Node], values: _Values, count: int) -> list[int]:
    """Return before which steps the network is cut: where the multiplications before are nearest to equal parts.

    A cut is before a module with matrices, because a received tensor must not be changed in place. Only tensors may cross it, and
    no weight may be needed on both sides. Among equal cuts, that with the smallest tensors.
    """
    done, before = [], 0
    for node in nodes:
        done.append(before)
        before += _multiplications(network, node, values)
    able = [place for place in range(1, len(nodes)) if _is_able(network, nodes, place, values)]
    found: list[int] = []
    for number in range(1, count):
        left = [place for place in able if not found or place > found[-1]]
        left = left[: max(0, len(left) - (count - 1 - number))]
        if not left:
            raise Refusal(
                "unsupported", f"This network cannot be cut into {count} parts; it has {len(able)} places for cuts."
            )
        wanted = before * number / count
        crossing = {place: sum(values.sizes[node.name] for node in _crossing(nodes, place)) for place in left}
        found.append(
            min(left, key=lambda place: (round(abs(done[place] - wanted) / max(before, 1), 2), crossing[place]))
        )
    return found


def _multiplications(network: nn.Module, node: fx.Node, values: _Values) -> int:
    """Return about how often a step multiplies: each weight of a module once at every place of its output."""
    if node.op != "call_module":
        return 0
    module = network.get_submodule(str(node.target))
    if isinstance(module, nn.Embedding):
        return 0
    return sum(each.numel() for each in module.parameters()) * values.places.get(node.name, 0)


def _is_able(network: nn.Module, nodes: list[fx.Node], place: int, values: _Values) -> bool:
    node = nodes[place]
    if node.op != "call_module":
        return False
    if all(each.dim() < 2 for each in network.get_submodule(str(node.target)).parameters()):  # none, or a norm
        return False
    one, other = (_weights(network, some) for some in (nodes[:place], nodes[place:]))
    return bool(one) and not one & other and all(each.name in values.sizes for each in _crossing(nodes, place))


def _weights(network: nn.Module, nodes: list[fx.Node]) -> set[int]:
    found = set()
    for node in nodes:
        if node.op == "call_module":
            found |= {id(each) for each in network.get_submodule(str(node.target)).parameters()}
        elif node.op == "get_attr":
            owner, _, name = str(node.target).rpartition(".")
            found.add(id(getattr(network.get_submodule(owner), name)))
    return found


def _crossing(nodes: list[fx.Node], place: int) -> list[fx.Node]:
    """Return the steps before a place whose values are used after it."""
    early = set(nodes[:place])
    return [node for node in nodes[:place] if any(user not in early for user in node.users)]


def _part(
    network: nn.Module, graph: fx.Graph, nodes: list[fx.Node], bounds: Sequence[int], images: set[str], output: Any
) -> Part:
    """Return a part as a module that has the modules of the network itself."""
    start, end = bounds
    own, last = nodes[start:end], end == len(nodes)
    made, of_new = fx.Graph(), dict[fx.Node, fx.Node]()
    for node in _crossing(nodes, start):
        of_new[node] = made.placeholder(node.name)
    used = {each for node in own for each in node.all_input_nodes}
    inputs = [node for node in graph.nodes if node.op == "placeholder" and node in used]
    for node in inputs:
        of_new[node] = made.placeholder(node.name)
    for node in _crossing(nodes, start):
        if node.name in images:
            of_new[node] = made.call_method("permute", (of_new[node], 0, 3, 1, 2))
    for node in own:
        of_new[node] = made.node_copy(node, of_new.__getitem__)
    if last:
        found = [of_new[node] for node in output.values()]
    else:
        found = [_sent(made, of_new[node], node.name in images) for node in _crossing(nodes, end)]
    made.output(found[0] if len(found) == 1 else tuple(found))
    names = tuple(output) if last else ()
    return Part(fx.GraphModule(network, made), tuple(str(node.target) for node in inputs), names)


def _sent(made: fx.Graph, value: fx.Node, is_image: bool) -> fx.Node:
    turned = made.call_method("permute", (value, 0, 2, 3, 1)) if is_image else value
    return made.call_method("contiguous", (turned,))
