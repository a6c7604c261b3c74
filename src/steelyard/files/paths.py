"""The folders that steelyard writes to: a cache, which can be rebuilt, and the runs, which cannot."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return the folder for environments, prepared data, weights and certificates."""
    return _folder("STEELYARD_CACHE", "user_cache_path")


def runs_folder() -> Path:
    """Return the folder that holds one folder per run."""
    return _folder("STEELYARD_RUNS", "user_data_path") / "runs"


def _folder(variable: str, kind: str) -> Path:
    if value := os.environ.get(variable):
        return Path(value).expanduser().absolute()
    import platformdirs

    path: Path = getattr(platformdirs, kind)("steelyard", appauthor=False)
    return path
