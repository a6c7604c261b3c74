"""What MindSpore's compiler makes of a training step, from the files that it writes about its stages."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mindspore

from steelyard_worker.graphs import Stage
from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

UNIT = "nodes"
# The typed graph, before any optimisation, and the one whose nodes become kernels.
STAGES = {"traced": "*_type_inference_*.ir", "optimised": "hwopt_common_final_graph_*.ir"}
CALL = "call"
_NODE = re.compile(r"^\s+%\d+\([^)]*\) = ([\w:.$@%]+)?", re.MULTILINE)


def stages(trainer: Any, batch: Any) -> Iterator[Stage]:
    """Compile and run a step; yield the nodes of its graph. The files take some 100 MB, and are removed."""
    with tempfile.TemporaryDirectory() as folder:
        mindspore.set_context(save_graphs=1, save_graphs_path=folder)
        trainer.step(batch)
        trainer.synchronise()
        for name, pattern in STAGES.items():
            yield Stage(
                name, UNIT, kinds(_largest(Path(folder), pattern).read_text(encoding="utf-8", errors="replace"))
            )


def kinds(text: str) -> dict[str, int]:
    """Count the nodes in the text of a graph with its subgraphs by primitive; a node that runs a subgraph is a call."""
    found = Counter(
        CALL if not name or name[0] in "@%$" else name.removeprefix("PrimFunc_") for name in _NODE.findall(text)
    )
    return dict(sorted(found.items()))


def _largest(folder: Path, pattern: str) -> Path:
    """Return the largest file: small graphs, such as an optimizer's, may be compiled beside the step."""
    found = sorted(folder.rglob(pattern), key=lambda path: path.stat().st_size)
    if not found:
        raise Refusal("unsupported", f"MindSpore wrote no file {pattern} about its graph.")
    return found[-1]
