"""Environments on demand: made once per user, verified before every use, rebuilt when broken."""

import sysconfig
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from steelyard.environments.complaint import explain
from steelyard.environments.install import environments_folder, install
from steelyard.environments.progress import Progress, Report, quiet
from steelyard.environments.spec import Environment, EnvironmentSpec, Failure
from steelyard.environments.stamp import damage
from steelyard.environments.verification import (
    BrokenError,
    Marker,
    environment_of,
    is_unchanged,
    read_marker,
    verify,
)
from steelyard.errors import UserError


def ensure(spec: EnvironmentSpec, report: Report = quiet) -> Environment:
    """The environment of `spec`: the one that exists if it is whole, else a new one.

    Reuse is decided by the interpreter's start and by a stamp over all package files (0.1 s); when the
    stamp changed, by every package file's size and by importing the framework.
    Raises `UserError` with the reason when it cannot be made.
    """
    folder = environments_folder() / spec.folder_name
    try:
        with alone(folder, lambda: report(_event(spec, "waiting", "another steelyard works on it"))):
            marker = _reuse(spec, folder, report) or _make(spec, folder, report)
    except OSError as error:
        reason = explain(f"{error} (os error {error.errno})").sentence
        raise UserError(f"The environment {spec.name} could not be made in {folder}: {reason}.") from error
    report(Progress(spec.name, "ready"))
    return environment_of(spec, folder, marker)


def ensure_all(
    planned: Mapping[str, EnvironmentSpec | Failure], report: Report = quiet
) -> dict[str, Environment | Failure]:
    """Every planned environment, made side by side; one that cannot be made does not stop the others.

    `report` is called from several threads.
    """

    def one(name: str) -> Environment | Failure:
        item = planned[name]
        try:
            found = ensure(item, report) if isinstance(item, EnvironmentSpec) else item
        except UserError as error:
            found = Failure(name, str(error))
        if isinstance(found, Failure):
            report(Progress(name, "failed", sentence=found.sentence))
        return found

    # Fill sysconfig's table before there are threads: Python 3.11 lets a second one see it half filled, and uv then fails.
    sysconfig.get_config_vars()
    with ThreadPoolExecutor(max(1, len(planned)), "environment") as pool:
        return dict(zip(planned, pool.map(one, planned), strict=True))


def _reuse(spec: EnvironmentSpec, folder: Path, report: Report) -> Marker | None:
    marker = read_marker(folder)
    if marker is None:
        return None
    report(_event(spec, "checking"))
    if is_unchanged(folder, marker):
        return marker
    try:
        report(_event(spec, "verifying", "something in it changed"))
        return verify(spec, folder, marker.made_with)
    except BrokenError as error:
        report(_event(spec, "rebuilding", f"it is broken ({error})"))
        return None


def _make(spec: EnvironmentSpec, folder: Path, report: Report, distrust_cache: bool = False) -> Marker:
    made_with = install(spec, folder, report, distrust_cache)
    report(_event(spec, "verifying"))
    try:
        return verify(spec, folder, made_with)
    except BrokenError as error:
        if damage(folder) and not distrust_cache:
            # uv links files from its cache: what damaged the environment has damaged the cache, too.
            report(_event(spec, "rebuilding", f"uv's cache is damaged ({error}), so all is downloaded anew"))
            return _make(spec, folder, report, distrust_cache=True)
        log = environments_folder() / "logs" / f"{spec.folder_name}.log"
        raise UserError(
            f"The environment {spec.name} was made but does not work: {error}. "
            f"Everything the installer said is in {log}"
        ) from error


def _event(spec: EnvironmentSpec, stage: str, sentence: str = "") -> Progress:
    return Progress(spec.name, stage, sentence=sentence)


@contextmanager
def alone(folder: Path, tell_waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lock of an environment's folder: two steelyards must not build the same one."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder.with_name(f".{folder.name}.lock"))
    try:
        lock.acquire(timeout=0.3)
    except Timeout:
        tell_waiting()
        lock.acquire(timeout=-1)
    try:
        yield
    finally:
        lock.release()
