"""The cache of environments: where each one is, its lock between processes."""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from steelyard.files.paths import cache_folder


def environments_folder() -> Path:
    """Return the folder that holds one folder per environment."""
    return cache_folder() / "environments"


def state_folder(python: Path) -> Path:
    """Return the folder for what is known of an interpreter, and for the byte code of its packages."""
    # The folder is resolved and the file is not: the interpreter of a virtual environment is a link.
    path = python.parent.resolve() / python.name
    return environments_folder() / "interpreters" / hashlib.sha256(os.fsencode(path)).hexdigest()[:16]


@contextmanager
def locked(folder: Path, report_waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lock of an environment's folder, so that two processes never change it at the same time."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder.with_name(f".{folder.name}.lock"))
    try:
        lock.acquire(timeout=0.3)
    except Timeout:
        report_waiting()
        lock.acquire(timeout=-1)
    try:
        yield
    finally:
        lock.release()


def python_in(folder: Path) -> Path:
    """Return the interpreter of a virtual environment."""
    return folder / "Scripts" / "python.exe" if os.name == "nt" else folder / "bin" / "python"


def site_folders(folder: Path) -> list[Path]:
    """Return the folders that hold a virtual environment's packages."""
    if os.name == "nt":
        return [folder / "Lib" / "site-packages"]
    # lib64 is usually a link to lib.
    return sorted({found.resolve() for found in folder.glob("lib*/python*/site-packages")})
