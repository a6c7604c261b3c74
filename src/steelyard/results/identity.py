"""The identity of the run in a folder, and the files of its record, which are merged, shared and compared byte by byte."""

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from steelyard.files import atomic
from steelyard.results import record, trials
from steelyard.results.record import RunRecord
from steelyard.results.run_folders import LOCK

SUFFIX_LENGTH = 8
PAGES = f"{Path(record.PAGE).stem}*{Path(record.PAGE).suffix}"


@dataclass(frozen=True)
class HeldRun:
    """A run in a folder. `files`: relative path -> size in bytes of every file of its record. Pages are not part of it."""

    folder: Path
    known: RunRecord
    files: Mapping[str, int]

    @cached_property
    def identity(self) -> str:
        """The identity: it stays the same when the run is continued, copied or renamed (16 hexadecimal digits)."""
        known = self.known
        if is_identity(known.identity):
            return known.identity
        # Records without one were written by versions that could not merge. Their names may have changed since.
        return atomic.key(known.created, known.command, known.machine, known.worker_hash)

    @property
    def name(self) -> str:
        """The original name of the run."""
        return self.folder.name.removesuffix(self.suffix)

    @property
    def suffix(self) -> str:
        """The text that is appended to the name if another run has the same name."""
        return f"-{self.identity[:SUFFIX_LENGTH]}"

    @cached_property
    def progress(self) -> tuple[int, int]:
        """The number of files of measured processes and the bytes of all files: both grow while a run goes on."""
        return sum(path.startswith(f"{trials.FOLDER}/") for path in self.files), sum(self.files.values())

    @cached_property
    def digest(self) -> str:
        """Hash of the names and contents of all files of the record. OSError: one cannot be read."""
        found = hashlib.sha256()
        for path in self.files:
            with (self.folder / path).open("rb") as file:
                found.update(f"{path}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
        return found.hexdigest()

    def is_later_than(self, other: "HeldRun") -> bool:
        """Report whether this is a later state of the same run. Of two copies that continued separately, one is always chosen."""
        return (*self.progress, self.digest) > (*other.progress, other.digest)


def held(folder: Path) -> HeldRun:
    """Return the run in a folder. UnreadableRun: its run.json cannot be used; OSError: the folder cannot be read."""
    return HeldRun(folder, record.read(folder), files_of(folder))


def files_of(folder: Path) -> dict[str, int]:
    """Return {relative path: size in bytes} of the files of a record, sorted. Links are not followed."""
    return dict(sorted(_walked(folder, "")))


def is_identity(text: str) -> bool:
    """Report whether a text can be an identity, which becomes a part of folder names."""
    return re.fullmatch("[0-9a-f]{8,64}", text) is not None


def is_of_record(path: str) -> bool:
    """Report whether a relative path can belong to a record: no page, no lock, nothing hidden, nothing outside the folder."""
    pure = PurePosixPath(path)
    hidden = any(part.startswith(".") for part in pure.parts)
    beside = len(pure.parts) == 1 and (path == LOCK or pure.match(PAGES))
    return bool(path) and not (hidden or beside or pure.is_absolute() or "\\" in path or "\0" in path)


def _walked(folder: Path, prefix: str) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            path = f"{prefix}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                found += _walked(Path(entry.path), f"{path}/")
            elif entry.is_file(follow_symlinks=False) and is_of_record(path):
                found.append((path, entry.stat(follow_symlinks=False).st_size))
    return found
