"""A lock for the runs of all users of a machine, with any caches: an empty file that all of them can open."""

import os
import platform
import stat
from pathlib import Path

from steelyard.host.kernel_lock import KernelLock

VARIABLE = "STEELYARD_LOCKS"
"""Names another folder for the file, such as one for each node of a cluster that is simulated on one machine; empty: no lock."""
# The same folder for every user, unlike that of TMPDIR.
FOLDERS = ("/run/lock", "/tmp")


def machine_lock() -> KernelLock:
    """Return the lock of this machine, which is not taken yet."""
    return KernelLock(_opened)


def _opened() -> int | None:
    """Open the file, and create it if it is missing. None: this is impossible, or something else lies there."""
    folder = _folder()
    if folder is None:
        return None
    path = folder / f"steelyard-{platform.node() or 'this-machine'}.lock"
    existing = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK
    # In such a folder, Linux refuses to open another user's file with O_CREAT, so an existing file is opened without it.
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
