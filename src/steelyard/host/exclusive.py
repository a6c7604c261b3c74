"""Turns on this machine: timed work has it alone, because programs that compute at once disturb each other's times.

Work that is not timed, such as certification, shares a turn with other such work. It waits for timed work, and timed work
waits for it.
"""

import math
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from steelyard.errors import UserError
from steelyard.files import paths
from steelyard.host import holders
from steelyard.host.kernel_lock import KernelLock
from steelyard.host.machine_lock import machine_lock

POLL_S = 0.5
OTHER = "another run"
# For an unknown holder: it left no readable note, and the system does not name its process.
UNKNOWN = "another steelyard command, of another user or with another cache folder"
IN_USE = "This machine is in use by {}."
WAITING = IN_USE + " This command waits until it is free{}."
BESIDE = IN_USE + " Both disturb each other, and this one does not wait (--no-guard)."
REFUSED = IN_USE + " This command was told not to wait, so nothing was done."
TOO_LONG = IN_USE + " It was not free within {} (--wait), so nothing was done."


class Busy(UserError):
    """Others have the turn, and the user's limit of waiting is over."""


class StoppedWaiting(KeyboardInterrupt):
    """The user has stopped a command that waited for its turn, so it has done nothing yet."""


@dataclass(frozen=True)
class Patience:
    """How long to wait for a turn; 0: not at all. `beside`: continue without a turn instead of waiting."""

    limit_s: float = math.inf
    beside: bool = False


@contextmanager
def use(
    say: Callable[[str], None],
    patience: Patience | None = None,
    name: str = "",
    command: str = "",
    of_machine: bool = True,
    shared: bool = False,
) -> Iterator[bool]:
    """Take a turn of this machine; yields whether this process has it. The turn ends with the process in any case.

    There are two locks: of the commands with the same cache, and of all others. If others have one, `say` gets a sentence that
    names them. `name`, `command`: of the run, for messages of others. `of_machine`: if false, commands with other caches do not
    matter. `shared`: others that share may have a turn, too. Busy: others have it for longer than the patience lasts.
    StoppedWaiting: Ctrl-C while this process waits.
    """
    paths.make_private(paths.cache_folder())
    locks = [_cache_lock(), *([machine_lock()] if of_machine else [])]
    try:
        alone = _taken(locks, shared) or _waited_for(locks, shared, say, patience or Patience())
        with holders.noted(command, name):
            yield alone
    finally:
        for lock in locks:
            lock.release()


def _taken(locks: list[KernelLock], shared: bool) -> bool:
    """Take all locks, or none."""
    for lock in locks:
        if not lock.acquire(shared):
            for each in locks:
                each.release()
            return False
    return True


def _waited_for(locks: list[KernelLock], shared: bool, say: Callable[[str], None], patience: Patience) -> bool:
    """Take all locks as soon as they are free; returns whether they were taken."""
    if patience.beside:
        say(BESIDE.format(_who()))
        for lock in locks:  # take free locks meanwhile, even if others are not free, so that nobody else takes them
            lock.acquire(shared)
        return False
    if not patience.limit_s:
        raise Busy(REFUSED.format(_who()))
    limit = "" if math.isinf(patience.limit_s) else f", for {_minutes(patience.limit_s)} at most"
    end_s, said = time.monotonic() + patience.limit_s, ""
    try:
        while not _taken(locks, shared):
            if (who := _who()) != said:
                say(WAITING.format(who, limit))
                said = who
            if time.monotonic() >= end_s:
                raise Busy(TOO_LONG.format(who, _minutes(patience.limit_s)))
            time.sleep(min(POLL_S, max(0.0, end_s - time.monotonic())))
    except KeyboardInterrupt:
        raise StoppedWaiting from None
    return True


def holder() -> str:
    """Return the name of the run that has a turn of this machine, or `another run`; empty if none has."""
    if _cache_lock().is_free():
        return "" if machine_lock().is_free() else OTHER
    return next((each.name for each in holders.of_cache() if each.name), OTHER)


def _who() -> str:
    """Return a description of who has a turn."""
    noted = holders.of_cache()
    known = {os.getpid(), *(each.process for each in noted)}
    locked = [number for lock in (_cache_lock(), machine_lock()) for number in lock.processes()]
    found = [*noted, *holders.of_processes([number for number in locked if number not in known])]
    return " and ".join(each.title for each in found) or UNKNOWN


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:g} {'minute' if seconds == 60 else 'minutes'}"


def _cache_lock() -> KernelLock:
    return KernelLock(_opened)


def _opened() -> int | None:
    try:
        return os.open(_lock_path(), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        return None


def _lock_path() -> Path:
    """Return the lock's file; several machines may share a cache."""
    return paths.cache_folder() / f"run-on-{platform.node() or 'this-machine'}.lock"
