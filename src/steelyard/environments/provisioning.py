"""Environments on demand: created once per user, verified before every use, rebuilt when broken.

`steelyard.files.atomic` does not fit here. It fills a folder under another name and renames it; a virtual
environment contains its own path and cannot be moved. It accepts a folder whose tensors are readable; here
a marker file is written last, and its stamp covers every file.
"""

import sysconfig
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from steelyard.environments.folders import environments_folder, locked, python_in
from steelyard.environments.install import install
from steelyard.environments.install_errors import find_cause
from steelyard.environments.progress import Progress, Report, quiet
from steelyard.environments.spec import Environment, EnvironmentSpec, Failure
from steelyard.environments.stamp import find_damage
from steelyard.environments.verification import BrokenError, Marker, is_unchanged, read_marker, verify
from steelyard.errors import UserError


def ensure(spec: EnvironmentSpec, report: Report = quiet) -> Environment:
    """Return the environment of `spec`: the existing one if it is complete, otherwise a new one.

    An environment is reused when its interpreter starts and the stamp over all package files is the same
    (0.1 s). When the stamp differs, the size of every package file is checked and the framework imported.
    Raises `UserError` with the reason when the environment cannot be created.
    """
    folder = environments_folder() / spec.folder_name
    try:
        with locked(folder, lambda: report(_event(spec, "waiting", "another steelyard process uses it"))):
            marker = _reuse(spec, folder, report) or _create(spec, folder, report)
    except OSError as error:
        reason = find_cause(f"os error {error.errno}") or str(error)
        raise UserError(f"The environment {spec.name} could not be created in {folder}: {reason}.") from error
    report(_event(spec, "ready"))
    return Environment(
        spec.name,
        spec.lock.framework,
        marker.version,
        python_in(folder),
        marker.python_version,
        marker.packages,
        folder,
    )


def ensure_all(
    planned: Mapping[str, EnvironmentSpec | Failure], report: Report = quiet
) -> dict[str, Environment | Failure]:
    """Return every planned environment, created in parallel; a failure does not stop the others.

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

    # `find_uv_bin` reads sysconfig, which Python 3.11 does not fill thread-safely on first use.
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
        report(_event(spec, "verifying", "a file changed"))
        return verify(spec, folder)
    except BrokenError as error:
        report(_event(spec, "rebuilding", f"it is broken ({error})"))
        return None


def _create(spec: EnvironmentSpec, folder: Path, report: Report, use_cache: bool = True) -> Marker:
    install(spec, folder, report, use_cache)
    report(_event(spec, "verifying"))
    try:
        return verify(spec, folder)
    except BrokenError as error:
        if use_cache and find_damage(folder):
            # uv hard-links files from its cache, so a file damaged in an environment is damaged in the cache, too.
            report(_event(spec, "rebuilding", f"uv's cache is damaged ({error}), so all packages are downloaded again"))
            return _create(spec, folder, report, use_cache=False)
        log = environments_folder() / "logs" / f"{spec.folder_name}.log"
        raise UserError(f"The environment {spec.name} was created but does not work: {error}. Log: {log}") from error


def _event(spec: EnvironmentSpec, stage: str, sentence: str = "") -> Progress:
    return Progress(spec.name, stage, sentence=sentence)
