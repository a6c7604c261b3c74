"""What torch.compile makes of a training step: the operations that it traced, and the kernels that Inductor wrote for them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from torch._functorch import config as gradients
from torch._inductor import config, metrics

from steelyard_worker.graphs import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

UNIT = "operations, forward and backward"
GENERATED = "generated kernel"
# On a CPU Inductor calls libraries for these, and writes kernels for everything else.
LIBRARY = ("convolution", "convolution_backward", "mm", "addmm", "bmm", "baddbmm", "_thnn_fused_lstm_cell")


def stages(trainer: Any, batch: Any) -> Iterator[Stage]:
    """Compile and run a step; yield the operations that were traced, and the kernels that run."""
    before, after = Counter[str](), Counter[str]()
    # What is found in these caches is not compiled again, and then nothing is counted.
    config.fx_graph_cache = gradients.enable_autograd_cache = False
    config.post_grad_custom_pre_pass = lambda graph: before.update(_kinds(graph))
    config.post_grad_custom_post_pass = lambda graph: after.update(_kinds(graph))
    metrics.reset()
    trainer.step(batch)
    yield Stage("traced", UNIT, dict(before))
    calls = {kind: after[kind] for kind in LIBRARY if after[kind]}
    yield Stage("run", "kernels", calls | {GENERATED: metrics.generated_kernel_count})


def _kinds(graph: Any) -> Counter[str]:
    """Count the operations of an FX graph, by name without overload; its inputs and results are none."""
    called = [node.target for node in graph.nodes if node.op.startswith("call")]
    return Counter(sorted(str(getattr(each, "overloadpacket", each)).rpartition(".")[2] for each in called))
