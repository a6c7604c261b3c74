"""The events of PyTorch's profiler (Kineto), as Chrome's trace viewer reads them -> the operations of a block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    Event = tuple[Any, str, float, float]

MARK = "steelyard.block"
ON_HOST = ("cpu_op", "user_annotation")
ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
# The number of an operation of the host, which what it started on the GPU has too.
STARTED_BY = "External id"
# Inductor names its kernels after the operations that they join. What started them is the compiled graph as a whole.
GENERATED = "triton_"


def operations(events: Iterable[dict[str, Any]], on_gpu: bool) -> tuple[float, list[Event]]:
    """Return the start of the block and its operations, in ns: those of the host, or the kernels and copies of a GPU.

    A kernel has the name of the operation that started it, or its own where there is none.
    """
    traced = [event for event in events if event.get("ph") == "X"]
    host = [event for event in traced if event.get("cat") in ON_HOST]
    (origin,) = [event["ts"] * 1e3 for event in host if event["name"] == MARK]
    if not on_gpu:
        return origin, [_event(each, each["name"]) for each in host if each["name"] != MARK]
    numbered = [event for event in traced if STARTED_BY in event.get("args", {})]
    started = {each["args"][STARTED_BY]: each["name"] for each in numbered if each.get("cat") == "cpu_op"}
    return origin, [
        _event(each, _kernel(each["name"], started.get(each.get("args", {}).get(STARTED_BY), "")))
        for each in traced
        if each.get("cat") in ON_GPU
    ]


def _kernel(name: str, started_by: str) -> str:
    return name if name.startswith(GENERATED) else started_by or name


def _event(event: dict[str, Any], name: str) -> Event:
    return (event["pid"], event["tid"]), name, event["ts"] * 1e3, event["dur"] * 1e3
