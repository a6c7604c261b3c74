"""Environments on demand: created once per user, verified before every use, rebuilt when broken.

`steelyard.files.atomic` does not fit here. It fills a folder under another name and renames it; a virtual
environment contains its own path and cannot be moved. It accepts a folder whose tensors are readable; here
a marker file is written last, and every file is compared with its package's RECORD.
"""

import shutil
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from steelyard.environments.folders import environments_folder, locked, python_in, state_folder
from steelyard.environments.install import install
from steelyard.environments.install_errors import find_cause
from steelyard.environments.interpreter import IMPORT_LIMIT_S
from steelyard.environments.interpreter_cache import Known, identity, unchanged
from steelyard.environments.pending import start
from steelyard.environments.progress import Progress, Report, quiet
from steelyard.environments.spec import Environment, EnvironmentSpec, Failure
from steelyard.environments.verification import BrokenError, DamagedError, completed_at, mark_complete, verify
from steelyard.errors import UserError


def ensure(spec: EnvironmentSpec, report: Report = quiet, limit_s: float = IMPORT_LIMIT_S) -> Environment:
    """Return the environment of `spec`: the existing one if it is complete, otherwise a new one.

    An environment is reused when its interpreter starts and no file was touched (0.2 s). Files that were touched are compared
    with their packages' RECORD; the environment is created again when one differs, or belongs to no package.
    Raises `UserError` with the reason when it cannot be created, and when an import takes more than `limit_s` seconds.
    """
    folder = environments_folder() / spec.folder_name
    try:
        with locked(folder, lambda: report(_event(spec, "waiting", "another steelyard process uses it"))):
            known = _reuse(spec, folder, report, limit_s) or _create(spec, folder, report, limit_s)
    except OSError as error:
        reason = find_cause(f"os error {error.errno}") or str(error)
        raise UserError(f"The environment {spec.name} could not be created in {folder}: {reason}.") from error
    report(_event(spec, "ready"))
    return Environment(
        spec.name,
        spec.lock.framework,
        known.info.packages[spec.lock.distribution],
        python_in(folder),
        known.info.python_version,
        known.info.packages,
        folder,
        identity(known),
    )


def ensure_all(
    planned: Mapping[str, EnvironmentSpec | Failure], report: Report = quiet, limit_s: float = IMPORT_LIMIT_S
) -> dict[str, Environment | Failure]:
    """Return every planned environment, created in parallel; a failure does not stop the others.

    `report` is called from several threads.
    """
    arriving = start({name: partial(ensured, name, item, report, limit_s) for name, item in planned.items()})
    return arriving.results()


def ensured(
    name: str, planned: EnvironmentSpec | Failure, report: Report = quiet, limit_s: float = IMPORT_LIMIT_S
) -> Environment | Failure:
    """Return a planned environment, or why it could not be created."""
    try:
        found = ensure(planned, report, limit_s) if isinstance(planned, EnvironmentSpec) else planned
    except UserError as error:
        found = Failure(name, str(error))
    if isinstance(found, Failure):
        report(Progress(name, "failed", sentence=found.sentence))
    return found


def _reuse(spec: EnvironmentSpec, folder: Path, report: Report, limit_s: float) -> Known | None:
    if not completed_at(folder):
        return None
    report(_event(spec, "checking"))
    if known := unchanged(python_in(folder), spec.lock.import_name):
        return known
    try:
        report(_event(spec, "verifying", "a file was touched"))
        return verify(spec, folder, limit_s)
    except BrokenError as error:
        report(_event(spec, "rebuilding", f"it is broken ({error})"))
        return None


def _create(spec: EnvironmentSpec, folder: Path, report: Report, limit_s: float, use_cache: bool = True) -> Known:
    shutil.rmtree(state_folder(python_in(folder)), ignore_errors=True)
    began_ns = time.time_ns()
    install(spec, folder, report, use_cache)
    report(_event(spec, "verifying"))
    try:
        known = verify(spec, folder, limit_s, began_ns)
    except BrokenError as error:
        if use_cache and isinstance(error, DamagedError):
            # uv hard-links files from its cache, so a file damaged in an environment is damaged in the cache, too.
            report(_event(spec, "rebuilding", f"uv's cache is damaged ({error}), so all packages are downloaded again"))
            return _create(spec, folder, report, limit_s, use_cache=False)
        log = environments_folder() / "logs" / f"{spec.folder_name}.log"
        raise UserError(f"The environment {spec.name} was created but does not work: {error}. Log: {log}") from error
    mark_complete(spec, folder)
    return known


def _event(spec: EnvironmentSpec, stage: str, sentence: str = "") -> Progress:
    return Progress(spec.name, stage, sentence=sentence)
