"""PyTorch's profiler (Kineto): a Chrome trace, which opens in Perfetto."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

from torch.profiler import ProfilerActivity, profile, record_function

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MARK = "steelyard.block"
OPERATIONS = ("cpu_op", "user_annotation")


class Profiler:
    """Profiles what runs on the host; kernels of a GPU are not tried."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._trace = folder / "trace.json.gz"
        self._session: Any = None

    def record(self, work: Callable[[], None]) -> None:
        """Run work under the profiler."""
        with profile(activities=[ProfilerActivity.CPU]) as self._session, record_function(MARK):
            work()

    def operations(self) -> tuple[float, list[tuple[Any, str, float, float]]]:
        """Write the trace, and read it: its times are microseconds."""
        self._session.export_chrome_trace(str(self._trace))
        with gzip.open(self._trace, "rt", encoding="utf-8") as file:
            traced = json.load(file)["traceEvents"]
        found = [
            ((event["pid"], event["tid"]), event["name"], event["ts"] * 1e3, event["dur"] * 1e3)
            for event in traced
            if event.get("ph") == "X" and event.get("cat") in OPERATIONS
        ]
        ((_, _, origin, _),) = [each for each in found if each[1] == MARK]
        return origin, [each for each in found if each[1] != MARK]

    def files(self) -> list[Path]:
        """Return the trace."""
        return [self._trace]
