"""Processes that a waiting process has started and that did not stop with it, because they have left its group."""

import os
import signal
import time
from contextlib import suppress

import psutil

from steelyard.host import left_behind

# How often they are searched for. A search takes some milliseconds, between two blocks, while nothing is timed.
PERIOD_S = 5.0


class Outsiders:
    """The outsiders of one process. `pid`: the id of that process."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._found: list[psutil.Process] = []
        self._looked_s = -PERIOD_S

    def stop(self) -> None:
        """Stop them; the process itself is stopped already."""
        if time.monotonic() >= self._looked_s + PERIOD_S:
            self._found = self._look()
            self._looked_s = time.monotonic()
        self._send(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let them continue."""
        self._send(signal.SIGCONT)

    def _look(self) -> list[psutil.Process]:
        with suppress(psutil.Error, OSError):
            group = os.getpgid(self._pid)
            every = left_behind.living(left_behind.origin_of(self._pid))
            return [each for each in every if each.pid != self._pid and _group_of(each) != group]
        return []

    def _send(self, number: int) -> None:
        for each in self._found:
            with suppress(psutil.Error):
                each.send_signal(number)


def _group_of(process: psutil.Process) -> int:
    try:
        return os.getpgid(process.pid)
    except OSError:
        return 0
