"""Files and folders that are either complete or absent: written under another name, then renamed.

A process that is killed while it writes leaves the old content, or nothing. A crash of the whole machine is not covered.
"""

import contextlib
import errno
import hashlib
import json
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock

from steelyard.errors import UserError, notice
from steelyard.files import full
from steelyard_worker import tensors

# File beside the data of a tensors folder: what identified the data when its content was last checked.
VERIFIED = "verified.json"


def write_bytes(path: Path, content: bytes) -> Path:
    """Write or replace one file in an existing folder; return its path.

    The temporary name is unique, so processes may write the same file at the same time: the last one to finish wins.
    """
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return path


def write_text(path: Path, text: str) -> Path:
    """Write or replace one UTF-8 text file, as `write_bytes` does. Line ends are written as they are."""
    return write_bytes(path, text.encode("utf-8"))


def key(*parts: Any) -> str:
    """Return a cache key of 20 hexadecimal digits: a hash of the JSON form of the parts."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


@contextmanager
def tensors_writer(folder: Path, meta: Mapping[str, Any]) -> Iterator[tensors.Writer]:
    """Yield a writer of a tensors folder, which can be read only if the block ends without an exception."""
    writer = tensors.Writer(folder, meta)
    try:
        yield writer
        writer.close()
    finally:
        writer.abandon()  # has no effect after `close`


def is_whole(folder: Path) -> bool:
    """Report whether a tensors folder can be read and its data file is as long as its index requires."""
    try:
        tensors.read(folder)
    except (OSError, ValueError):
        return False
    return True


def is_intact(folder: Path, say: Callable[[str], None] = notice) -> bool:
    """Report whether a tensors folder is whole and has the content that was written; `say` gets a sentence on a damaged one."""
    try:
        found = is_whole(folder) and _is_unchanged(folder)
    except FileNotFoundError:  # another process found it damaged, and is making it again
        return False
    if not found and folder.exists():
        say(f"{folder} was changed or damaged after it was written, so it is not used.")
    return found


def _is_unchanged(folder: Path) -> bool:
    """Report whether a whole folder has the content that was written.

    Reading everything takes long for large data, so what identified a data file that was checked is kept beside it.
    """
    stamp, path = _stamp(folder), folder / VERIFIED
    if path.is_file() and path.read_bytes() == stamp.encode():
        return True
    if not tensors.is_unchanged(folder):
        return False
    with contextlib.suppress(OSError):  # a cache that cannot be written is checked completely each time
        write_text(path, stamp)
    return True


def _stamp(folder: Path) -> str:
    """Return what identifies a data file without reading it, and the whole text of its index.

    A program can set a file's modification time, but not the time of its last change.
    """
    found = (folder / tensors.BYTES).stat()
    index = (folder / tensors.INDEX).read_text(encoding="utf-8")
    return json.dumps([found.st_size, found.st_mtime_ns, found.st_ino, found.st_ctime_ns, key(index)])


def place(folder: Path, fill: Callable[[Path], object]) -> Path:
    """Return the tensors folder `folder`. If it is absent or damaged, `fill(partial folder)` writes it, under a lock.

    A partial folder found while the lock is held was left by a killed process and is removed. UserError: the disk is full,
    or the folder is not accessible.
    """
    if is_intact(folder):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(folder.name + ".lock")):
            if not is_intact(folder, lambda _: None):  # it was named above
                _fill(folder, fill)
    except OSError as error:
        raise _explained(error, folder) from error
    return folder


def place_tensors(folder: Path, make: Callable[[], Mapping[str, Any]], meta: Mapping[str, Any]) -> Path:
    """Return the tensors folder `folder`; if it is incomplete or absent, it is written with the arrays of `make`."""
    return place(folder, lambda partial: tensors.write(partial, make(), meta))


def check_space(folder: Path, what: str, needed_bytes: int) -> None:
    """Fail now if the arrays would fill the disk later. UserError: the disk of a folder has less than `needed_bytes` left."""
    free_bytes = shutil.disk_usage(folder).free
    if needed_bytes > free_bytes:
        needed, free = (f"{count / 1e9:,.1f} GB" for count in (needed_bytes, free_bytes))
        raise UserError(
            f"{what} needs {needed}, but {folder.parent} has only {free} free; set STEELYARD_CACHE to a folder on a larger disk."
        )


def _fill(folder: Path, fill: Callable[[Path], object]) -> None:
    partial = folder.with_name(folder.name + ".partial")
    for stale in (partial, folder):
        shutil.rmtree(stale, ignore_errors=True)
    partial.mkdir()
    try:
        fill(partial)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _explained(error: OSError, folder: Path) -> Exception:
    if error.errno in full.ERRORS:
        return UserError(
            f"The disk is full while writing {folder}; free some space, or set STEELYARD_CACHE to a folder "
            "on a larger disk."
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return UserError(f"{error.filename or folder} is not accessible ({error.strerror}); check its permissions.")
    return error
