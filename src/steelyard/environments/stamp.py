"""Two checks of an environment: a cheap one for every start, a thorough one for what installers promised."""

import csv
import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from steelyard.environments.interpreter import python_in


def stamp(folder: Path) -> str:
    """Hash of the interpreter and of every package file's name, size and time of change.

    It notices a file that was deleted, added, shortened or rewritten, and an exchanged or deleted base
    interpreter. It does not notice a changed bit that kept size and time, nor a changed system library.
    Byte-code caches do not count: Python writes them whenever it likes.
    """
    # Without pyvenv.cfg the interpreter would be the base one, and find other packages.
    settings = _file_facts((folder / "pyvenv.cfg").resolve())
    return stamp_of(python_in(folder), map(str, site_folders(folder)), settings)


def stamp_of(python: Path, folders: Iterable[str], *more: tuple[str, int, int]) -> str:
    """As `stamp`, for an interpreter somebody else made, whose package folders are `folders`."""
    listings = sorted(listing for folder in folders for listing in _listings(folder))
    told = repr((_file_facts(python.resolve()), more, listings))
    return hashlib.sha256(told.encode("utf-8", "surrogateescape")).hexdigest()


def site_folders(folder: Path) -> list[Path]:
    """The folders that hold a virtual environment's packages."""
    if os.name == "nt":
        return [folder / "Lib" / "site-packages"]
    # lib64 is usually a link to lib.
    return sorted({found.resolve() for found in folder.glob("lib*/python*/site-packages")})


def damage(folder: Path) -> str:
    """The first package file that is missing or has another size than its RECORD says, or nothing."""
    for site in site_folders(folder):
        for record in sorted(site.glob("*.dist-info/RECORD")):
            for name, size in _recorded(record):
                if found := _damage_of(site / name, size):
                    return f"{name} {found}"
    return ""


def _recorded(record: Path) -> Iterator[tuple[str, str]]:
    with record.open(encoding="utf-8", newline="") as stream:
        for row in csv.reader(stream):
            # Byte code comes and goes; the RECORD itself is listed without a size.
            if len(row) == 3 and not row[0].endswith(".pyc"):
                yield row[0], row[2]


def _damage_of(path: Path, size: str) -> str:
    try:
        actual = path.stat().st_size
    except OSError:
        return "is missing"
    if size and actual != int(size):
        return f"has {actual} bytes instead of {size}"
    return ""


def _file_facts(path: Path) -> tuple[str, int, int]:
    try:
        status = path.stat()
    except OSError:
        return str(path), 0, 0
    return str(path), status.st_size, status.st_mtime_ns


def _listings(folder: str) -> Iterator[tuple[str, list[tuple[str, int, int]]]]:
    """Each folder below with its files' (name, size, time of change): 10 us a file, mostly the system's."""
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        try:
            entries = os.scandir(here)
        except OSError:
            continue
        files = []
        with entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != "__pycache__":
                        waiting.append(entry.path)
                elif not entry.name.endswith(".pyc"):
                    status = entry.stat(follow_symlinks=False)
                    files.append((entry.name, status.st_size, status.st_mtime_ns))
        yield here, sorted(files)


def size_bytes(folder: Path) -> int:
    """Disk taken by a folder; a file linked more than once inside it counts once."""
    seen: set[tuple[int, int]] = set()
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            status = Path(parent, name).lstat()
            if (status.st_dev, status.st_ino) not in seen:
                seen.add((status.st_dev, status.st_ino))
                total += status.st_size
    return total
