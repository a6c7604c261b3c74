"""A lock that the runs of all users of a machine share, whatever their caches are: an empty file that all of them can open."""

import os
import platform
import stat
import time
from pathlib import Path

VARIABLE = "STEELYARD_LOCKS"
"""Names another folder for the file, such as one for each node of a cluster that is simulated on one machine; empty: no lock."""
# The same for every user; the temporary folder that TMPDIR names is not.
FOLDERS = ("/run/lock", "/tmp")
RETRY_S = 0.02


class MachineLock:
    """Ends with the process, however that ends. A machine without such a folder, or without such locks, is free for everyone."""

    def __init__(self) -> None:
        self._file: int | None = None

    def acquire(self) -> bool:
        """Take the lock unless another process has it; returns whether none has."""
        if self._acquire():
            return True
        time.sleep(RETRY_S)  # who asks whether the lock is free has it for a moment
        return self._acquire()

    def _acquire(self) -> bool:
        try:
            import fcntl
        except ImportError:  # Windows
            return True
        file = _opened()
        if file is None:
            return True
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
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


def is_free() -> bool:
    """Report whether no process has the lock."""
    lock = MachineLock()
    found = lock.acquire()
    lock.release()
    return found


def _opened() -> int | None:
    """Open the file, which is made where it is missing. None: it cannot be, or is something else that someone put there."""
    folder = _folder()
    if folder is None:
        return None
    path = folder / f"steelyard-{platform.node() or 'this-machine'}.lock"
    existing = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK
    # In such a folder Linux lets nobody open another user's file with O_CREAT, so a file that exists is opened without it.
    for flags in (existing, existing | os.O_CREAT | os.O_EXCL, existing):
        try:
            file = os.open(path, flags, 0o666)
        except (FileNotFoundError, FileExistsError):
            continue
        except OSError:
            return None
        if flags & os.O_EXCL:
            os.fchmod(file, 0o666)  # others must be able to open it, whatever this user's umask
        if stat.S_ISREG(os.fstat(file).st_mode):
            return file
        os.close(file)
        return None
    return None


def _folder() -> Path | None:
    chosen = os.environ.get(VARIABLE)
    if chosen is not None:
        return Path(chosen).expanduser().absolute() if chosen else None
    return next((Path(each) for each in FOLDERS if _is_for_all(each)), None)


def _is_for_all(folder: str) -> bool:
    """Report whether all users can make files in a folder, and none can remove another's."""
    try:
        mode = os.stat(folder).st_mode  # noqa: PTH116
    except OSError:
        return False
    wanted = stat.S_ISVTX | stat.S_IWOTH
    return stat.S_ISDIR(mode) and mode & wanted == wanted
