"""Settings of the MindSpore process: applied before the first kernel runs, then read back from the running process."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mindspore
import numpy as np
from mindspore import Tensor
from mindspore.graph import api

from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from steelyard_worker.case import Settings

MODES = {"graph": mindspore.GRAPH_MODE, "pynative": mindspore.PYNATIVE_MODE}
DEVICES = {"cpu": "CPU", "ascend": "Ascend"}


def apply(settings: Settings) -> None:
    """Set device, mode, threads and determinism; refuse settings that MindSpore does not support."""
    if settings.device not in DEVICES:
        message = f"MindSpore {mindspore.__version__} has no back end for {settings.device!r}; devices: cpu, ascend."
        raise Refusal("unsupported", message)
    if settings.mode not in MODES:
        raise Refusal("unsupported", f"MindSpore has no mode {settings.mode!r}; modes: graph, pynative.")
    if settings.precision != "float32":
        raise Refusal(
            "unsupported", "MindSpore has no float64 kernels for convolution, batch norm, SGD and Adam on CPU."
        )
    mindspore.set_context(mode=MODES[settings.mode])
    _set_device(DEVICES[settings.device])
    if settings.threads:
        _set_threads(settings.threads)
    if settings.deterministic:
        mindspore.set_deterministic(True)


def _set_device(name: str) -> None:
    try:
        mindspore.set_device(name)
    except (RuntimeError, ValueError) as error:
        raise Refusal(
            "unsupported", f"MindSpore cannot use {name} here: {' '.join(str(error).split())[:200]}"
        ) from error


def _set_threads(threads: int) -> None:
    # The kernel pool has at least two threads, so for one thread the process is restricted to one processor.
    if threads == 1 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    mindspore.device_context.cpu.op_tuning.threads_num(threads)


def applied() -> dict[str, Any]:
    """Read back mode, device and determinism from the context, threads from the kernel pool."""
    codes = {code: mode for mode, code in MODES.items()}
    return {
        "mode": codes[mindspore.get_context("mode")],
        "device": mindspore.get_context("device_target").lower(),
        "threads": _threads(),
        "precision": str(Tensor(np.zeros(1, np.float32)).dtype).lower(),
        "deterministic": mindspore.get_context("deterministic") == "ON",
    }


@mindspore.jit
def _probe(x: Tensor) -> Tensor:
    return x + 1


def _threads() -> int:
    """Count the threads of the kernel pool, which the first graph starts, up to the number of usable processors."""
    if not Path("/proc/self/task").is_dir():
        return int(mindspore.get_context("runtime_num_threads"))
    _probe(Tensor(np.zeros(1, np.float32))).asnumpy()
    counts = [0]
    # A thread of the pool sets its name when it first runs, which may be a moment later.
    while not counts[-1] or counts[-10:].count(counts[-1]) < 10:
        counts.append(_pool_size())
        time.sleep(0.01)
    return min(counts[-1], len(os.sched_getaffinity(0)))


def _pool_size() -> int:
    names = [(task / "comm").read_text() for task in Path("/proc/self/task").iterdir()]
    return sum(name.startswith(("ActorThread", "KernelThread")) for name in names)


def compilations() -> int:
    """Count the graphs compiled in this process, of cells and of functions under `mindspore.jit`, which optimizers use."""
    return len(api.ms_compile_cache) + sum(map(len, api.cells_compile_cache.values()))
