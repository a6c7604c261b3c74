"""Fills one environment's folder from its lock file."""

import sys
from collections.abc import Callable
from pathlib import Path

from steelyard.environments import builds
from steelyard.environments.install_errors import InstallError
from steelyard.environments.lock import Lock, large_build
from steelyard.environments.progress import Downloads, Progress, Report
from steelyard.environments.spec import EnvironmentSpec
from steelyard.environments.uv import Uv, open_log
from steelyard.errors import UserError
from steelyard.files.folders import remove_folder


def install(spec: EnvironmentSpec, folder: Path, report: Report, use_cache: bool = True) -> None:
    """Create the environment in `folder`, in place of what is there, and install every pinned package.

    With `use_cache=False` nothing is taken from uv's cache. Raises `UserError` with the cause and the log's path.
    """
    uv = Uv(open_log(spec.folder_name), use_cache)

    def report_stage(stage: str, done_bytes: int = 0, total_bytes: int = 0, sentence: str = "") -> None:
        report(Progress(spec.name, stage, done_bytes, total_bytes, sentence))

    def install_packages(arguments: list[str], index: str = "") -> None:
        report_stage("downloading")
        uv.install(folder, arguments, Downloads(report_stage).listen, index)

    try:
        remove_folder(folder)
        report_stage("creating")
        uv.create(folder, spec.python_version)
        lock, small, index = _choose_build(spec.lock, lambda pin, index: uv.has(folder, pin, index))
        if lock is not spec.lock:
            report_stage("downloading", sentence=spec.lock.facts["otherwise because"])
        if index:
            # Only the small build comes from its vendor, all else from the user's own registry.
            install_packages([small], index)
        requirements = folder / "lock.txt"
        requirements.write_text("\n".join(pins_with(lock.pins, small)) + "\n", "utf-8")
        # Nothing is resolved, because a lock file lists all packages.
        install_packages(["-r", str(requirements)])
        if recipe := builds.recipe_of(lock):
            wheel = builds.built(
                recipe,
                lock,
                folder,
                spec.python_version,
                uv,
                lambda stage, sentence: report_stage(stage, sentence=sentence),
            )
            install_packages([str(wheel)])
    except InstallError as error:
        raise UserError(
            f"The environment {spec.name} ({spec.lock.version}, {spec.lock.accelerator}) could not be created: {error}. "
            f"Log: {uv.log.path}"
        ) from error


def _choose_build(lock: Lock, is_available: Callable[[str, str], bool]) -> tuple[Lock, str, str]:
    """Return the lock to install, the vendor's small build if one is available, and the index that has it.

    An empty index stands for the user's own registry, which is asked first.
    """
    small = lock.facts.get("small build", "")
    if not small or not sys.platform.startswith(lock.facts["small build platform"]):
        return lock, "", ""
    for index in ("", lock.facts["vendor index"]):
        if is_available(small, index):
            return lock, small, index
    if "otherwise" not in lock.facts:
        raise InstallError(f"no package index has {small} for this Python and machine")
    return large_build(lock), "", ""


def pins_with(pins: tuple[str, ...], small: str) -> tuple[str, ...]:
    """Return the pins with the normal build of `small`'s distribution replaced by `small`."""
    name = small.partition("==")[0]
    return tuple(small if pin.partition("==")[0] == name else pin for pin in pins)
