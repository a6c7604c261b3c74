"""Find and end processes that outlive the one that started them, also in sessions of their own, by what they inherit.

A process with another session and another parent cannot be found through groups or parents. But it
keeps its initial environment variables and its working folder.
"""

import contextlib
import math
import os
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass

import psutil

# The variable that names the temporary folder of a process; every process of a trial gets a new one.
VARIABLE = "TMPDIR"
# Programs that adopt processes whose parent has ended, in addition to process 1.
FOSTERS = ("systemd", "init")
POLL_S = 0.05
# Ended processes may have started others at the last moment.
MOST_SCANS = 5


@dataclass(frozen=True)
class Origin:
    """The properties that all processes of one start inherit, unless they change them.

    `session`: the process number of the first one, which leads a session. `temporary`: the temporary folder of these processes
    alone; empty: they have none. `folder`: in which they work; empty: others work there, too. `since_s`: when the first one was
    started, in seconds since 1970.
    """

    session: int
    temporary: str
    folder: str
    since_s: float


def origin(pid: int, temporary: str, folder: str) -> Origin:
    """Return the origin of the processes that a process will start. It has just been started and was not waited for yet."""
    try:
        since_s = psutil.Process(pid).create_time()
    except psutil.Error:
        since_s = math.inf
    return Origin(pid, temporary, folder, since_s)


def origin_of(pid: int) -> Origin:
    """Return the origin of the processes that a living process has started. Raises psutil.Error: it is not alive."""
    process = psutil.Process(pid)
    return Origin(os.getsid(pid), process.environ().get(VARIABLE, ""), process.cwd(), process.create_time())


def living(origin: Origin) -> list[psutil.Process]:
    """Return the processes of this origin that are alive, and their descendants, without the first one.

    It looks at every process of the machine, which takes about 5 ms for a hundred.
    """
    found: dict[int, psutil.Process] = {}
    for pid in psutil.pids():
        with contextlib.suppress(psutil.Error, OSError):
            if _inherits(pid, origin):
                each = psutil.Process(pid)
                found |= {one.pid: one for one in (each, *each.children(recursive=True)) if _is_alive(one)}
    return [each for pid, each in found.items() if pid not in (os.getpid(), origin.session)]


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


def _inherits(pid: int, origin: Origin) -> bool:
    """Return whether a process has this origin. For other users' processes this is unknown, and they count as others."""
    if os.getsid(pid) == origin.session:
        return True
    if origin.temporary and _temporary(pid, origin.temporary):
        return True
    return bool(origin.folder) and _is_in(pid, os.path.realpath(origin.folder)) and _was_orphaned(pid, origin.since_s)


def _temporary(pid: int, folder: str) -> bool:
    """Return whether a process began with this temporary folder.

    Linux is asked directly, here and below: through psutil, looking at every process takes ten times as long.
    """
    if sys.platform == "linux":
        return os.fsencode(f"\0{VARIABLE}={folder}\0") in b"\0" + _environ(pid)
    return psutil.Process(pid).environ().get(VARIABLE) == folder


def _is_in(pid: int, folder: str) -> bool:
    """Return whether a process works in a folder or below it."""
    found = os.readlink(f"/proc/{pid}/cwd") if sys.platform == "linux" else psutil.Process(pid).cwd()  # noqa: PTH115
    return f"{found}{os.sep}".startswith(folder.rstrip(os.sep) + os.sep)


def _was_orphaned(pid: int, since_s: float) -> bool:
    """Return whether a process without a terminal began after a time, and has lost its parent.

    Programs that a person starts in a shell in the folder of a trial have a terminal or a parent.
    """
    process = psutil.Process(pid)
    parent = process.parent()
    orphaned = parent is None or parent.pid == 1 or parent.name() in FOSTERS
    return orphaned and process.terminal() is None and process.create_time() >= since_s


def _environ(pid: int) -> bytes:
    file = os.open(f"/proc/{pid}/environ", os.O_RDONLY)
    try:
        found = b""
        while part := os.read(file, 1 << 16):
            found += part
        return found
    finally:
        os.close(file)
