"""One package as a folder of files, for data sets that are published as packages."""

import re
from pathlib import Path

from steelyard.environments.folders import locked
from steelyard.environments.install_errors import InstallError
from steelyard.environments.uv import Uv, open_log
from steelyard.errors import UserError, notice
from steelyard.files.folders import remove_folder


def fetch_package(requirement: str, destination: Path) -> Path:
    """Return `destination`, the folder of one unpacked package (`name==version`) without its dependencies.

    If it does not exist, the package is downloaded, by one process while others wait. The folder appears only when it is
    complete. Raises `UserError` when the package cannot be downloaded.
    """
    with locked(destination, lambda: notice(f"Another process is downloading {requirement}; waiting for it.")):
        if not destination.exists():
            _download(requirement, destination)
    return destination


def _download(requirement: str, destination: Path) -> None:
    uv = Uv(open_log("package-" + re.sub(r"[^\w.-]+", "-", requirement)))
    partial = destination.with_name(f".{destination.name}.partial")
    remove_folder(partial)
    try:
        uv.unpack(requirement, partial)
    except InstallError as error:
        remove_folder(partial)
        raise UserError(f"The package {requirement} could not be downloaded: {error}. Log: {uv.log.path}") from error
    partial.rename(destination)
