"""What the symbol of a hybridized network with its loss consists of. MXNet keeps the backward pass to itself."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from steelyard_worker.graphs import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE = "null"


def stages(forward: Any) -> Iterator[Stage]:
    """Yield the graph of a hybridized block that has run, and its operators alone: on a CPU MXNet rewrites nothing."""
    _, symbol = forward._cached_graph  # noqa: SLF001 - export() would write it, with all parameters, to a file
    kinds = Counter(node["op"] for node in json.loads(symbol.tojson())["nodes"])
    yield Stage("traced", "nodes, forward and loss", dict(sorted(kinds.items())))
    operators = {kind: count for kind, count in sorted(kinds.items()) if kind != VARIABLE}
    yield Stage("run", "operators, forward and loss", operators)
