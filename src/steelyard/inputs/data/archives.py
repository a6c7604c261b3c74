"""Read the files of a folder or a tar archive one after the other. Archives are read in memory, never unpacked to disk."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zlib
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from steelyard.errors import UserError
from steelyard.inputs.data.damage import DOWNLOAD, check_regular, refusing, too_large
from steelyard.inputs.data.layouts import UNKNOWN

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator

    from _typeshed import WriteableBuffer

    from steelyard.inputs.data.inventory import Inventory
    from steelyard.inputs.data.source import Source

# The largest official member is a CIFAR batch of 31 MB. A much larger member is not official, and could fill the memory.
MAX_MEMBER_BYTES = 1 << 28

# Reasons for which what lies in a folder is not read, whatever the reader.
HIDDEN = "hidden files and folders"
EMPTY = "empty folders"
AGAIN = "links to a folder that holds them"
OTHER = "files that are not part of the layout"


def read_members(
    source: Source, pattern: re.Pattern[str], inventory: Inventory | None = None, names: Iterable[str] | None = None
) -> Iterator[tuple[str, bytes]]:
    """Yield (name with forward slashes, content) of every regular file of a source whose name matches `pattern`.

    `inventory` counts the members of an archive without a known checksum that are not read. `names`: of a folder, only these.

    A folder is read in sorted order, an archive in its own order. UserError: a file is too large, or an archive is truncated or
    damaged, holds a name that points outside it, or unpacks to more than its layout allows.
    """
    path = source.path
    if path.is_dir():
        for name in list_files(path, pattern) if names is None else names:
            check_regular(path / name, MAX_MEMBER_BYTES)
            yield name, (path / name).read_bytes()
        return
    with (
        refusing(
            f"{path} is damaged or truncated",
            tarfile.TarError,
            EOFError,
            zlib.error,
            OSError,
            remedy=source.layout.remedy,
        ),
        unpacked(source) as stream,
        tarfile.open(fileobj=stream, mode="r|") as archive,
    ):
        yield from _archive_members(source, archive, pattern, inventory)


@contextmanager
def unpacked(source: Source) -> Iterator[io.BufferedReader]:
    """Open a gzip file for reading. Reading more than its layout allows to unpack raises UserError, so that memory, disk and time
    stay bounded whatever the file holds.
    """
    with gzip.open(source.path) as content:
        yield io.BufferedReader(_Limited(content, source.path, source.layout.unpacked))


class _Limited(io.RawIOBase):
    """A stream that ends with a UserError after a number of bytes."""

    def __init__(self, stream: gzip.GzipFile, path: Path, most_bytes: int) -> None:
        self._stream, self._path, self._most_bytes, self._read_bytes = stream, path, most_bytes, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        count = self._stream.readinto(buffer)
        self._read_bytes += count
        if self._read_bytes > self._most_bytes:
            raise UserError(
                f"{self._path} unpacks to more than {self._most_bytes:,} bytes, far more than the official file does; {DOWNLOAD}."
            )
        return count


def list_files(folder: Path, pattern: re.Pattern[str]) -> list[str]:
    """Return the matching names under a folder, sorted, with forward slashes. Hidden files and folders are not read."""
    return sorted(walk_files(folder, pattern))


def walk_files(folder: Path, pattern: re.Pattern[str]) -> Iterator[str]:
    """Yield the same names folder by folder in a fixed order, with the names of only one folder in memory at a time."""
    return (name for name, reason in walk(folder) if not reason and pattern.search(name))


def walk(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield everything under a folder: (name, "") of a file, or (name, the reason why no reader takes it).

    Folders behind links are entered, as the readers enter them, unless they hold the link, so a circle of links ends. Names of
    folders end in a slash. UserError: a folder cannot be read.
    """
    above: dict[
        str, frozenset[str]
    ] = {}  # folder that is still to be entered -> where it and those above it really are
    for parent, folders, files in os.walk(folder, followlinks=True, onerror=_unreadable):
        prefix = "" if Path(parent) == folder else f"{Path(parent).relative_to(folder).as_posix()}/"
        place, holders = os.path.realpath(parent), above.pop(parent, frozenset())
        if place in holders:
            folders.clear()
            yield prefix, AGAIN
            continue
        if not files and not folders and prefix:
            yield prefix, EMPTY
        yield from ((f"{prefix}{name}", HIDDEN if is_hidden(name) else "") for name in sorted(files))
        yield from ((f"{prefix}{name}/", HIDDEN) for name in sorted(filter(is_hidden, folders)))
        folders[:] = sorted(name for name in folders if not is_hidden(name))
        above |= dict.fromkeys((os.path.join(parent, name) for name in folders), holders | {place})  # noqa: PTH118 - as `os.walk`


def is_hidden(name: str) -> bool:
    """Report whether programs keep a file or folder for themselves, such as `.ipynb_checkpoints`, `._0.png` or `__MACOSX`."""
    return name.startswith(".") or name == "__MACOSX"


def _unreadable(error: OSError) -> None:
    raise UserError(f"{error.filename} cannot be read ({error.strerror}); allow reading it, or remove it.")


def _archive_members(
    source: Source, archive: tarfile.TarFile, pattern: re.Pattern[str], inventory: Inventory | None
) -> Iterator[tuple[str, bytes]]:
    for member in archive:
        _check_member(source.path, member)
        reason = HIDDEN if any(map(is_hidden, PurePosixPath(member.name).parts)) else ""
        if not member.isfile():
            continue
        if reason or not pattern.search(member.name):
            if inventory and source.verified == UNKNOWN:
                inventory.leave_out(reason or OTHER, member.name)
        else:
            stream = archive.extractfile(member)
            content = stream.read() if stream else b""
            if len(content) != member.size:
                message = f"{member.name} ends early"
                raise EOFError(message)
            yield member.name, content


def _check_member(path: Path, member: tarfile.TarInfo) -> None:
    name = PurePosixPath(member.name)
    if name.is_absolute() or ".." in name.parts or not (member.isfile() or member.isdir()):
        raise UserError(
            f"{path} holds '{member.name}', which points outside the archive or is not a regular file. "
            "No official archive does; download it again."
        )
    if member.size > MAX_MEMBER_BYTES:
        raise too_large(f"{path}: {member.name}", member.size, MAX_MEMBER_BYTES)
