"""Set-up of an environment over `python -m venv` and pip, side by side, interleaved.

The counterpart installs the same pins with pip's own cache warm and, as pip does by itself, compiles byte
code; ours leaves that to the first import. The framework is the smallest that has a lock, which favours
neither: both ways take a time that grows with its files.
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
from steelyard.environments import EnvironmentSpec, ensure, plan_environments, read_locks
from steelyard.environments.folders import python_in, remove_folder
from steelyard.environments.install import install
from steelyard.environments.progress import quiet

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
    python = ensure(spec).python
    with_pip(python, spec, folder / "pip")  # warms pip's cache, as uv's is warm by now
    reuse, remake, pip = [], [], []
    for _ in range(PAIRS):
        reuse.append(seconds(lambda: ensure(spec)))
        remake.append(seconds(lambda: install(spec, folder / "again", quiet)))
        pip.append(seconds(lambda: with_pip(python, spec, folder / "pip")))
    detail = f"{spec.framework}, medians of {PAIRS}: venv + pip {statistics.median(pip):.2f} s"
    return [
        row("set-up of a cached environment (verified) over venv + pip", reuse, pip, detail),
        row("making an environment from cached packages over venv + pip", remake, pip, detail),
    ]


def with_pip(python: Path, spec: EnvironmentSpec, folder: Path) -> None:
    """Do the same with the standard library's venv and its pip, with the same Python and the same pinned packages."""
    remove_folder(folder)
    subprocess.run([python, "-m", "venv", folder], check=True)
    pins = folder / "lock.txt"
    pins.write_text("\n".join(spec.lock.pins) + "\n", "utf-8")
    options = ["--quiet", "--no-deps", "--disable-pip-version-check", "-r", pins]
    subprocess.run([python_in(folder), "-m", "pip", "install", *options], check=True)


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
