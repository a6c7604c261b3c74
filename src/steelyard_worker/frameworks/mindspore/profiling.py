"""MindSpore's profiler: the kernels of the graph, from the files that it writes."""

from __future__ import annotations

import shutil
import time
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import mindspore.profiler as profiler

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

STAMPS = "cpu_op_execute_timestamp_*.txt"


class Profiler:
    """Profiles the kernels of the host."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._origin = folder, 0

    def record(self, work: Callable[[], None]) -> None:
        """Run work under the profiler. Its trace has no marks, so the start is read from the clock that the trace has."""
        with TemporaryDirectory() as folder:  # MindSpore refuses paths with some characters, such as "="
            handler = profiler.tensorboard_trace_handler(folder)
            with profiler.profile(activities=[profiler.ProfilerActivity.CPU], on_trace_ready=handler):
                self._origin = time.time_ns()
                work()
            shutil.copytree(folder, self._folder, dirs_exist_ok=True)

    def operations(self) -> tuple[float, list[tuple[Any, str, float, float]]]:
        """Read the last time stamps: name;kind;start in ns,duration in ms,thread, and more executions after blanks."""
        found: list[tuple[Any, str, float, float]] = []
        for line in self._stamps().read_text(encoding="utf-8").splitlines():
            name, _, executions = line.split(";", 2)
            kind = _kind(name)
            for execution in executions.split():
                start, took, thread = execution.split(",")
                found.append((thread, kind, float(start), float(took) * 1e6))
        return self._origin, [each for each in found if each[2] >= self._origin]

    def files(self) -> list[Path]:
        """Return the trace that opens in Perfetto, and the time stamps."""
        folder = self._stamps().parents[1]
        return [*sorted(folder.rglob("trace_view.json")), self._stamps()]

    def _stamps(self) -> Path:
        return sorted(self._folder.rglob(STAMPS), key=lambda path: path.stat().st_mtime_ns)[-1]


def _kind(name: str) -> str:
    """Return the type of an operation, after the optimizer (`rule-`) or the operation of which it is a part (`_`), if any.

    `Default/rule-Adam/Mul-op3` is `rule-Adam/Mul`, `Gradients/Default/Grad_MatMul/MatMul-op7` is `MatMul`.
    """
    *scopes, last = name.rpartition("-op")[0].split("/") if "-op" in name else name.split("/")
    return f"{scopes[-1]}/{last}" if scopes and scopes[-1].startswith(("rule-", "_")) else last
