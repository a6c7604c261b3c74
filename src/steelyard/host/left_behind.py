"""Processes that outlive the one that started them, also in sessions of their own: found by what they inherit, and ended.

A process that gives itself another session and another parent is in no group and below no process that would lead to it. But it
keeps the variables with which it began, and the folder in which it works.
"""

import contextlib
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

# The variable that names the temporary folder of a process; every process of a trial gets a new one.
VARIABLE = "TMPDIR"
# Programs that take over the processes whose parent has ended, besides the first process of all.
FOSTERS = ("systemd", "init")
POLL_S = 0.05
# Ended processes may have started others in the last moment.
MOST_SCANS = 5
# By how much the time at which a process began may be wrong: it is counted from the start of the system, whose clock is adjusted.
CLOCK_S = 2.0


@dataclass(frozen=True)
class Origin:
    """What all processes of one start inherit, unless they change it.

    `session`: the process number of the first one, which leads a session. `temporary`: the temporary folder of these processes
    alone; empty: they have none. `folder`: in which they work; empty: others work there, too. `since_s`: when the first one was
    started, in seconds since 1970.
    """

    session: int
    temporary: str
    folder: str
    since_s: float


def living(origin: Origin) -> list[psutil.Process]:
    """Return the processes of this origin that are alive, and their descendants, without the first one. Takes about 10 ms."""
    found: dict[int, psutil.Process] = {}
    for pid in psutil.pids():
        if pid in (os.getpid(), origin.session):
            continue
        with contextlib.suppress(psutil.Error):
            each = psutil.Process(pid)
            if _is_alive(each) and _inherits(each, origin):
                found |= {one.pid: one for one in (each, *each.children(recursive=True)) if _is_alive(one)}
    found.pop(os.getpid(), None)
    return list(found.values())


def end(origin: Origin, patience_s: float) -> tuple[str, ...]:
    """End all processes of this origin; return the names of the programs of those that were still there after `patience_s`."""
    limit = time.monotonic() + patience_s
    while (left := living(origin)) and time.monotonic() < limit:
        time.sleep(POLL_S)
    names = list(_names(left))
    for _ in range(MOST_SCANS):
        if not left:
            break
        for each in left:
            with contextlib.suppress(psutil.Error):
                each.kill()
        psutil.wait_procs(left, timeout=1)
        left = living(origin)
    return tuple(names)


def _names(processes: Iterable[psutil.Process]) -> Iterable[str]:
    for each in processes:
        try:
            yield each.name()
        except psutil.Error:
            yield "an unknown program"


def _is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _inherits(process: psutil.Process, origin: Origin) -> bool:
    """Return whether a process is of this origin; of other users' processes this cannot be seen, and they are not."""
    with contextlib.suppress(psutil.Error, OSError):
        if os.getsid(process.pid) == origin.session:
            return True
    with contextlib.suppress(psutil.Error, OSError):
        if origin.temporary and process.environ().get(VARIABLE) == origin.temporary:
            return True
    with contextlib.suppress(psutil.Error, OSError):
        return bool(origin.folder) and _was_orphaned_in(process, Path(origin.folder), origin.since_s)
    return False


def _was_orphaned_in(process: psutil.Process, folder: Path, since_s: float) -> bool:
    """Return whether a process without a terminal works in this folder, began after a time, and has lost its parent.

    What a person starts there from a shell, to look at the files, has a terminal or a parent.
    """
    if process.create_time() < since_s - CLOCK_S or not Path(process.cwd()).is_relative_to(folder.resolve()):
        return False
    parent = process.parent()
    orphaned = parent is None or parent.pid == 1 or parent.name() in FOSTERS
    return orphaned and process.terminal() is None
