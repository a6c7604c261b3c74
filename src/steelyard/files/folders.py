"""The size of a folder on the disk, and its removal."""

import errno
import os
import shutil
from pathlib import Path

# Errors of a file system that come from a name or a path, and not from the disk: other files can be written.
NAME_ERRORS = {
    errno.ENAMETOOLONG,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
    errno.ENOTEMPTY,
    errno.EINVAL,
    errno.EILSEQ,
    errno.ELOOP,
    errno.ENOENT,
}


def size_bytes(folder: Path) -> int:
    """Return the disk space of a folder or file; a file with several hard links inside it counts once."""
    if not folder.is_dir():
        return folder.lstat().st_size
    seen: set[tuple[int, int]] = set()
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            status = Path(parent, name).lstat()
            if (status.st_dev, status.st_ino) not in seen:
                seen.add((status.st_dev, status.st_ino))
                total += status.st_size
    return total


def remove_folder(folder: Path) -> None:
    """Delete a folder, under another name first: if the process is killed, no half of it looks complete.

    Of a symbolic link only the link is removed.
    """
    if folder.is_symlink():
        folder.unlink()
        return
    deleted = folder.with_name(f".{folder.name}.deleted")
    shutil.rmtree(deleted, ignore_errors=True)
    if folder.exists():
        folder.rename(deleted)
        shutil.rmtree(deleted)
