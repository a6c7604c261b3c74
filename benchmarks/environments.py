"""The time to set up an environment relative to `python -m venv` and pip, measured alternately.

venv and pip install the same pins from a warm cache. pip compiles byte code, which is its default; ours leaves that to the
first import. The framework is the smallest tested one. This favours neither side: the time of both grows with its files.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.rows import Row
from steelyard.environments import EnvironmentName, EnvironmentSpec, ensure, plan_environments, read_locks
from steelyard.environments.folders import python_in
from steelyard.environments.install import install
from steelyard.environments.progress import quiet
from steelyard.files.folders import remove_folder

PAIRS = 3


def measure() -> list[Row]:
    """Return the rows: our seconds relative to those of venv and pip, medians of three rounds in turn."""
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
    """Return the tested environment that needs the least disk space."""
    locks = [lock for lock in read_locks() if not lock.untested]
    name = min(locks, key=lambda lock: lock.installed_bytes).framework
    spec = plan_environments([EnvironmentName(name)])[name]
    assert isinstance(spec, EnvironmentSpec)
    return spec


def rows(spec: EnvironmentSpec, folder: Path) -> list[Row]:
    """Return the rows of one environment; all variants are measured in turn."""
    python = ensure(spec).python
    with_pip(python, spec, folder / "pip")  # warms pip's cache; uv's is already warm
    reused, recreated, pip = [], [], []
    for _ in range(PAIRS):
        reused.append(seconds(lambda: ensure(spec)))
        recreated.append(seconds(lambda: install(spec, folder / "again", quiet)))
        pip.append(seconds(lambda: with_pip(python, spec, folder / "pip")))
    detail = f"{spec.lock.framework}, medians of {PAIRS}: venv + pip {statistics.median(pip):.2f} s"
    return [
        row("set-up of a cached environment (verified) / venv + pip", reused, pip, detail),
        row("creation of an environment from cached packages / venv + pip", recreated, pip, detail),
    ]


def with_pip(python: Path, spec: EnvironmentSpec, folder: Path) -> None:
    """Install the same pinned packages with the same Python by the standard library's venv and its pip."""
    remove_folder(folder)
    subprocess.run([python, "-m", "venv", folder], check=True)
    pins = folder / "lock.txt"
    pins.write_text("\n".join(spec.lock.pins) + "\n", "utf-8")
    options = ["--quiet", "--no-deps", "--disable-pip-version-check", "-r", str(pins)]
    subprocess.run([python_in(folder), "-m", "pip", "install", *options], check=True)


def seconds(work: Callable[[], object]) -> float:
    """Return the wall-clock time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def row(name: str, ours: list[float], pip: list[float], detail: str) -> Row:
    """Return a row with the ratio of the medians; the limit is 0.2."""
    median = statistics.median(ours)
    return Row(name, median / statistics.median(pip), 0.2, "at most", f"{detail}, ours {median:.2f} s")


if __name__ == "__main__":
    for found in measure():
        sys.stdout.write(f"{found.name}: {found.value:.3f} (at most {found.limit}); {found.detail}\n")
