"""Where steelyard keeps things: caches that can be rebuilt, and runs that cannot."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Environments, prepared data, weights, certificates: all of it can be rebuilt."""
    return _folder("STEELYARD_CACHE", "user_cache_path")


def runs_folder() -> Path:
    """One folder per run: the record of what was measured."""
    return _folder("STEELYARD_RUNS", "user_data_path") / "runs"


def _folder(variable: str, kind: str) -> Path:
    if value := os.environ.get(variable):
        return Path(value).expanduser().absolute()
    import platformdirs

    path: Path = getattr(platformdirs, kind)("steelyard", appauthor=False)
    return path
