"""What a training step's graph consists of, as traced and after Grappler, by what the runtime itself reports."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tensorflow.python.eager import context

from steelyard_worker.frameworks.tensorflow import passes
from steelyard_worker.graphs import Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

UNIT = "nodes"


def stages(step: Callable[[Any], Any], wrap: Callable[..., Any], batch: Any, chosen: str) -> Iterator[Stage]:
    """Yield the graph as traced, then as it is run, and from a process with all passes also with fewer.

    `step`: the training step, before `wrap` makes a function of it. It is traced once; every choice optimises it anew.
    """
    function = wrap(step)
    traced, run = before_and_after(function, batch)
    yield Stage("traced", UNIT, traced)
    yield Stage("optimised", UNIT, run)
    if chosen != passes.ALL:
        return
    for value in passes.values():
        if value != passes.ALL:
            passes.choose(value)
            yield Stage("optimised", UNIT, before_and_after(function, batch)[1], value)


def before_and_after(function: Callable[[Any], Any], batch: Any) -> tuple[Counter[str], Counter[str]]:
    """Run a function once; return the kinds of nodes of its graph before and after optimisation.

    The runtime optimises a function at its first call, and at the first call with other options. It keeps the graphs where this
    was turned on before.
    """
    known = context.context()
    known.enable_run_metadata()
    try:
        function(batch)
        metadata = known.export_run_metadata()
    finally:
        known.disable_run_metadata()
    # Small functions, such as a rate's, run beside the step.
    largest = max(metadata.function_graphs, key=lambda each: len(each.pre_optimization_graph.node))
    return _kinds(largest.pre_optimization_graph), _kinds(largest.post_optimization_graph)


def _kinds(graph: Any) -> Counter[str]:
    """Count the nodes of a graph and of the functions that it calls, such as bodies of loops, by their type."""
    found = Counter(node.op for node in graph.node)
    functions = {each.signature.name: each for each in graph.library.function}
    seen, waiting = set[str](), list(graph.node)
    while waiting:
        for attribute in waiting.pop().attr.values():
            names = [attribute.func.name, *(each.name for each in attribute.list.func)]
            for name in {*names} & functions.keys() - seen:
                seen.add(name)
                waiting += functions[name].node_def
                found.update(node.op for node in functions[name].node_def)
    return Counter(dict(sorted(found.items())))
