"""One run at a time on a machine: two that compute at once disturb each other's times."""

import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from steelyard.files import atomic, paths

POLL_S = 0.5
OTHER = "another run"
WAITING = "Another steelyard run is using this machine, so this one waits until it has ended."
BESIDE = (
    "Another steelyard run is using this machine. Both disturb each other, and this one does not wait (--no-guard)."
)


@contextmanager
def turn(say: Callable[[str], None], wait: bool = True, name: str = "") -> Iterator[bool]:
    """Hold the lock of this user on this machine; yields whether it is held. It ends with the process, however that ends.

    If another process holds it, `say` gets a sentence; then this one waits, or without `wait` continues without the lock.
    `name`: of the run, for those who ask `holder`.
    """
    paths.make_private(paths.cache_folder())
    lock = FileLock(_lock_path())
    try:
        lock.acquire(timeout=0)
    except Timeout:
        say(WAITING if wait else BESIDE)
        if wait:
            lock.acquire(poll_interval=POLL_S)
    try:
        if lock.is_locked:
            atomic.write_text(_name_path(), name)
        yield lock.is_locked
    finally:
        lock.release()


def holder() -> str:
    """Return the name of the run that holds the lock of this machine, or `another run`; empty if none does."""
    lock = FileLock(_lock_path())
    try:
        with lock.acquire(timeout=0):
            return ""
    except Timeout:
        with suppress(OSError):  # a version without names may hold it
            return _name_path().read_text(encoding="utf-8") or OTHER
        return OTHER


def _lock_path() -> Path:
    """Return the lock's file; several machines may share a cache."""
    return paths.cache_folder() / f"run-on-{platform.node() or 'this-machine'}.lock"


def _name_path() -> Path:
    return _lock_path().with_suffix(".name")
