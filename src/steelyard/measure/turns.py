"""Processes that take turns: each waits, stopped, while another one computes, so that all meet the same drift of the machine.

A process starts and warms up alone. Before each counted block it writes the event `waits`, and stops itself with the processes
that it has started. It continues when its turn comes. So only one computes at a time, and nothing is fetched ahead meanwhile.
Processes that have left its group are stopped and go on with it.
"""

import os
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from random import Random
from threading import Condition, Event
from typing import Any

import psutil

from steelyard.measure.launch import Watch
from steelyard.measure.outsiders import Outsiders
from steelyard.results.trials import Trial
from steelyard.statistics.orders import turn_order

POLL_S = 0.01
# The longest time between the event and the moment when the process has stopped. A slower process is not waited for: it
# continues, and fails by itself.
STOPS_WITHIN_S = 10.0

Start = Callable[[str, Watch], Trial]


class Turns:
    """Runs processes so that one computes at a time. `stop`: set when the run ends early."""

    def __init__(self, stop: Event, seed: str) -> None:
        """`seed`: of the order of the turns."""
        self._stop, self._random = stop, Random(seed)
        self._changed = Condition()
        self._blocks: dict[
            str, int
        ] = {}  # waiting process -> its number of counted blocks until it does something else
        self._processes: dict[str, Future[Trial]] = {}

    def run(
        self, keys: Sequence[str], start: Start, has_room: Callable[[str], bool], show: Callable[[str, bool], None]
    ) -> list[Trial]:
        """Run one process for each key, started in this order; returns their trials. An interrupt stops all of them.

        `start` runs a process to its end, and passes its events on. `has_room` says whether it may start while others wait; if
        not, the others finish first. `show` is called when a process begins (False) or goes on (True).
        """
        with ThreadPoolExecutor(len(keys)) as pool:
            try:
                for key in keys:
                    if self._blocks and not has_room(key):
                        self._take_turns(show)
                    show(key, False)
                    self._processes[key] = pool.submit(start, key, self._watch(key))
                    self._until_idle(key)
                self._take_turns(show)
                return [self._processes[key].result() for key in keys]
            except BaseException:
                self._stop.set()
                raise

    def _take_turns(self, show: Callable[[str, bool], None]) -> None:
        while self._blocks:
            for key in turn_order(self._blocks, self._random):
                if key in self._blocks:  # it may have ended early
                    show(key, True)
                    with self._changed:
                        del self._blocks[key]
                        self._changed.notify_all()
                    self._until_idle(key)

    def _until_idle(self, key: str) -> None:
        """Block until a process waits or has ended. An error that ends the whole run, such as a full disk, is raised."""
        process = self._processes[key]
        with self._changed:
            while not (key in self._blocks or process.done()):
                self._changed.wait(POLL_S)
        if process.done():
            process.result()

    def _watch(self, key: str) -> Watch:
        """Return the callback for the events of a process. For `waits`, it returns when the process may continue."""
        pid, outside = 0, Outsiders(0)

        def watch(event: dict[str, Any]) -> None:
            nonlocal pid, outside
            if event["event"] == "hello":
                pid, outside = event["pid"], Outsiders(event["pid"])
            elif event["event"] == "waits":
                self._wait(key, pid, event["blocks"], outside)

        return watch

    def _wait(self, key: str, pid: int, blocks: int, outside: Outsiders) -> None:
        if not self._is_stopped(pid):
            return
        outside.stop()
        with self._changed:
            self._blocks[key] = blocks
            self._changed.notify_all()
            while key in self._blocks and not self._stop.is_set():
                self._changed.wait(POLL_S)
            self._blocks.pop(key, None)
        outside.go_on()
        with suppress(ProcessLookupError):  # it was killed while it waited
            os.killpg(os.getpgid(pid), signal.SIGCONT)

    def _is_stopped(self, pid: int) -> bool:
        """Return whether a process has stopped itself, which it does as soon as it has said so."""
        limit = time.monotonic() + STOPS_WITHIN_S
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            while time.monotonic() < limit and not self._stop.is_set():
                status = process.status()
                if status in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE):
                    return bool(status == psutil.STATUS_STOPPED)
                time.sleep(POLL_S)
        return False
