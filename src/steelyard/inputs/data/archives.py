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
from steelyard.inputs.data.damage import check_regular, refusing, too_large

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

    from _typeshed import WriteableBuffer

    from steelyard.inputs.data.source import Source

# The largest official member is a CIFAR batch of 31 MB. A much larger member is not official, and could fill the memory.
MAX_MEMBER_BYTES = 1 << 28


def read_members(source: Source, pattern: re.Pattern[str]) -> Iterator[tuple[str, bytes]]:
    """Yield (name with forward slashes, content) of every regular file of a source whose name matches `pattern`.

    A folder is read in sorted order, an archive in its own order. UserError: a file is too large, or an archive is truncated or
    damaged, holds a name that points outside it, or unpacks to more than its layout allows.
    """
    path = source.path
    if path.is_dir():
        for name in list_files(path, pattern):
            check_regular(path / name, MAX_MEMBER_BYTES)
            yield name, (path / name).read_bytes()
        return
    with (
        refusing(f"{path} is damaged or truncated", tarfile.TarError, EOFError, zlib.error, OSError),
        unpacked(source) as stream,
        tarfile.open(fileobj=stream, mode="r|") as archive,
    ):
        yield from _archive_members(path, archive, pattern)


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
                f"{self._path} unpacks to more than {self._most_bytes:,} bytes, far more than the official file does; download it"
                " again."
            )
        return count


def list_files(folder: Path, pattern: re.Pattern[str]) -> list[str]:
    """Return the matching names under a folder, sorted, with forward slashes."""
    return sorted(walk_files(folder, pattern))


def walk_files(folder: Path, pattern: re.Pattern[str]) -> Iterator[str]:
    """Yield the same names folder by folder in a fixed order, with the names of only one folder in memory at a time.

    Folders behind links are entered, as the readers enter them; each folder is entered once, so a circle of links ends.
    """
    entered = set()
    for parent, folders, files in os.walk(folder, followlinks=True):
        place = os.path.realpath(parent)
        if place in entered:
            folders.clear()
            continue
        entered.add(place)
        folders.sort()
        prefix = Path(parent).relative_to(folder).as_posix()
        names = (file if prefix == "." else f"{prefix}/{file}" for file in sorted(files))
        yield from (name for name in names if pattern.search(name))


def _archive_members(path: Path, archive: tarfile.TarFile, pattern: re.Pattern[str]) -> Iterator[tuple[str, bytes]]:
    for member in archive:
        _check_member(path, member)
        if member.isfile() and pattern.search(member.name):
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
