"""Settings of the MindSpore process: applied before the first kernel runs, read back from what runs."""

from __future__ import annotations

import ctypes
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
    from steelyard_worker.protocol import Settings

MODES = {"graph": mindspore.GRAPH_MODE, "pynative": mindspore.PYNATIVE_MODE}
DEVICES = {"cpu": "CPU", "ascend": "Ascend"}
# Bit of AVX-512 in oneDNN's dnnl_cpu_isa_t.
AVX512 = 0x20


def apply(settings: Settings) -> None:
    """Set device, mode, threads, determinism and instruction set; what cannot be had is refused."""
    if settings.device not in DEVICES:
        message = f"MindSpore {mindspore.__version__} has no back end for {settings.device!r}; devices: cpu, ascend."
        raise Refusal("unsupported", message)
    if settings.mode not in MODES:
        raise Refusal("unsupported", f"MindSpore has no mode {settings.mode!r}; modes: graph, pynative.")
    if settings.precision != "float32":
        raise Refusal("unsupported", "MindSpore has no float64 kernels for convolution, batch norm, SGD and Adam on CPU.")
    if not settings.knobs.get("avx512", False):
        os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX2"
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
        raise Refusal("unsupported", f"MindSpore cannot use {name} here: {' '.join(str(error).split())[:200]}") from error


def _set_threads(threads: int) -> None:
    # The kernel pool never has fewer than two threads, so one thread takes one processor for both of them.
    if threads == 1 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    mindspore.device_context.cpu.op_tuning.threads_num(threads)


def applied() -> dict[str, Any]:
    """Read back mode, device and determinism from the context, threads from the kernel pool, AVX-512 from oneDNN."""
    codes = {code: mode for mode, code in MODES.items()}
    return {
        "mode": codes[mindspore.get_context("mode")],
        "device": mindspore.get_context("device_target").lower(),
        "threads": _threads(),
        "precision": str(Tensor(np.zeros(1, np.float32)).dtype).lower(),
        "deterministic": mindspore.get_context("deterministic") == "ON",
        "avx512": bool(_onednn_isa() & AVX512),
    }


@mindspore.jit
def _probe(x: Tensor) -> Tensor:
    return x + 1


def _threads() -> int:
    """Count the threads of the kernel pool, which the first graph starts; no more can run than processors are allowed."""
    if not Path("/proc/self/task").is_dir():
        return int(mindspore.get_context("runtime_num_threads"))
    _probe(Tensor(np.zeros(1, np.float32))).asnumpy()
    counts = [0]
    # A thread of the pool names itself when it first runs, which may be a moment later.
    while not counts[-1] or counts[-10:].count(counts[-1]) < 10:
        counts.append(_pool_size())
        time.sleep(0.01)
    return min(counts[-1], len(os.sched_getaffinity(0)))


def _pool_size() -> int:
    names = [(task / "comm").read_text() for task in Path("/proc/self/task").iterdir()]
    return sum(name.startswith(("ActorThread", "KernelThread")) for name in names)


def libraries() -> dict[str, Any]:
    """Versions of MindSpore, NumPy and the oneDNN in the wheel, with the instruction set that oneDNN uses."""
    return {
        "mindspore": mindspore.__version__,
        "numpy": np.__version__,
        "onednn": _onednn_version(),
        "onednn_isa": hex(_onednn_isa()),
        "onednn_max_cpu_isa": os.environ.get("ONEDNN_MAX_CPU_ISA", ""),
    }


def compilations() -> int:
    """Graphs compiled in this process: of cells, and of functions under `mindspore.jit` as the optimizers have them."""
    return len(api.ms_compile_cache) + sum(map(len, api.cells_compile_cache.values()))


def _onednn() -> ctypes.CDLL | None:
    found = sorted((Path(mindspore.__file__).parent / "lib").glob("libdnnl.so*"))
    return ctypes.CDLL(str(found[0])) if found else None


def _onednn_isa() -> int:
    library = _onednn()
    return int(library.dnnl_get_effective_cpu_isa()) if library else 0


class _Version(ctypes.Structure):
    """Head of oneDNN's dnnl_version_t."""

    _fields_ = (("major", ctypes.c_int), ("minor", ctypes.c_int), ("patch", ctypes.c_int))


def _onednn_version() -> str:
    library = _onednn()
    if not library:
        return ""
    library.dnnl_version.restype = ctypes.POINTER(_Version)
    version = library.dnnl_version().contents
    return f"{version.major}.{version.minor}.{version.patch}"
