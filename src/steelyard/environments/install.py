"""Fills one environment's folder from its lock file."""

import sys
from dataclasses import dataclass
from pathlib import Path

from steelyard.environments.folders import remove_folder
from steelyard.environments.install_errors import InstallError
from steelyard.environments.lock import large_build
from steelyard.environments.progress import Downloads, Progress, Report
from steelyard.environments.spec import EnvironmentSpec
from steelyard.environments.uv import Uv, open_log
from steelyard.errors import UserError


def install(spec: EnvironmentSpec, folder: Path, report: Report, use_cache: bool = True) -> None:
    """Create the environment in `folder`, in place of what is there, and install every pinned package.

    With `use_cache=False` nothing is taken from uv's cache. Raises `UserError` with the cause and the log's path.
    """
    uv = Uv(open_log(spec.folder_name), use_cache)
    installation = Installation(spec, folder, uv, report)
    try:
        remove_folder(folder)
        installation.report_stage("creating")
        uv.create(folder, spec.python_version)
        installation.install_packages()
    except InstallError as error:
        raise UserError(
            f"The environment {spec.name} ({spec.lock.version}, {spec.lock.accelerator}) could not be created: {error}. "
            f"Log: {uv.log.path}"
        ) from error


@dataclass(frozen=True)
class Installation:
    """The packages of one lock file on their way into one folder."""

    spec: EnvironmentSpec
    folder: Path
    uv: Uv
    report: Report

    def report_stage(self, stage: str, done_bytes: int = 0, total_bytes: int = 0, sentence: str = "") -> None:
        """Report the progress of this environment."""
        self.report(Progress(self.spec.name, stage, done_bytes, total_bytes, sentence))

    def install_packages(self) -> None:
        """Install every pinned package; nothing is resolved, because a lock file lists all packages."""
        requirements = self.folder / "lock.txt"
        requirements.write_text("\n".join(self._pins()) + "\n", "utf-8")
        self._install(["-r", str(requirements)])

    def _pins(self) -> tuple[str, ...]:
        """Return the pins, with the vendor's small build where the lock file names one and it is available."""
        lock = self.spec.lock
        small = lock.facts.get("small build", "")
        if not small or not sys.platform.startswith(lock.facts["small build platform"]):
            return lock.pins
        if self.uv.has(self.folder, small):
            return pins_with(lock.pins, small)
        vendor = lock.facts["vendor index"]
        if self.uv.has(self.folder, small, vendor):
            # Only the small build comes from its vendor, all else from the user's own registry.
            self._install([small], vendor)
            return pins_with(lock.pins, small)
        self.report_stage("downloading", sentence=lock.facts["otherwise because"])
        return large_build(lock).pins

    def _install(self, arguments: list[str], index: str = "") -> None:
        self.report_stage("downloading")
        self.uv.install(self.folder, arguments, Downloads(self.report_stage).listen, index)


def pins_with(pins: tuple[str, ...], small: str) -> tuple[str, ...]:
    """Return the pins with the normal build of `small`'s distribution replaced by `small`."""
    name = small.partition("==")[0]
    return tuple(small if pin.partition("==")[0] == name else pin for pin in pins)
