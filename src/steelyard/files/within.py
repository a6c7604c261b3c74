"""Writing and deleting below a folder that somebody else may have filled: no link in it leads out of it.

The folder itself may be reached through links: those are the user's own. What is deleted is reached with descriptors of folders,
each opened below the one before it, so it lies inside whatever anybody changes meanwhile. A process that is started with a path
opens it later than it was checked.
"""

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from steelyard.errors import UserError

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def check(root: Path, path: Path) -> Path:
    """Return a path below a folder. UserError: a part of it is a link, or something else where a folder is needed."""
    place = root
    *folders, last = path.relative_to(root).parts
    for part in folders:
        place /= part
        mode = _mode(place)
        if mode is None:
            return path
        if not stat.S_ISDIR(mode):
            raise _refused(place, mode)
    mode = _mode(place / last)
    if mode is not None and stat.S_ISLNK(mode):
        raise _refused(path, mode)
    return path


def check_file(path: Path) -> None:
    """Raise UserError where there is a link, or anything else that is no file, at the place of a file."""
    mode = _mode(path)
    if mode is not None and not stat.S_ISREG(mode):
        raise _refused(path, mode)


def remove(root: Path, path: Path) -> None:
    """Delete a folder below another, if it is there. UserError: its path leads through a link; OSError: it cannot be deleted."""
    check(root, path)
    with suppress(FileNotFoundError), _opened(root, path.parent) as parent:
        shutil.rmtree(path.name, dir_fd=parent)


def make(root: Path, path: Path) -> Path:
    """Create a folder below another, with those on the way. UserError: its path leads through a link."""
    place = root
    for part in path.relative_to(root).parts:
        with _opened(root, place) as parent, suppress(FileExistsError):
            os.mkdir(part, dir_fd=parent)
        place /= part
    with _opened(root, path):
        return path


def no_link(path: str, flags: int) -> int:
    """Open a file for `open(..., opener=no_link)`. OSError (ELOOP): it is a link."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def is_link_error(error: OSError) -> bool:
    """Report whether a file was not opened because it is a link."""
    return error.errno == errno.ELOOP


def refusal(path: Path) -> UserError:
    """Return the error of a path that is a link."""
    return UserError(
        f"{path} is a link, and what steelyard writes or deletes in a run's folder must lie inside it: remove the link, or put "
        "what it leads to in its place."
    )


def _mode(path: Path) -> int | None:
    try:
        return path.lstat().st_mode
    except FileNotFoundError:
        return None


def _refused(path: Path, mode: int) -> UserError:
    if stat.S_ISLNK(mode):
        return refusal(path)
    what, needed = ("a folder", "a file") if stat.S_ISDIR(mode) else ("not a folder", "a folder")
    if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
        what = "a pipe, a socket or a device"
    return UserError(f"{path} is {what}, where a run's folder has {needed}: remove it, or rename it.")


@contextmanager
def _opened(root: Path, folder: Path) -> Iterator[int]:
    """Yield the descriptor of a folder, reached from `root` without following a link. UserError: there is one on the way."""
    descriptor, place = os.open(root, os.O_RDONLY | os.O_DIRECTORY), root
    try:
        for part in folder.relative_to(root).parts:
            place /= part
            try:
                inner = os.open(part, FOLDER_FLAGS, dir_fd=descriptor)
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENOTDIR):
                    raise _refused(place, place.lstat().st_mode) from None
                raise
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)
