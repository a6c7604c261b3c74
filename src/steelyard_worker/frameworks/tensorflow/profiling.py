"""TensorFlow's profiler: what the executor ran, by operation type after the graph was optimised."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MARK = "steelyard.block"
HOST = "/host:CPU"
EXECUTOR = "ExecutorState::Process"
EAGER, EAGER_KERNEL = "EagerLocalExecute: ", "KernelAndDeviceFunc::Run"
# The name scopes of loops over time, attention and layer norm, which have no operation of their own.
SCOPES = re.compile(r"(?:^|/)(recurrent|attention|normalisation)(?:_\d+)?/")


class Profiler:
    """Profiles the threads of the host; the trace opens in TensorBoard's profile plugin."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder

    def record(self, work: Callable[[], None]) -> None:
        """Run work under the profiler."""
        options = tf.profiler.experimental.ProfilerOptions(
            host_tracer_level=2, python_tracer_level=0, device_tracer_level=0
        )
        tf.profiler.experimental.start(str(self._folder), options=options)
        try:
            with tf.profiler.experimental.Trace(MARK):
                work()
        finally:
            tf.profiler.experimental.stop()

    def operations(self) -> tuple[float, list[tuple[Any, str, float, float]]]:
        """Read the last trace, whose lines begin at a time in nanoseconds and have offsets in picoseconds."""
        space = xplane_pb2.XSpace()
        space.ParseFromString(self._trace().read_bytes())
        (plane,) = [each for each in space.planes if each.name == HOST]
        found = list(_events(plane))
        (origin,) = [start for _, name, start, _ in found if name == MARK]
        return origin, list(_operations(found))

    def files(self) -> list[Path]:
        """Return the trace."""
        return [self._trace()]

    def _trace(self) -> Path:
        return sorted(self._folder.rglob("*.xplane.pb"), key=lambda path: path.stat().st_mtime_ns)[-1]


def _events(plane: Any) -> Iterator[tuple[int, str, float, float]]:
    for line in plane.lines:
        for event in line.events:
            name = plane.event_metadata[event.metadata_id].name
            yield line.id, name, line.timestamp_ns + event.offset_ps / 1e3, event.duration_ps / 1e3


def _operations(events: list[tuple[int, str, float, float]]) -> Iterator[tuple[int, str, float, float]]:
    """Yield operations. Eager ones have their name on the call, whose kernel runs inside it; the rest of the call is dispatch."""
    called: dict[int, tuple[str, float]] = {}
    for lane, name, start, took in sorted(events, key=lambda event: (event[2], -event[3])):
        kind, ended = called.get(lane, ("", 0.0))
        if name.startswith(EAGER):
            called[lane] = name.removeprefix(EAGER), start + took
            if not name.startswith(f"{EAGER}__"):  # a graph, whose operations come one by one
                yield lane, EAGER.strip(), start, took
        elif name == EAGER_KERNEL and start < ended and not kind.startswith("__"):
            yield lane, kind, start, took
        elif found := _operation(name):
            yield lane, found, start, took


def _operation(name: str) -> str:
    """Return the type of `node:Type` after a scope that its node is in, or the executor; empty for the frames around them."""
    if name == EXECUTOR:
        return EXECUTOR
    if "::" in name or " " in name or ":" not in name:
        return ""
    node, _, kind = name.rpartition(":")
    scope = SCOPES.search(node)
    return f"{scope[1]}/{kind}" if scope else kind
