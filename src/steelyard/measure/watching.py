"""The launcher's own observations of a process, independent of its record: how long it ran, its CPU time, and how late its events
are.

All processes of a machine read the same monotonic clock (clock_gettime(2)), so times of two processes can be compared.
"""

import contextlib
import os
import subprocess
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import psutil

from steelyard.files import json_lines
from steelyard.host import usable_cores
from steelyard.host.counters import Sample
from steelyard.results import standstill
from steelyard.results.events import Watched
from steelyard.results.trials import Trial
from steelyard_worker import protocol

# A single event may be late because its process or the disk paused between reading the clock and writing the line. All of the
# last events are late only if the process's clock is slow.
LAST_EVENTS = 3


class Watching:
    """Observations of one process, from its start to its end. `spawned_ns`: when it was started."""

    def __init__(self, spawned_ns: int) -> None:
        self._spawned_ns = self._looked_ns = self._looks_ns = spawned_ns
        self._ended_ns = 0
        self._behind_ns: deque[int] = deque(maxlen=LAST_EVENTS)
        self._cpu_ns: int | None = None
        self._has_seen = False

    def looks(self) -> None:
        """Note that the launcher is about to look for new events."""
        self._looked_ns, self._looks_ns = self._looks_ns, time.perf_counter_ns()

    def found(self, event: dict[str, Any]) -> None:
        """Note a new event, which was written after the last look."""
        self._has_seen = True
        told = event.get("t_ns")
        if isinstance(told, int):
            self._behind_ns.append(max(0, self._looked_ns - told))

    @property
    def has_seen_events(self) -> bool:
        """Whether the process has written any event."""
        return self._has_seen

    def has_ended(self, process: subprocess.Popen[bytes]) -> bool:
        """Return whether a process has ended. Its CPU time is read before the system forgets it, where that is possible."""
        if process.returncode is None and hasattr(os, "waitid"):
            with contextlib.suppress(ChildProcessError):
                if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                    return False
            self._ended_ns = time.perf_counter_ns()
            with contextlib.suppress(psutil.Error):
                self._cpu_ns = round(1e9 * sum(psutil.Process(process.pid).cpu_times()[:4]))
        if process.poll() is None:
            return False
        self._ended_ns = self._ended_ns or time.perf_counter_ns()
        return True

    def record(self, several: bool) -> Watched | None:
        """Return what was seen; None where no end was seen. `several`: it started ranks, whose CPU time is not known."""
        if not self._ended_ns:
            return None
        return Watched(
            self._spawned_ns,
            self._ended_ns,
            min(self._behind_ns, default=0),
            usable_cores(),
            None if several else self._cpu_ns,
        )


def with_withheld(trial: Trial, samples: Sequence[Sample]) -> Trial:
    """Record for how long others kept a finished process from computing, according to the samples of its machine.

    On a full disk that cannot be written; the returned trial has it in any case.
    """
    blocks_ns = standstill.withheld_ns(trial, samples)
    with contextlib.suppress(OSError):
        json_lines.append(
            trial.folder / protocol.EVENTS,
            v=protocol.VERSION,
            event=protocol.WITHHELD,
            t_ns=time.perf_counter_ns(),
            blocks_ns=blocks_ns,
        )
    return replace(trial, withheld_ns=blocks_ns)


def append(folder: Path, seen: Watched) -> None:
    """Append what was seen to the events of a trial. On a full disk that cannot be written, and then nothing is checked."""
    with contextlib.suppress(OSError):
        json_lines.append(
            folder / protocol.EVENTS, v=protocol.VERSION, event=protocol.WATCHED, t_ns=seen.ended_ns, **asdict(seen)
        )
