"""Set-up of an environment over `python -m venv` and pip, side by side, interleaved.

The counterpart installs the same pins with pip's own cache warm and, as pip does by itself, compiles byte
code; ours leaves that to the first import. The framework is the smallest that has a lock, which favours
neither: both ways take a time that grows with its files.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.rows import Row
from steelyard.environments import EnvironmentSpec, ensure, plan_environments, read_locks
from steelyard.environments.execution import Log, remove_folder
from steelyard.environments.install import Filling, install
from steelyard.environments.pip_settings import read_settings
from steelyard.environments.progress import quiet
from steelyard.environments.tools import Pip

PAIRS = 3


def measure() -> list[Row]:
    """Seconds of our ways over seconds of venv and pip: medians of three interleaved pairs."""
    spec = smallest()
    with tempfile.TemporaryDirectory() as folder:
        before = os.environ.get("STEELYARD_CACHE")
        os.environ["STEELYARD_CACHE"] = folder
        try:
            return rows(spec, Path(folder))
        finally:
            if before is None:
                del os.environ["STEELYARD_CACHE"]
            else:
                os.environ["STEELYARD_CACHE"] = before


def smallest() -> EnvironmentSpec:
    """The tried environment that takes the least disk."""
    locks = [lock for lock in read_locks() if not lock.untested]
    name = min(locks, key=lambda lock: lock.installed_bytes).framework
    spec = plan_environments([name])[name]
    assert isinstance(spec, EnvironmentSpec)
    return spec


def rows(spec: EnvironmentSpec, folder: Path) -> list[Row]:
    """Measure all ways in turn."""
    ensure(spec)
    with_pip(spec, folder / "pip")  # warms pip's cache, as uv's is warm by now
    reuse, remake, pip = [], [], []
    for _ in range(PAIRS):
        reuse.append(seconds(lambda: ensure(spec)))
        remake.append(seconds(lambda: install(spec, folder / "again", quiet)))
        pip.append(seconds(lambda: with_pip(spec, folder / "pip")))
    detail = f"{spec.framework}, medians of {PAIRS}: venv + pip {statistics.median(pip):.2f} s"
    return [
        row("set-up of a cached environment (verified) over venv + pip", reuse, pip, detail),
        row("making an environment from cached packages over venv + pip", remake, pip, detail),
    ]


def with_pip(spec: EnvironmentSpec, folder: Path) -> None:
    """The way without steelyard and uv."""
    log = Log(folder.with_suffix(".log"))
    log.begin()
    remove_folder(folder)
    tool = Pip(read_settings())
    tool.create(folder, spec.python_version, log)
    Filling(spec.name, spec.lock, folder, log, quiet).fill(tool)


def seconds(work: Callable[[], object]) -> float:
    """Wall-clock time of one call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def row(name: str, ours: list[float], pip: list[float], detail: str) -> Row:
    """The ratio of the medians, at most 0.2."""
    median = statistics.median(ours)
    return Row(name, median / statistics.median(pip), 0.2, "at most", f"{detail}, ours {median:.2f} s")


if __name__ == "__main__":
    for found in measure():
        sys.stdout.write(f"{found.name}: {found.value:.3f} (at most {found.limit}); {found.detail}\n")
