"""JAX's profiler: what ran for each instruction of the optimised program, whose text says what they belong to."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import jax

from steelyard_worker.frameworks.jax import traces

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PROGRAM = "program.txt"


class Profiler:
    """Profiles the streams of a GPU, or the threads of the host where there is none.

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
            jax.profiler.TraceAnnotation(traces.MARK),
        ):
            work()

    def operations(self) -> tuple[float, list[tuple[Any, str, float, float]]]:
        """Read the last trace, whose times are microseconds, and write the program beside it."""
        with gzip.open(self._trace(), "rt", encoding="utf-8") as file:
            found = traces.operations(json.load(file)["traceEvents"])
        if self._program:
            (self._folder / PROGRAM).write_text(self._program(), encoding="utf-8")
        return found

    def files(self) -> list[Path]:
        """Return the trace, and the program if there is one."""
        return [self._trace(), *([self._folder / PROGRAM] if self._program else [])]

    def _trace(self) -> Path:
        return sorted(self._folder.rglob("*.trace.json.gz"), key=lambda path: path.stat().st_mtime_ns)[-1]
