"""One run at a time on a machine: two that compute at once disturb each other's times."""

import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from filelock import FileLock, Timeout

from steelyard.files import paths

POLL_S = 0.5
WAITING = "Another steelyard run is using this machine, so this one waits until it has ended."
BESIDE = (
    "Another steelyard run is using this machine. Both disturb each other, and this one does not wait (--no-guard)."
)


@contextmanager
def turn(say: Callable[[str], None], wait: bool = True) -> Iterator[bool]:
    """Hold the lock of this user on this machine; yields whether it is held. It ends with the process, however that ends.

    If another process holds it, `say` gets a sentence; then this one waits, or without `wait` continues without the lock.
    """
    folder = paths.cache_folder()
    paths.make_private(folder)
    lock = FileLock(folder / f"run-on-{platform.node() or 'this-machine'}.lock")  # several machines may share a cache
    try:
        lock.acquire(timeout=0)
    except Timeout:
        say(WAITING if wait else BESIDE)
        if wait:
            lock.acquire(poll_interval=POLL_S)
    try:
        yield lock.is_locked
    finally:
        lock.release()
