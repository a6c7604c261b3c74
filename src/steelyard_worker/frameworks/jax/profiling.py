"""JAX's profiler: XLA's thunks by the instructions of the optimised program, whose text says what they belong to."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import jax

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MARK = "steelyard.block"
EXECUTOR = "ThunkExecutor::Execute"
GPU = "/device:GPU"
# Each stream of a GPU is a thread of its trace; others repeat its events by module, instruction and source.
STREAM = "Stream"
PROGRAM = "program.txt"


class Profiler:
    """Profiles the threads of the host, or where there is a GPU, its streams.

    `program`: returns the text of the optimised program, which compiles it again; None where every operation is a program.
    """

    def __init__(self, folder: Path, program: Callable[[], str] | None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._program = folder, program

    def record(self, work: Callable[[], None]) -> None:
        """Run work under the profiler."""
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level, options.host_tracer_level = 0, 2
        with (
            jax.profiler.trace(str(self._folder), profiler_options=options),
            jax.profiler.TraceAnnotation(MARK),
        ):
            work()

    def operations(self) -> tuple[float, list[tuple[Any, str, float, float]]]:
        """Read the last trace, whose times are microseconds, and write the program beside it."""
        with gzip.open(self._trace(), "rt", encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        traced = [event for event in events if event.get("ph") == "X"]
        (origin,) = [event["ts"] * 1e3 for event in traced if event["name"] == MARK]
        if self._program:
            (self._folder / PROGRAM).write_text(self._program(), encoding="utf-8")
        streams = _streams(events)
        return origin, [
            ((event["pid"], event["tid"]), name, event["ts"] * 1e3, event["dur"] * 1e3)
            for event in traced
            if not streams or (event["pid"], event["tid"]) in streams
            if (name := (_name_on_gpu if streams else _name)(event))
        ]

    def files(self) -> list[Path]:
        """Return the trace, and the program if there is one."""
        return [self._trace(), *([self._folder / PROGRAM] if self._program else [])]

    def _trace(self) -> Path:
        return sorted(self._folder.rglob("*.trace.json.gz"), key=lambda path: path.stat().st_mtime_ns)[-1]


def _name(event: dict[str, Any]) -> str:
    """Return the instruction of an event, or the executor; empty for the frames around them."""
    instruction = event.get("args", {}).get("hlo_op", "")
    if instruction and not event["name"].startswith("end: "):
        return f"{event['args'].get('hlo_module', '')}/{instruction}"
    return EXECUTOR if event["name"] == EXECUTOR else ""


def _streams(events: list[dict[str, Any]]) -> set[tuple[Any, Any]]:
    """Return (process, thread) of every stream of a GPU."""
    named = [event for event in events if event.get("ph") == "M"]
    gpus = {e["pid"] for e in named if e["name"] == "process_name" and e["args"]["name"].startswith(GPU)}
    return {
        (event["pid"], event["tid"])
        for event in named
        if event["name"] == "thread_name" and event["pid"] in gpus and event["args"]["name"].startswith(STREAM)
    }


def _name_on_gpu(event: dict[str, Any]) -> str:
    """Return the instruction of a kernel, or the kernel's own name where the trace has none."""
    arguments = event.get("args", {})
    instruction = arguments.get("hlo_op", "")
    return f"{arguments.get('hlo_module', '')}/{instruction}" if instruction else str(event["name"])
