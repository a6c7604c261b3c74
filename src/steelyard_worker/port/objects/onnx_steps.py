"""The steps of an ONNX graph: the nodes of one module of its exporter together, every other node by itself."""

from __future__ import annotations

import ast
import graphlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

SCOPES = "pkg.torch.onnx.name_scopes"
"""Where PyTorch's newer exporter writes from which modules a node comes."""
PASSED_ON = ("Identity", "Transpose", "Cast", "Reshape", "Squeeze", "Unsqueeze")
"""A weight is still that weight after these."""
WHOLE = ("MatMul", "Gemm", "Conv", "ConvTranspose", "Gather", "LSTM", "GRU", "RNN")
"""Operations that are a whole layer, together with an Add after them. Normalisations are, too."""


@dataclass
class Step:
    """Nodes that are run together. `inputs`, `outputs`: names of values; `weights`: initialisers, in the order of their use.

    `is_whole`: whether the nodes are all of the layer that has the weights, so that it receives and returns the same elsewhere.
    """

    name: str
    nodes: list[Any]
    is_whole: bool = False
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    weights: list[str] = field(default_factory=list)


def steps(
    nodes: Sequence[Any], weights: Mapping[str, Any], constants: Iterable[str], results: Iterable[str]
) -> list[Step]:
    """Return the steps of a graph in an order in which they can run. `results`: the names of its outputs."""
    nodes = [node for node in nodes if not _passes_weight_on(node, weights)]
    groups = _groups(nodes, weights)
    while True:
        found = [Step(name, members, is_whole) for name, members, is_whole in groups]
        _connect(found, {*weights}, {*constants}, {*results})
        try:
            return _ordered(found)
        except graphlib.CycleError as error:
            # A module whose nodes lie before and behind another module cannot run at once.
            cyclic = set(error.args[1])
            groups = [
                part
                for number, group in enumerate(groups)
                for part in ([(_name(node), [node], False) for node in group[1]] if number in cyclic else [group])
            ]


def used(node: Any) -> Iterator[str]:
    """Yield the names of the values that a node needs, those of its subgraphs among them."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
            inner = {each.name for each in (*graph.input, *graph.initializer)}
            for child in graph.node:
                yield from (name for name in used(child) if name not in inner)
                inner |= {*child.output}


def scope(node: Any) -> str:
    """Return the path of the module that a node was exported from; empty if the file does not say so."""
    for entry in node.metadata_props:
        if entry.key == SCOPES:
            try:
                names = ast.literal_eval(entry.value)
            except (ValueError, SyntaxError):
                break
            return str(names[-2]) if len(names) > 1 else ""
    return node.name.rpartition("/")[0].strip("/").replace("/", ".")


def _passes_weight_on(node: Any, weights: Mapping[str, Any]) -> bool:
    return node.op_type in PASSED_ON and all(name in weights for name in node.output)


def _name(node: Any) -> str:
    return str(node.name or next(filter(None, node.output), node.op_type)).strip("/").replace("/", ".")


def _groups(nodes: Sequence[Any], weights: Mapping[str, Any]) -> list[tuple[str, list[Any], bool]]:
    """Return names, nodes, and whether they are a whole layer: the modules that have weights, then what is left."""
    owners = {scope(node) for node in nodes if any(name in weights for name in node.input)} - {""}
    readers = Counter(name for node in nodes for name in used(node))
    found: dict[str, list[Any]] = {}
    alone: list[tuple[str, list[Any], bool]] = []
    last: list[Any] = []
    for node in nodes:
        if (path := scope(node)) in owners:
            found.setdefault(path, []).append(node)
        elif last and _is_its_bias(node, last[-1], weights, readers):
            last.append(node)
        else:
            last = [node]
            is_whole = node.op_type in WHOLE or node.op_type.endswith("Normalization")
            alone.append((_name(node), last, is_whole))
    return [(path, members, True) for path, members in found.items()] + alone


def _is_its_bias(node: Any, before: Any, weights: Mapping[str, Any], readers: Mapping[str, int]) -> bool:
    """Return whether a node adds a bias to the product just before it, which nothing else reads."""
    return (
        node.op_type == "Add"
        and before.op_type in ("MatMul", "Conv")
        and before.output[0] in node.input
        and readers[before.output[0]] == 1
        and any(name in weights for name in node.input)
    )


def _connect(found: list[Step], weights: set[str], constants: set[str], results: set[str]) -> None:
    """Fill in what every step receives and returns."""
    own = [{name for node in step.nodes for name in node.output} for step in found]
    needed = [list(dict.fromkeys(name for node in step.nodes for name in used(node))) for step in found]
    read = Counter(name for step, names in zip(own, needed, strict=True) for name in names if name not in step)
    for step, made, names in zip(found, own, needed, strict=True):
        step.inputs = [name for name in names if name not in made | weights | constants]
        step.weights = [name for name in names if name in weights]
        returned = (name for node in step.nodes for name in node.output if name)
        step.outputs = [name for name in returned if read[name] or name in results]


def _ordered(found: list[Step]) -> list[Step]:
    """Return the steps in the order in which they can run; those that nothing reads are left out. CycleError: they cannot."""
    makers = {name: number for number, step in enumerate(found) for name in step.outputs}
    needs = {
        number: sorted({makers[name] for name in step.inputs if name in makers}) for number, step in enumerate(found)
    }
    return [found[number] for number in graphlib.TopologicalSorter(needs).static_order() if found[number].outputs]
