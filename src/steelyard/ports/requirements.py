"""Packages that a side needs beside its framework: in an environment of their own, laid over the managed one."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING

from steelyard.environments.execution import execute
from steelyard.environments.folders import locked, python_in, site_folders
from steelyard.environments.install_errors import InstallError
from steelyard.environments.pip_settings import no_index
from steelyard.environments.uv import Uv, find_uv, open_log
from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard.files.folders import remove_folder
from steelyard.files.paths import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from steelyard.environments import Environment
    from steelyard.environments.execution import Command
    from steelyard.ports.definition import SideSpec

MARKER = "steelyard-requirements.json"
"""The last file that is written: {"packages": {name: version}}. The side's process reads it, so that the record names them."""
LAID_OVER = "steelyard-framework.pth"
ADDED = re.compile(r"^\s*\+\s+([\w.-]+)==([^\s(]+)", re.MULTILINE)
CHANGED = re.compile(r"^\s*-\s+([\w.-]+)==", re.MULTILINE)


def python_of(side: SideSpec, environment: Environment, say: Callable[[str], None]) -> Path:
    """Return an interpreter that has the managed environment's packages and, beside them, what the side requires.

    It is made once for each environment and list of requirements. UserError: something cannot be installed.
    """
    if environment.folder is None:
        raise UserError(
            f"Side '{side.name}' has requirements, but {side.framework} has no managed environment. Leave them out, or name an "
            "interpreter with env."
        )
    folder = cache_folder() / "port-environments" / _key(side.requirements, environment)
    with locked(folder):
        if not (folder / MARKER).is_file() or not python_in(folder).exists():
            say(
                f"Adding {', '.join(side.requirements)} to the environment of {environment.name} for side '{side.name}'"
            )
            _make(side, environment, folder)
    return python_in(folder)


def added(output: str) -> dict[str, str]:
    """Return {package: version} of what uv says it would add."""
    return dict(ADDED.findall(output))


def _key(requirements: Sequence[str], environment: Environment) -> str:
    parts = (environment.contents, str(environment.folder), environment.python_version, *sorted(requirements))
    return f"{environment.framework}-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:16]}"


def _make(side: SideSpec, environment: Environment, folder: Path) -> None:
    assert environment.folder is not None
    uv = Uv(open_log(f"port-{folder.name}"))
    try:
        remove_folder(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        packages = _resolved(side.requirements, environment, uv)
        uv.create(folder, environment.python_version)
        if packages:
            uv.install(folder, [f"{name}=={version}" for name, version in packages.items()], lambda _: None)
    except InstallError as error:
        raise UserError(
            f"The requirements of side '{side.name}' ({', '.join(side.requirements)}) cannot be added to the environment of "
            f"{environment.name}, whose packages keep their versions: {error}. Change them, or name an interpreter of your own "
            f"with env. Log: {uv.log.path}"
        ) from error
    (own,), managed = site_folders(folder), site_folders(environment.folder)
    # addsitedir, because it also reads the .pth files of the managed environment; it comes behind the side's own packages.
    lines = [f"import site; site.addsitedir({str(path)!r})" for path in managed]
    atomic.write_text(own / LAID_OVER, "\n".join(lines) + "\n")
    atomic.write_text(folder / MARKER, json.dumps({"packages": packages}, indent=1))


def _resolved(requirements: Sequence[str], environment: Environment, uv: Uv) -> dict[str, str]:
    """Return the packages and versions that are missing in the managed environment. InstallError: they do not fit it.

    uv is asked what it would install there; with `--dry-run` it changes nothing.
    """
    kept = uv.log.path.with_suffix(".constraints.txt")
    pins = sorted(f"{name}=={version}" for name, version in environment.packages.items())
    atomic.write_text(kept, "\n".join(pins) + "\n")
    offline = ["--no-index"] if no_index(uv.settings) else []
    asked: Command = [find_uv(), "pip", "install", "--dry-run", *offline, "--python", environment.python, "-c", kept]
    said: list[str] = []
    execute([*asked, *requirements], uv.environ(), uv.log, said.append)
    output = "".join(said)
    if replaced := CHANGED.findall(output):
        raise InstallError(f"they need another version of {', '.join(replaced)}")
    return added(output)
