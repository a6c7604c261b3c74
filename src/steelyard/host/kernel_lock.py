"""A lock on a file, kept by the kernel: exclusive or shared. It ends with the process."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from steelyard.host.system import read

LOCKS = Path("/proc/locks")
RETRY_S = 0.02


class KernelLock:
    """A lock on one file. Without the file, or on a system without such locks, it counts as free."""

    def __init__(self, opened: Callable[[], int | None]) -> None:
        """`opened`: returns a descriptor of the file; None: there is none."""
        self._opened = opened
        self._file: int | None = None

    def acquire(self, shared: bool = False) -> bool:
        """Take the lock unless another process has it; returns whether none has. `shared`: others may share it."""
        if self._acquire(shared):
            return True
        time.sleep(RETRY_S)  # a process that tests the lock has it for a moment
        return self._acquire(shared)

    def _acquire(self, shared: bool) -> bool:
        try:
            import fcntl
        except ImportError:  # Windows
            return True
        file = self._opened()
        if file is None:
            return True
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError as error:  # held, or on a file system that has no locks
            os.close(file)
            return not isinstance(error, BlockingIOError)
        self._file = file
        return True

    def release(self) -> None:
        """Free the lock, if it was taken."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def is_free(self) -> bool:
        """Report whether no process has the lock, exclusive or shared."""
        free = self.acquire()
        self.release()
        return free

    def processes(self) -> list[int]:
        """Return the ids of the processes that have the lock, as far as the kernel tells; none on other systems than Linux."""
        file = self._opened()
        if file is None:
            return []
        try:
            inode = os.fstat(file).st_ino
        finally:
            os.close(file)
        # 1: FLOCK ADVISORY WRITE 4711 fe:00:2146339 0 EOF; a process that waits has an arrow behind its number.
        lines = [line.split() for line in read(LOCKS).splitlines()]
        held = [words for words in lines if len(words) > 5 and words[1] == "FLOCK" and words[5].endswith(f":{inode}")]
        return [int(words[4]) for words in held if words[4].isdigit() and words[4] != "0"]
