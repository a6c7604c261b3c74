"""uv, and venv with pip: the two ways to create an environment and fill it, with the user's pip settings."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from steelyard.environments.complaint import Complaint
from steelyard.environments.execution import Command, InstallError, Listener, Log, execute
from steelyard.environments.interpreter import find_python, installer_environ, python_in
from steelyard.environments.pip_settings import PipSettings, pip_variables, uv_variables

# The vendor's index is asked only whether it is there: seconds, not the user's time-out of minutes.
VENDOR_LIMIT_S = 15.0
OWN_LIMIT_S = 120.0
IMPATIENT = {
    "UV_HTTP_TIMEOUT": "5",
    "UV_HTTP_CONNECT_TIMEOUT": "5",
    "UV_HTTP_RETRIES": "0",
    "PIP_TIMEOUT": "5",
    "PIP_RETRIES": "0",
}


class Tool(Protocol):
    """What uv and pip have in common here."""

    @property
    def name(self) -> str: ...
    @property
    def settings(self) -> PipSettings: ...
    def environ(self, vendor_index: str = "") -> dict[str, str]: ...
    def create(self, folder: Path, python_version: str, log: Log) -> None: ...
    def offers(self, folder: Path, requirement: str, vendor_index: str, log: Log) -> bool: ...
    def install(self, folder: Path, arguments: list[str], vendor_index: str, log: Log, listen: Listener) -> None: ...


@dataclass(frozen=True)
class Uv:
    """The fast way."""

    program: Path
    settings: PipSettings
    distrust_cache: bool = False
    name: str = "uv"

    def create(self, folder: Path, python_version: str, log: Log) -> None:
        python = find_python(python_version, self.program) or python_version
        command: Command = [self.program, "venv", "--no-project", "--python", python, folder]
        try:
            execute(command, self.environ(), log)
        except InstallError as error:
            if python == python_version and error.complaint.kind in ("network", "other"):
                raise _no_python(python_version) from error
            raise

    def offers(self, folder: Path, requirement: str, vendor_index: str, log: Log) -> bool:
        where: Command = ["--python", python_in(folder)]
        command: Command = [*self._pip_install(vendor_index), "--dry-run", *where, requirement]
        environ = self.environ(vendor_index)
        if vendor_index:
            environ |= IMPATIENT
        return _succeeds(command, environ, log, VENDOR_LIMIT_S if vendor_index else OWN_LIMIT_S)

    def install(self, folder: Path, arguments: list[str], vendor_index: str, log: Log, listen: Listener) -> None:
        link = ["--link-mode", "copy"] if self._other_disk(folder) else []
        where: Command = ["--python", python_in(folder)]
        command: Command = [*self._pip_install(vendor_index), *link, *where, *arguments]
        execute(command, self.environ(vendor_index), log, listen)

    def unpack(self, python: str, requirement: str, folder: Path, log: Log) -> None:
        """Put one package's files into a folder that is no environment."""
        where: Command = ["--link-mode", "copy", "--python", python, "--target", folder]
        execute([*self._pip_install(""), *where, requirement], self.environ(), log)

    def environ(self, vendor_index: str = "") -> dict[str, str]:
        own = installer_environ()
        variables = {"NO_COLOR": "1", **own, **uv_variables(self.settings, own)}
        if vendor_index:
            variables["UV_DEFAULT_INDEX"] = vendor_index
            for name in ("UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_FIND_LINKS"):
                variables.pop(name, None)
        return variables

    def _pip_install(self, vendor_index: str) -> Command:
        no_index = ["--no-index"] if self.settings.no_index and not vendor_index else []
        no_cache = ["--no-cache"] if self.distrust_cache else []
        return [self.program, "pip", "install", "--no-deps", *no_index, *no_cache]

    def _other_disk(self, folder: Path) -> bool:
        """Whether uv's cache is on another file system, where its hard links cannot reach."""
        asked = subprocess.run(
            [self.program, "cache", "dir"], capture_output=True, text=True, env=self.environ(), check=False
        )
        cache = _existing(Path(asked.stdout.strip() or folder))
        return cache.stat().st_dev != _existing(folder).stat().st_dev


@dataclass(frozen=True)
class Pip:
    """The way that is always there: the standard library's venv, and the pip inside it."""

    settings: PipSettings
    name: str = "pip"

    def create(self, folder: Path, python_version: str, log: Log) -> None:
        python = find_python(python_version)
        if python is None:
            raise _no_python(python_version)
        execute([python, "-m", "venv", folder], self.environ(), log)

    def offers(self, folder: Path, requirement: str, vendor_index: str, log: Log) -> bool:
        package, _, version = requirement.partition("==")
        command: Command = [python_in(folder), "-m", "pip", "index", "versions", package]
        environ = self.environ(vendor_index)
        if vendor_index:
            environ |= IMPATIENT
        try:
            said = execute(command, environ, log, limit_s=VENDOR_LIMIT_S if vendor_index else OWN_LIMIT_S)
        except InstallError:
            return False
        return version in re.split(r"[\s,()]+", said)

    def install(self, folder: Path, arguments: list[str], vendor_index: str, log: Log, listen: Listener) -> None:
        start: Command = [python_in(folder), "-m", "pip", "install", "--no-deps", "--progress-bar", "off"]
        execute([*start, *arguments], self.environ(vendor_index), log, listen)

    def environ(self, vendor_index: str = "") -> dict[str, str]:
        settings = self.settings
        if vendor_index:
            settings = replace(settings, index_url=vendor_index, extra_index_url=(), find_links=(), no_index=False)
        own = {name: value for name, value in installer_environ().items() if not name.startswith("UV_")}
        return {**own, **pip_variables(settings)}


def find_uv() -> Path | None:
    """The uv that came with this tool, else one in PATH, else nothing."""
    try:
        from uv import find_uv_bin

        return Path(find_uv_bin())
    except (ImportError, FileNotFoundError):
        found = shutil.which("uv")
        return Path(found) if found else None


def with_tools(
    settings: PipSettings,
    work: Callable[[Tool], None],
    changed: Callable[[str], None],
    distrust_cache: bool = False,
) -> str:
    """Do the work with uv; with pip when uv is missing or failed in a way that pip may not.

    `changed` hears in one sentence why pip takes over. With `distrust_cache` uv downloads everything
    anew. Returns the name of the tool that did it.
    """
    program = find_uv()
    if program is None:
        changed("uv is missing, so venv and pip are used, which is slower")
    else:
        try:
            work(Uv(program, settings, distrust_cache))
            return "uv"
        except InstallError as error:
            if not error.complaint.pip_may_succeed:
                raise
            changed(f"uv failed ({error.complaint.sentence}), so venv and pip are tried")
    work(Pip(settings))
    return "pip"


def _succeeds(command: Command, environ: dict[str, str], log: Log, limit_s: float) -> bool:
    try:
        execute(command, environ, log, limit_s=limit_s)
    except InstallError:
        return False
    return True


def _no_python(version: str) -> InstallError:
    return InstallError(
        Complaint(
            "no python",
            f"it needs Python {version}, and this machine has none (this one is"
            f" {sys.version_info[0]}.{sys.version_info[1]}); install it, or bring an interpreter with --env",
        )
    )


def _existing(path: Path) -> Path:
    return path if path.exists() or path == path.parent else _existing(path.parent)
