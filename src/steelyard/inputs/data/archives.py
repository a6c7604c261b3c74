"""The files of a folder or a tar archive, one after the other: read into memory, never unpacked by name."""

from __future__ import annotations

import os
import tarfile
import zlib
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from steelyard.errors import UserError

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

# The largest official member is one CIFAR batch of 31 MB; what claims much more is not ours to read.
MAX_MEMBER_BYTES = 1 << 28


def read_members(path: Path, wanted: re.Pattern[str]) -> Iterator[tuple[str, bytes]]:
    """Yield (name with forward slashes, content) of every regular file whose name matches `wanted`.

    A folder is read in sorted order, an archive in its own. UserError where an archive is cut short, damaged,
    or holds a name that points outside it.
    """
    if path.is_dir():
        for name in list_files(path, wanted):
            yield name, (path / name).read_bytes()
        return
    try:
        with tarfile.open(path, "r|*") as archive:
            yield from _archive_members(path, archive, wanted)
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise UserError(
            f"{path} is damaged or cut short ({error}); fetch it again and compare its size and checksum."
        ) from error


def list_files(folder: Path, wanted: re.Pattern[str]) -> list[str]:
    """Return the matching names under a folder, sorted, with forward slashes."""
    return sorted(walk_files(folder, wanted))


def walk_files(folder: Path, wanted: re.Pattern[str]) -> Iterator[str]:
    """Yield the same names folder by folder, always in the same order; one folder's names are held at a time."""
    for parent, folders, files in os.walk(folder):
        folders.sort()
        prefix = Path(parent).relative_to(folder).as_posix()
        names = (file if prefix == "." else f"{prefix}/{file}" for file in sorted(files))
        yield from (name for name in names if wanted.search(name))


def _archive_members(path: Path, archive: tarfile.TarFile, wanted: re.Pattern[str]) -> Iterator[tuple[str, bytes]]:
    for member in archive:
        _check_member(path, member)
        if member.isfile() and wanted.search(member.name):
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
            f"{path} holds '{member.name}', which points outside the archive or is no plain file; "
            "it is not an official archive, so nothing was read from it."
        )
    if member.size > MAX_MEMBER_BYTES:
        raise UserError(
            f"{path} holds '{member.name}' of {member.size:,} bytes, larger than any official file; not read."
        )
