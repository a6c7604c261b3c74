"""PyTorch's profiler (Kineto): a Chrome trace, which opens in Perfetto."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

from torch.profiler import ProfilerActivity, profile, record_function

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Event = tuple[Any, str, float, float]

MARK = "steelyard.block"
ON_HOST = ("cpu_op", "user_annotation")
ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
# What Kineto calls the operation of the host that started a kernel: the same number in the arguments of both.
STARTED_BY = "External id"
# Inductor names its kernels after the operations that it has fused; the host knows them as parts of one compiled graph only.
GENERATED = "triton_"


class Profiler:
    """Profiles what runs on the device: on the CPU the operations of the host, on a GPU its kernels and copies.

    A kernel has the name of the operation that started it.
    """

    def __init__(self, folder: Path, device: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._trace, self._on_gpu = folder / "trace.json.gz", device == "cuda"
        self._session: Any = None

    def record(self, work: Callable[[], None]) -> None:
        """Run work under the profiler."""
        activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if self._on_gpu else [])]
        with profile(activities=activities) as self._session, record_function(MARK):
            work()

    def operations(self) -> tuple[float, list[Event]]:
        """Write the trace, and read it: its times are microseconds."""
        self._session.export_chrome_trace(str(self._trace))
        with gzip.open(self._trace, "rt", encoding="utf-8") as file:
            traced = [event for event in json.load(file)["traceEvents"] if event.get("ph") == "X"]
        host = [event for event in traced if event.get("cat") in ON_HOST]
        ((_, _, origin, _),) = [_event(each, MARK) for each in host if each["name"] == MARK]
        if self._on_gpu:
            return origin, on_gpu(traced)
        return origin, [_event(each, each["name"]) for each in host if each["name"] != MARK]

    def files(self) -> list[Path]:
        """Return the trace."""
        return [self._trace]


def on_gpu(traced: list[dict[str, Any]]) -> list[Event]:
    """Return the kernels and copies of a trace, by the operation of the host that started each of them."""
    started = {each["args"][STARTED_BY]: each["name"] for each in traced if each.get("cat") == "cpu_op"}
    return [
        _event(each, _started_by(each, started.get(each["args"].get(STARTED_BY), "")))
        for each in traced
        if each.get("cat") in ON_GPU
    ]


def _started_by(event: dict[str, Any], operation: str) -> str:
    name = str(event["name"])
    return name if name.startswith(GENERATED) else operation or name


def _event(event: dict[str, Any], name: str) -> Event:
    return (event["pid"], event["tid"]), name, event["ts"] * 1e3, event["dur"] * 1e3
