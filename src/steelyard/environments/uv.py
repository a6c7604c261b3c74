"""uv creates the environments and installs their packages; this module builds its commands and its variables."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from steelyard.environments.execution import DAY_S, Command, Listener, Log, execute
from steelyard.environments.folders import environments_folder, python_in
from steelyard.environments.install_errors import InstallError
from steelyard.environments.lock import python_pair
from steelyard.environments.pip_settings import no_index, read_pip_settings, uv_variables
from steelyard.errors import UserError

# The user's own settings for uv are used, except those that change where or what it installs.
IGNORED = (
    "UV_PYTHON",
    "UV_SYSTEM_PYTHON",
    "UV_BREAK_SYSTEM_PACKAGES",
    "UV_PROJECT",
    "UV_PROJECT_ENVIRONMENT",
    "UV_WORKING_DIR",
    "UV_CONSTRAINT",
    "UV_OVERRIDE",
    "UV_EXCLUDE",
    "UV_REQUIRE_HASHES",
    "UV_RESOLUTION",
    "UV_PRERELEASE",
    "UV_VENV_SEED",
)
# Variables with these prefixes change which packages and which interpreter uv finds.
MISLEADING = ("PYTHON", "PIP_", "UV_", "CONDA", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__", "_PYTHON")
# A vendor's index is only checked for one file, which takes seconds; the user's time limits can be minutes.
VENDOR_LIMIT_S = 15.0
SHORT_LIMITS = {"UV_HTTP_TIMEOUT": "5", "UV_HTTP_CONNECT_TIMEOUT": "5", "UV_HTTP_RETRIES": "0"}


def find_uv() -> Path:
    """Return uv's program, which is installed with steelyard. Raises `UserError` when it is missing."""
    try:
        from uv import find_uv_bin

        return Path(find_uv_bin())
    except (ImportError, FileNotFoundError) as error:
        raise UserError("uv is missing from this installation. Install it: pip install uv") from error


def open_log(name: str) -> Log:
    """Return an empty log for the installation with this name."""
    log = Log(environments_folder() / "logs" / f"{name}.log")
    log.begin()
    return log


def user_environ(base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables for uv as the user has set them, such as proxies, without those that mislead it."""
    source = os.environ if base is None else base
    # UV_..._BACKEND makes uv choose the build for an accelerator; here the lock file chooses it.
    ignored = {name for name in source if name in IGNORED or name.endswith("_BACKEND")}
    settings = {name: value for name, value in source.items() if name.startswith("UV_") and name not in ignored}
    return {name: value for name, value in source.items() if not name.startswith(MISLEADING)} | settings


@dataclass(frozen=True)
class Uv:
    """uv with the user's settings, for one installation; `use_cache=False` downloads every package again.

    Its methods raise `InstallError`; what uv prints is in `log`.
    """

    log: Log
    use_cache: bool = True
    settings: Mapping[str, str] = field(default_factory=read_pip_settings)

    def create(self, folder: Path, python_version: str) -> None:
        """Create an empty environment for a Python such as `3.11`, which uv finds on this machine or downloads."""
        own = python_pair(python_version) == sys.version_info[:2]
        python = sys.executable if own else python_version
        try:
            execute([find_uv(), "venv", "--no-project", "--python", python, folder], self.environ(), self.log)
        except InstallError as error:
            raise InstallError(f"it needs Python {python_version}, which could not be set up: {error}") from error

    def has(self, folder: Path, requirement: str, index: str = "") -> bool:
        """Return whether a package can be installed, from `index` alone if one is given."""
        if index and no_index(self.settings):
            return False
        command = [*self._pip_install(index), "--dry-run", "--python", python_in(folder), requirement]
        environ = {**self.environ(index), **(SHORT_LIMITS if index else {})}
        try:
            execute(command, environ, self.log, limit_s=VENDOR_LIMIT_S if index else DAY_S)
        except InstallError:
            return False
        return True

    def install(self, folder: Path, arguments: list[str], listen: Listener, index: str = "") -> None:
        """Install packages without their dependencies, from `index` alone if one is given."""
        command = [*self._pip_install(index), "--python", python_in(folder), *arguments]
        execute(command, self.environ(index), self.log, listen)

    def unpack(self, requirement: str, folder: Path) -> None:
        """Put the files of one package into a folder that is not an environment."""
        target: Command = ["--link-mode", "copy", "--python", sys.executable, "--target", folder]
        execute([*self._pip_install(), *target, requirement], self.environ(), self.log)

    def check_registry(self, limit_s: float) -> None:
        """Look up the versions of one small package, so that an unreachable registry raises."""
        request = self.log.path.with_suffix(".txt")
        request.write_text("pip\n", "utf-8")
        command: Command = [find_uv(), "pip", "compile", "--no-deps", "--no-cache", *self._no_index(), request]
        execute(command, {**self.environ(), **SHORT_LIMITS}, self.log, limit_s=limit_s)

    def environ(self, index: str = "") -> dict[str, str]:
        """Return the variables for uv; with `index` nothing comes from the user's own package sources."""
        own = user_environ()
        environ = {"NO_COLOR": "1", **own, **uv_variables(self.settings, own)}
        if index:
            sources = ("UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_FIND_LINKS")
            environ = {name: value for name, value in environ.items() if name not in sources}
            environ["UV_DEFAULT_INDEX"] = index
        return environ

    def _pip_install(self, index: str = "") -> list[str | Path]:
        no_cache = [] if self.use_cache else ["--no-cache"]
        return [find_uv(), "pip", "install", "--no-deps", *([] if index else self._no_index()), *no_cache]

    def _no_index(self) -> list[str]:
        return ["--no-index"] if no_index(self.settings) else []
