"""The processes of this run, and the CPU time they have used."""

import contextlib
import os
from pathlib import Path
from typing import NamedTuple

import psutil

from steelyard.host.system import read

PROC = Path("/proc")


class OwnWork(NamedTuple):
    """The work of this process and everything it started, with that of ended children for which one of them has waited.

    `cpu_s`: user and system time in seconds. `stopped`: the ids of those that a signal has stopped.
    """

    cpu_s: float
    stopped: frozenset[int]


def own_processes() -> list[psutil.Process]:
    """Return this process and its living descendants.

    A process whose parent has ended is no longer a descendant: the system gives it another parent.
    """
    this = psutil.Process()
    if not (PROC / f"{this.pid}/task/{this.pid}/children").exists():
        return [this, *this.children(recursive=True)]
    return _follow_children_files(this)


def own_work() -> OwnWork:
    """Read every one of `own_processes()` once."""
    total, stopped = 0.0, set()
    for process in own_processes():
        with contextlib.suppress(psutil.NoSuchProcess), process.oneshot():
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
            if process.status() == psutil.STATUS_STOPPED:
                stopped.add(process.pid)
    return OwnWork(total, frozenset(stopped))


def _follow_children_files(first: psutil.Process) -> list[psutil.Process]:
    """Find descendants in the kernel's lists of children.

    psutil finds children by reading the status of every process of the machine. Once a second that would cost
    more than all other counters together, on the processors that are being measured.
    """
    found = [first]
    for process in found:  # grows while it is read
        for pid in _children(process.pid):
            with contextlib.suppress(psutil.NoSuchProcess):
                found.append(psutil.Process(pid))
    return found


def _children(pid: int) -> list[int]:
    try:
        threads = os.listdir(PROC / f"{pid}/task")  # noqa: PTH208 - see `system.read`
    except OSError:
        return []
    return [int(child) for thread in threads for child in read(PROC / f"{pid}/task/{thread}/children").split()]
