"""The folders that steelyard writes to: a cache, which can be rebuilt, and the runs, which cannot."""

import contextlib
import os
from pathlib import Path

PRIVATE = 0o700


def cache_folder() -> Path:
    """Return the folder for environments, prepared data, weights and certificates."""
    return _folder("STEELYARD_CACHE", "user_cache_path")


def runs_folder() -> Path:
    """Return the folder that holds one folder per run."""
    return _folder("STEELYARD_RUNS", "user_data_path") / "runs"


def make_private(folder: Path) -> None:
    """Create a folder that only its user can read. OSError: it cannot be created.

    A folder that exists keeps its permissions if the user has chosen it; others may share it on purpose.
    """
    folder.mkdir(PRIVATE, parents=True, exist_ok=True)
    if folder in (_default("user_cache_path"), _default("user_data_path") / "runs"):
        with contextlib.suppress(OSError):  # a read-only disk
            folder.chmod(PRIVATE)


def _folder(variable: str, kind: str) -> Path:
    value = os.environ.get(variable)
    return Path(value).expanduser().absolute() if value else _default(kind)


def _default(kind: str) -> Path:
    import platformdirs

    path: Path = getattr(platformdirs, kind)("steelyard", appauthor=False)
    return path
