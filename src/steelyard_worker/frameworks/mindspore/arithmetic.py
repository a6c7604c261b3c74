"""How precisely MindSpore multiplies float32 matrices now, and on how many threads."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import mindspore
from mindspore import context
from mindspore._c_expression import ms_ctx_param

from steelyard_worker.frameworks.mindspore import onednn

if TYPE_CHECKING:
    from collections.abc import Iterable

# Parameters of the context. `device_context` sets them, and no public function returns them all on every device.
EVERYWHERE = ("precision_mode", "op_precision_mode", "enable_reduce_precision")
OF_ASCEND = ("matmul_allow_hf32", "conv_allow_hf32")
OF_GPU = ("matmul_allow_tf32", "conv_allow_tf32")
DEVICES = {"ascend": OF_ASCEND, "gpu": OF_GPU}


def now() -> dict[str, Any]:
    """Return what decides the precision of products, the mode and the threads."""
    device = mindspore.get_context("device_target").lower()
    return {
        **dict(_parameters((*EVERYWHERE, *DEVICES.get(device, ())))),
        "onednn_precision": onednn.precision(),
        "mode": {mindspore.GRAPH_MODE: "graph"}.get(mindspore.get_context("mode"), "pynative"),
        "deterministic": mindspore.get_context("deterministic"),
        "threads": int(mindspore.get_context("runtime_num_threads")),
        # For one thread, the process is restricted to one processor.
        "processors": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0,
    }


def _parameters(names: Iterable[str]) -> Iterable[tuple[str, Any]]:
    for name in names:
        if hasattr(ms_ctx_param, name):
            yield name, context._context().get_param(getattr(ms_ctx_param, name))  # noqa: SLF001 - nothing public tells
