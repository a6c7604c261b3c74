"""The phases of a process, such as the import of its framework: how long each took, and its peak memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard_worker import timing

if TYPE_CHECKING:
    from steelyard_worker.memory import Peaks
    from steelyard_worker.protocol import EventWriter


class Phase:
    """Record how long a named phase took, and its peak memory."""

    def __init__(self, events: EventWriter, name: str, peaks: Peaks) -> None:
        self._events, self._name, self._peaks = events, name, peaks
        self.elapsed_ns = 0

    def __enter__(self) -> Phase:
        self._began = timing.monotonic()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.elapsed_ns = timing.monotonic() - self._began
        if kind is None:
            self._events.write("phase", name=self._name, elapsed_ns=self.elapsed_ns)
            self._peaks.end(self._name)
