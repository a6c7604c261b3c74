"""PyTorch's profiler (Kineto): a Chrome trace, which opens in Perfetto."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

from torch.profiler import ProfilerActivity, profile, record_function

from steelyard_worker.frameworks.pytorch import traces

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Profiler:
    """Profiles what runs on the device: the operations of the host, or the kernels and copies of a GPU."""

    def __init__(self, folder: Path, device: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._trace, self._on_gpu = folder / "trace.json.gz", device == "cuda"
        self._session: Any = None

    def record(self, work: Callable[[], None]) -> None:
        """Run work under the profiler."""
        activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if self._on_gpu else [])]
        with profile(activities=activities) as self._session, record_function(traces.MARK):
            work()

    def operations(self) -> tuple[float, list[traces.Event]]:
        """Write the trace, and read it: its times are microseconds."""
        self._session.export_chrome_trace(str(self._trace))
        with gzip.open(self._trace, "rt", encoding="utf-8") as file:
            return traces.operations(json.load(file)["traceEvents"], self._on_gpu)

    def files(self) -> list[Path]:
        """Return the trace."""
        return [self._trace]
