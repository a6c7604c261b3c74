"""Two checks of an environment: a fast one before every use, and a thorough one against the packages' own records."""

import csv
import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from steelyard.environments.folders import python_in, site_folders


def stamp(folder: Path) -> str:
    """Return a hash of the interpreter and of every package file's name, size and modification time.

    It changes when a file was deleted, added, shortened or rewritten, and when the base interpreter was
    replaced or deleted. It does not notice a flipped bit at the same size and time, nor a changed system library.
    Byte-code caches do not count, because Python writes them at any time.
    """
    # Without pyvenv.cfg the interpreter would be the base interpreter and find other packages.
    # Resolved, so that the stamp is the same through a symbolic link.
    settings = _file_facts((folder / "pyvenv.cfg").resolve())
    return stamp_of(python_in(folder), map(str, site_folders(folder)), settings)


def stamp_of(python: Path, folders: Iterable[str], *more: tuple[str, int, int]) -> str:
    """Return the same for any interpreter; `folders` are its package folders."""
    listings = sorted(listing for folder in folders for listing in _listings(folder))
    facts = repr((_file_facts(python.resolve()), more, listings))
    return hashlib.sha256(facts.encode("utf-8", "surrogateescape")).hexdigest()


def find_damage(folder: Path) -> str:
    """Return the first package file that is missing or whose size differs from its RECORD; empty when all are intact."""
    for site in site_folders(folder):
        for record in sorted(site.glob("*.dist-info/RECORD")):
            for name, size in _recorded(record):
                if found := _defect(site / name, size):
                    return f"{name} {found}"
    return ""


def _recorded(record: Path) -> Iterator[tuple[str, str]]:
    with record.open(encoding="utf-8", newline="") as stream:
        for row in csv.reader(stream):
            # Python rewrites byte code; the RECORD lists itself without a size.
            if len(row) == 3 and not row[0].endswith(".pyc"):
                yield row[0], row[2]


def _defect(path: Path, size: str) -> str:
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
    """Yield each folder below with its files' (name, size, modification time in ns); about 10 us per file."""
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
