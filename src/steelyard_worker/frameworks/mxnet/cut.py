"""A symbol cut into parts, one for each device: the groups of MXNet's model parallelism (`ctx_group`, `group2ctx`)."""

from __future__ import annotations

import json
from typing import Any

import mxnet as mx

GROUP = "__ctx_group__"
VARIABLE = "null"


def cut(
    symbol: mx.sym.Symbol, columns: frozenset[str], trained: frozenset[str], parts: int
) -> tuple[mx.sym.Symbol, dict[str, int]]:
    """Return the symbol with a group at every node, and the part of each variable. `columns`: the names of inputs and targets.

    Each part has the same number of layers with weights, to rounding, in the order of the computation. Without micro-batches one
    part computes at a time, so another cut would not be faster. A variable is where it is last used: there MXNet adds gradients
    of a weight from all its uses, and it refuses a weight that is elsewhere.
    """
    graph = json.loads(symbol.tojson())
    nodes: list[dict[str, Any]] = graph["nodes"]
    sources = [[source for source, *_ in node["inputs"]] for node in nodes]
    fed = _reached(nodes, sources, columns)
    # A layer combines what comes from the inputs with weights, or with what was made of weights alone.
    held = _reached(nodes, sources, trained) - fed
    layers = [number in fed and not held.isdisjoint(sources[number]) for number in range(len(nodes))]
    part_of, seen = dict[int, int](), 0
    for number in sorted(fed):
        # What has no weights stays with the layer before it.
        seen += layers[number]
        part_of[number] = max(0, seen - 1) * parts // max(1, sum(layers))
    for number in reversed(range(len(nodes))):
        for source in sources[number]:
            if source not in fed or nodes[source]["op"] == VARIABLE:
                part_of[source] = max(part_of[number], part_of.get(source, 0))
    for number, part in part_of.items():
        nodes[number].setdefault("attrs", {})[GROUP] = group_of(part)
    variables = {nodes[number]["name"]: part for number, part in part_of.items() if nodes[number]["op"] == VARIABLE}
    return mx.sym.load_json(json.dumps(graph)), variables


def _reached(nodes: list[dict[str, Any]], sources: list[list[int]], names: frozenset[str]) -> set[int]:
    """Return the variables with these names, and every node that depends on one; nodes come in the order of the computation."""
    found: set[int] = set()
    for number, node in enumerate(nodes):
        own = node["op"] == VARIABLE and node["name"] in names
        if own or not found.isdisjoint(sources[number]):
            found.add(number)
    return found


def group_of(part: int) -> str:
    """Return the name of a part in MXNet's symbols."""
    return f"part{part}"
