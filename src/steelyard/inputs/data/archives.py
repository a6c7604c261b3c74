"""Read the files of a folder or a tar archive one after the other. Archives are read in memory, never unpacked to disk."""

import os
import re
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from steelyard.errors import UserError
from steelyard.inputs.data.damage import refusing

# The largest official member is a CIFAR batch of 31 MB. A much larger member is not official, and could fill the memory.
MAX_MEMBER_BYTES = 1 << 28


def read_members(path: Path, pattern: re.Pattern[str]) -> Iterator[tuple[str, bytes]]:
    """Yield (name with forward slashes, content) of every regular file whose name matches `pattern`.

    A folder is read in sorted order, an archive in its own order. UserError: an archive is truncated or damaged, or holds
    a name that points outside it.
    """
    if path.is_dir():
        for name in list_files(path, pattern):
            yield name, (path / name).read_bytes()
        return
    with (
        refusing(f"{path} is damaged or truncated", tarfile.TarError, EOFError, zlib.error, OSError),
        tarfile.open(path, "r|*") as archive,
    ):
        yield from _archive_members(path, archive, pattern)


def list_files(folder: Path, pattern: re.Pattern[str]) -> list[str]:
    """Return the matching names under a folder, sorted, with forward slashes."""
    return sorted(walk_files(folder, pattern))


def walk_files(folder: Path, pattern: re.Pattern[str]) -> Iterator[str]:
    """Yield the same names folder by folder in a fixed order, with the names of only one folder in memory at a time."""
    for parent, folders, files in os.walk(folder):
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
        raise UserError(
            f"{path} holds '{member.name}' of {member.size:,} bytes, larger than any official file; download it again."
        )
