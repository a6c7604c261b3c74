"""One run at a time on a machine: two that compute at once disturb each other's times."""

import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from steelyard.files import atomic, paths
from steelyard.host import machine_lock
from steelyard.host.machine_lock import MachineLock

POLL_S = 0.5
OTHER = "another run"
WHO = "Another steelyard run"
# Whose it is cannot be told: no name of theirs is in a file that all can read.
WHO_ELSE = "A steelyard run of another user, or with another cache folder,"
WAITING = "{} is using this machine, so this one waits until it has ended."
BESIDE = "{} is using this machine. Both disturb each other, and this one does not wait (--no-guard)."


@contextmanager
def use(say: Callable[[str], None], wait: bool = True, name: str = "", of_machine: bool = True) -> Iterator[bool]:
    """Hold the locks of this machine; yields whether they are held. They end with the process, however that ends.

    One is that of the runs with the same cache, the other that of all others. If another process holds one, `say` gets a
    sentence; then this one waits, or without `wait` continues without the lock. `name`: of the run, for those who ask `holder`.
    `of_machine`: without it runs with other caches do not matter.
    """
    paths.make_private(paths.cache_folder())
    lock, others = FileLock(_lock_path()), MachineLock()
    sentence = WAITING if wait else BESIDE
    try:
        lock.acquire(timeout=0)
    except Timeout:
        say(sentence.format(WHO))
        if wait:
            lock.acquire(poll_interval=POLL_S)
    try:
        alone = lock.is_locked
        if alone and of_machine:
            atomic.write_text(_name_path(), "")  # while this run waits, `holder` names neither it nor the one before it
            alone = others.acquire()
            if not alone:
                say(sentence.format(WHO_ELSE))
                alone = wait and _waited_for(others)
        if lock.is_locked:
            atomic.write_text(_name_path(), name)
        yield alone
    finally:
        others.release()
        lock.release()


def _waited_for(lock: MachineLock) -> bool:
    while not lock.acquire():
        time.sleep(POLL_S)
    return True


def holder() -> str:
    """Return the name of the run that holds a lock of this machine, or `another run`; empty if none does."""
    lock = FileLock(_lock_path())
    try:
        with lock.acquire(timeout=0):
            return "" if machine_lock.is_free() else OTHER
    except Timeout:
        with suppress(OSError):  # a version without names may hold it
            return _name_path().read_text(encoding="utf-8") or OTHER
        return OTHER


def _lock_path() -> Path:
    """Return the lock's file; several machines may share a cache."""
    return paths.cache_folder() / f"run-on-{platform.node() or 'this-machine'}.lock"


def _name_path() -> Path:
    return _lock_path().with_suffix(".name")
