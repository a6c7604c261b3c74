"""The events of JAX's profiler, as Chrome's trace viewer reads them -> the operations of a block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    Event = tuple[Any, str, float, float]

MARK = "steelyard.block"
EXECUTOR = "ThunkExecutor::Execute"
GPU = "/device:GPU"
# A thread of a GPU's part of the trace; there is one for each stream.
STREAM = "Stream"
# XLA joins most instructions into graphs that the GPU starts at once. Their kernels have the graph as their instruction, and the
# instruction, with _ for . and -, as their name.
GRAPH = "command_buffer"


def operations(events: Iterable[dict[str, Any]]) -> tuple[float, list[Event]]:
    """Return the start of the block and its operations, in ns: those of a GPU's streams, or of the host where there is none.

    An operation is named `module/instruction`, or as its kernel where XLA did not start it for an instruction.
    """
    known = list(events)
    traced = [event for event in known if event.get("ph") == "X"]
    (origin,) = [event["ts"] * 1e3 for event in traced if event["name"] == MARK]
    streams = _streams(known)
    named = ((event, (_on_gpu if streams else _on_host)(event)) for event in traced)
    return origin, [
        (_thread(event), name, event["ts"] * 1e3, event["dur"] * 1e3)
        for event, name in named
        if name and (not streams or _thread(event) in streams)
    ]


def _streams(events: list[dict[str, Any]]) -> set[tuple[Any, Any]]:
    """Return the threads of the streams of all GPUs."""
    naming = [event for event in events if event.get("ph") == "M"]
    gpus = {e["pid"] for e in naming if e["name"] == "process_name" and e["args"]["name"].startswith(GPU)}
    return {
        _thread(event)
        for event in naming
        if event["name"] == "thread_name" and event["pid"] in gpus and event["args"]["name"].startswith(STREAM)
    }


def _thread(event: dict[str, Any]) -> tuple[Any, Any]:
    return event["pid"], event["tid"]


def _on_gpu(event: dict[str, Any]) -> str:
    arguments = event.get("args", {})
    module, instruction = arguments.get("hlo_module", ""), arguments.get("hlo_op", "")
    if not instruction:
        return str(event["name"])
    return f"{module}/{event['name'] if instruction.startswith(GRAPH) else instruction}"


def _on_host(event: dict[str, Any]) -> str:
    """Return the instruction of an event, or the executor; empty for the frames around them."""
    instruction = event.get("args", {}).get("hlo_op", "")
    if instruction and not event["name"].startswith("end: "):
        return f"{event['args'].get('hlo_module', '')}/{instruction}"
    return EXECUTOR if event["name"] == EXECUTOR else ""
