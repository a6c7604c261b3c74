"""Folders of the cache that are whole or absent: filled under another name, locked, then renamed."""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from steelyard.errors import UserError
from steelyard_worker import tensors

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def key(*parts: Any) -> str:
    """Return 20 hexadecimal digits that name the JSON form of the parts."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def is_whole(folder: Path) -> bool:
    """Say whether a tensors folder can be read and its flat file is as long as its index promises."""
    try:
        tensors.read(folder)
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return True


def place(folder: Path, fill: Callable[[Path], None]) -> Path:
    """Return `folder`; if it is not whole, `fill(partial folder)` first, under a lock, and rename.

    A partial folder found while the lock is held was left by a killed process and is removed.
    """
    if is_whole(folder):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(folder.name + ".lock")):
            if not is_whole(folder):
                _fill(folder, fill)
    except OSError as error:
        raise _explained(error, folder) from error
    return folder


def _fill(folder: Path, fill: Callable[[Path], None]) -> None:
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
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return UserError(
            f"The disk is full while writing {folder}; free some space, or set STEELYARD_CACHE to a folder "
            "on a larger disk."
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return UserError(f"{error.filename or folder} is not accessible ({error.strerror}); check its permissions.")
    return error
