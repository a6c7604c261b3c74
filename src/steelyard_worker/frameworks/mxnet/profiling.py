"""MXNet's profiler: a Chrome trace of the operators that its engine ran."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import mxnet as mx

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OPERATOR = "operator"


class Profiler:
    """Profiles operators; the environment keeps MXNet from joining several into one (MXNET_EXEC_BULK_EXEC_TRAIN=0)."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._trace = folder / "trace.json"
        self._span = (0, 0)
        # It can be set once only, so the file has all records, and the span says which part is the last one.
        mx.profiler.set_config(
            profile_symbolic=True,
            profile_imperative=True,
            profile_memory=False,
            profile_api=False,
            aggregate_stats=True,
            filename=str(self._trace),
        )

    def record(self, work: Callable[[], None]) -> None:
        """Run work under the profiler."""
        mx.profiler.set_state("run")
        began = time.time_ns()
        work()
        self._span = began, time.time_ns()
        mx.profiler.set_state("stop")

    def operations(self) -> tuple[float, list[tuple[Any, str, float, float]]]:
        """Write the trace, and pair beginnings and ends, whose times are microseconds of the system's clock."""
        mx.profiler.dump()
        traced = json.loads(self._trace.read_text(encoding="utf-8"))["traceEvents"]
        begun: dict[tuple[Any, str], list[float]] = {}
        found: list[tuple[Any, str, float, float]] = []
        for event in traced:
            if event.get("cat") != OPERATOR or event.get("ph") not in ("B", "E"):
                continue  # the same operators come again as asynchronous events
            key, now = (event["tid"], event["name"]), event["ts"] * 1e3
            if event["ph"] == "B":
                begun.setdefault(key, []).append(now)
            elif begun.get(key):
                start = begun[key].pop()
                found.append((event["tid"], event["name"], start, now - start))
        began, ended = self._span
        return began, [each for each in found if began <= each[2] <= ended]

    def files(self) -> list[Path]:
        """Return the trace."""
        return [self._trace]
