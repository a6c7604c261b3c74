"""The environments on this machine: made once per user, verified before every use, rebuilt when broken."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from steelyard.environments.execution import remove_folder
from steelyard.environments.install import environments_folder, install
from steelyard.environments.interpreter import Answer, StartError, ask, python_in, starts
from steelyard.environments.progress import Progress, Report, quiet
from steelyard.environments.spec import Environment, EnvironmentSpec, Failure
from steelyard.environments.stamp import damage, size_bytes, stamp
from steelyard.errors import UserError, nearest

MARKER = "steelyard-environment.json"


@dataclass(frozen=True)
class Kept:
    """One environment as it lies on disk. An unfinished or broken one is not `whole`."""

    folder: Path
    name: str
    framework: str
    version: str
    accelerator: str
    size_bytes: int
    whole: bool
    verified_at: str


def ensure(spec: EnvironmentSpec, report: Report = quiet) -> Environment:
    """The environment of `spec`: the one that exists if it is whole, else a new one.

    Reuse is decided by `stamp` (0.1 s); when the stamp changed, by every package file's size and by
    importing the framework. Raises `UserError` with the reason when it cannot be made.
    """
    folder = environments_folder() / spec.folder_name
    try:
        with _alone(spec, folder, report):
            environment = _reuse(spec, folder, report) or _make(spec, folder, report)
    except OSError as error:
        raise UserError(_refused_by_system(spec, error)) from error
    report(Progress(spec.name, "ready", total_bytes=spec.lock.installed_bytes))
    return environment


def ensure_all(
    planned: Mapping[str, EnvironmentSpec | Failure], report: Report = quiet
) -> dict[str, Environment | Failure]:
    """Every planned environment, made side by side; one that cannot be made does not stop the others."""

    def one(item: EnvironmentSpec | Failure) -> Environment | Failure:
        if isinstance(item, Failure):
            report(Progress(item.name, "failed", sentence=item.sentence))
            return item
        try:
            return ensure(item, report)
        except UserError as error:
            report(Progress(item.name, "failed", sentence=str(error)))
            return Failure(item.name, str(error))

    with ThreadPoolExecutor(max(1, len(planned)), "environment") as pool:
        return dict(zip(planned, pool.map(one, planned.values()), strict=True))


def list_environments() -> list[Kept]:
    """What lies in the cache, whole or not."""
    folders = environments_folder()
    if not folders.is_dir():
        return []
    return [_kept(folder) for folder in sorted(folders.iterdir()) if _is_environment(folder)]


def remove(names: list[str]) -> list[Kept]:
    """Remove environments by name (`framework`, `framework@version`) or folder name; all when `["all"]`.

    `framework` alone means each of its versions. Returns what was removed; raises `UserError` for a name
    that nothing answers to.
    """
    kept = list_environments()
    chosen: list[Kept] = []
    for name in names:
        found = [one for one in kept if name in ("all", *_names_of(one))]
        if not found and name != "all":
            known = sorted({each for one in kept for each in _names_of(one)})
            raise UserError(f"There is no environment '{name}' on this machine.{nearest(name, known)}")
        chosen += [one for one in found if one not in chosen]
    for one in chosen:
        with _lock_of(one.folder):
            remove_folder(one.folder)
    return chosen


def _names_of(kept: Kept) -> tuple[str, str, str]:
    return kept.framework, f"{kept.framework}@{kept.version}", kept.folder.name


def _reuse(spec: EnvironmentSpec, folder: Path, report: Report) -> Environment | None:
    told = read_marker(folder)
    if told is None:
        return None
    report(Progress(spec.name, "checking"))
    if starts(python_in(folder)) and stamp(folder) == told["stamp"]:
        return _environment(spec, folder, told["python_version"], told["version"], told["packages"])
    try:
        return _verify(spec, folder, str(told["made_with"]), report)
    except BrokenError as error:
        report(Progress(spec.name, "rebuilding", sentence=str(error)))
        return None


def _make(spec: EnvironmentSpec, folder: Path, report: Report) -> Environment:
    made_with = install(spec, folder, report)
    try:
        return _verify(spec, folder, made_with, report)
    except BrokenError as error:
        log = environments_folder() / "logs" / f"{spec.folder_name}.log"
        raise UserError(
            f"The environment {spec.name} was made but does not work: {error}. "
            f"Everything the installer said is in {log}"
        ) from error


class BrokenError(Exception):
    """An environment is not what its lock says; the text says how."""


def _verify(spec: EnvironmentSpec, folder: Path, made_with: str, report: Report) -> Environment:
    """Check all there is to check, and remember it in the marker, which is written last."""
    report(Progress(spec.name, "verifying"))
    answer = _answer_of(spec, folder)
    wanted, found = spec.version, answer.packages.get(spec.lock.distribution, "nothing")
    if found.partition("+")[0] != wanted:
        raise BrokenError(f"its lock wants {spec.lock.distribution} {wanted}, it holds {found}")
    told = {
        "name": spec.name,
        "framework": spec.framework,
        "version": found,
        "accelerator": spec.accelerator,
        "python_version": answer.python_version,
        "packages": answer.packages,
        "made_with": made_with,
        "verified_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "stamp": stamp(folder),
    }
    _write_marker(folder, told)
    return _environment(spec, folder, answer.python_version, found, answer.packages)


def _answer_of(spec: EnvironmentSpec, folder: Path) -> Answer:
    python = python_in(folder)
    if not python.exists():
        raise BrokenError("its interpreter is missing")
    if found := damage(folder):
        raise BrokenError(found)
    try:
        answer = ask(python, spec.lock.import_name)
    except StartError as error:
        raise BrokenError(f"its interpreter fails: {error}") from error
    if answer.import_error:
        raise BrokenError(f"{spec.lock.import_name} does not import: {answer.import_error}")
    return answer


def _environment(
    spec: EnvironmentSpec, folder: Path, python_version: str, version: str, packages: dict[str, str]
) -> Environment:
    python = python_in(folder)
    return Environment(
        spec.name,
        spec.framework,
        version,
        spec.accelerator,
        python,
        python_version,
        packages,
        spec=spec,
        folder=folder,
    )


def read_marker(folder: Path) -> dict[str, object] | None:
    """What was remembered of an environment; None when it was never finished or cannot be read."""
    try:
        told = json.loads((folder / MARKER).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    needed = {"stamp", "python_version", "version", "packages", "made_with"}
    return told if isinstance(told, dict) and needed <= told.keys() else None


def _write_marker(folder: Path, told: Mapping[str, object]) -> None:
    fresh = folder / f".{MARKER}.new"
    fresh.write_text(json.dumps(told, indent=1), "utf-8")
    fresh.replace(folder / MARKER)


def _is_environment(folder: Path) -> bool:
    return folder.is_dir() and not folder.name.startswith(".") and (folder / "pyvenv.cfg").exists()


def _kept(folder: Path) -> Kept:
    framework, version, accelerator = folder.name.rsplit("-", 3)[:3]
    told = read_marker(folder) or {}
    return Kept(
        folder,
        str(told.get("name", framework)),
        framework,
        version,
        accelerator,
        size_bytes(folder),
        bool(told) and starts(python_in(folder)) and stamp(folder) == told["stamp"],
        str(told.get("verified_at", "")),
    )


@contextmanager
def _alone(spec: EnvironmentSpec, folder: Path, report: Report) -> Iterator[None]:
    """Hold the environment's lock: two steelyards must not build the same folder."""
    lock = _lock_of(folder)
    from filelock import Timeout

    try:
        lock.acquire(timeout=0.2)
    except Timeout:
        sentence = "another steelyard is working on it"
        report(Progress(spec.name, "waiting", sentence=sentence))
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _lock_of(folder: Path):  # type: ignore[no-untyped-def]
    from filelock import FileLock

    folder.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(folder.with_name(f".{folder.name}.lock"), timeout=-1)
