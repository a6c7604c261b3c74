"""A scripted profiler: two thirds of every step are a matrix product, a quarter is the optimizer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from steelyard_worker.frameworks.fake import adapter

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PARTS = (("product", 0.0, 0.66), ("update", 0.7, 0.25))


class Profiler:
    """Notes the steps that the adapter passes while it records; `passed` returns their (start, duration) and forgets them."""

    def __init__(
        self, folder: Path, passed: Callable[[], list[tuple[int, int]]], clock: Callable[[], int], fault: str
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._fault = fault
        self._trace, self._passed, self._clock = folder / "trace.json", passed, clock
        self._origin, self._steps = 0, list[tuple[int, int]]()

    def record(self, work: Callable[[], None]) -> None:
        """Run work."""
        self._passed()
        self._origin = self._clock()
        work()
        self._steps = self._passed()

    def operations(self) -> tuple[float, list[tuple[Any, str, float, float]]]:
        """Cause the scripted fault, write the trace and return the parts of every step."""
        adapter.cause(self._fault, self._trace.parent)
        if self._fault == "empty":
            return self._origin, []
        found = [(1, name, start + at * took, share * took) for start, took in self._steps for name, at, share in PARTS]
        self._trace.write_text(json.dumps({"traceEvents": found}), encoding="utf-8")
        return self._origin, found

    def files(self) -> list[Path]:
        """Return the trace."""
        return [self._trace]
