"""Fills one environment from its lock, and says in one sentence what failed and where its log is."""

import sys
from dataclasses import dataclass
from pathlib import Path

from steelyard.environments.execution import Downloads, InstallError, Log, remove_folder
from steelyard.environments.lock import Lock, build_without
from steelyard.environments.pip_settings import read_settings
from steelyard.environments.progress import Progress, Report
from steelyard.environments.spec import EnvironmentSpec
from steelyard.environments.tools import Tool, with_tools
from steelyard.errors import UserError
from steelyard.files.paths import cache_folder


def environments_folder() -> Path:
    """Where environments are kept, one folder each."""
    return cache_folder() / "environments"


def open_log(name: str) -> Log:
    """A fresh log for an installation with this name."""
    log = Log(environments_folder() / "logs" / f"{name}.log")
    log.begin()
    return log


def install(spec: EnvironmentSpec, folder: Path, report: Report, distrust_cache: bool = False) -> str:
    """Create the environment's folder and install every pin; returns `uv` or `pip`, whichever did it.

    With `distrust_cache` nothing is taken from uv's cache.
    Raises `UserError` with the reason and the path of the log.
    """
    log = open_log(spec.folder_name)
    filling = Filling(spec.name, spec.lock, folder, log, report)

    def work(tool: Tool) -> None:
        remove_folder(folder)
        filling.tell("creating")
        tool.create(folder, spec.python_version, log)
        filling.fill(tool)

    try:
        return with_tools(read_settings(), work, lambda why: filling.tell("creating", sentence=why), distrust_cache)
    except InstallError as error:
        raise UserError(
            f"The environment {spec.name} ({spec.version}, {spec.accelerator}) could not be made: "
            f"{error}. Everything the installer said is in {log.path}"
        ) from error


@dataclass(frozen=True)
class Filling:
    """The pins of one lock on their way into one folder."""

    name: str
    lock: Lock
    folder: Path
    log: Log
    report: Report

    def tell(self, stage: str, done_bytes: int = 0, total_bytes: int = 0, sentence: str = "") -> None:
        self.report(Progress(self.name, stage, done_bytes, total_bytes, sentence))

    def fill(self, tool: Tool) -> None:
        """Install every pin, without resolving anything: a lock names all there is to install."""
        pins = self._pins(tool)
        requirements = self.folder / "lock.txt"
        requirements.write_text("\n".join(pins) + "\n", "utf-8")
        self._install(tool, ["-r", str(requirements)], "")

    def _pins(self, tool: Tool) -> tuple[str, ...]:
        """The lock's pins, with the vendor's small build where the lock names one and it can be had."""
        small = self.lock.facts.get("small build", "")
        if not small or not sys.platform.startswith(self.lock.facts["small build platform"]):
            return self.lock.pins
        if tool.offers(self.folder, small, "", self.log) or self._taken_from_vendor(tool, small):
            return pins_with(self.lock.pins, small)
        self.tell("downloading", sentence=self.lock.facts["otherwise because"])
        return build_without(self.lock).pins

    def _taken_from_vendor(self, tool: Tool, small: str) -> bool:
        """Install the small build alone from its vendor; all else comes from the user's own registry."""
        vendor = self.lock.facts["vendor index"]
        if tool.settings.no_index or not tool.offers(self.folder, small, vendor, self.log):
            return False
        self._install(tool, [small], vendor)
        return True

    def _install(self, tool: Tool, arguments: list[str], vendor: str) -> None:
        self.tell("downloading")
        tool.install(self.folder, arguments, vendor, self.log, Downloads(self.tell).listen)


def pins_with(pins: tuple[str, ...], small: str) -> tuple[str, ...]:
    """The pins with the plain build of `small`'s distribution replaced by `small`."""
    name = small.partition("==")[0]
    return tuple(small if pin.partition("==")[0] == name else pin for pin in pins)
