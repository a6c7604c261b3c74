"""The caches for tests of real frameworks, and what a session must not find there."""

from __future__ import annotations

import contextlib
import itertools
import re
import shutil
import time
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

if TYPE_CHECKING:
    from pathlib import Path


def free_cache(users: Path) -> tuple[Path, FileLock]:
    """Return a cache for tests, in the user's, that no other session uses, and its lock, which is held."""
    for number in itertools.count(1):
        folder = users / "tests" / f"cache-{number}"
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder.with_suffix(".lock"))
        with contextlib.suppress(Timeout):
            lock.acquire(timeout=0)
            return folder, lock
    raise AssertionError


def renew(folder: Path, code: str, environments: Path) -> None:
    """Remove what this session must not use: certificates, and all that other code has made."""
    folder.mkdir(exist_ok=True)
    (folder / "environments").unlink(missing_ok=True)  # a link
    noted = folder / "code"
    same = noted.is_file() and noted.read_text(encoding="utf-8") == code
    for each in folder.iterdir():
        if each.is_dir() and (each.name == "certificates" or not same):
            shutil.rmtree(each, ignore_errors=True)
    noted.write_text(code, encoding="utf-8")
    environments.mkdir(parents=True, exist_ok=True)
    (folder / "environments").symlink_to(environments, target_is_directory=True)


def remove_older_caches(folder: Path) -> None:
    """Remove the caches of earlier versions of these tests, one for each state of the code, that were not used for a day."""
    for each in folder.iterdir():
        if re.fullmatch("[0-9a-f]{16}", each.name) and time.time() - each.stat().st_mtime > 86_400:
            (each / "environments").unlink(missing_ok=True)
            shutil.rmtree(each, ignore_errors=True)
