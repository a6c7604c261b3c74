"""Packages that a side needs beside its framework: in an environment of their own, laid over the managed one."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
from typing import TYPE_CHECKING

from steelyard.environments import verification
from steelyard.environments.execution import execute
from steelyard.environments.folders import environments_folder, locked, python_in, site_folders
from steelyard.environments.install_errors import InstallError
from steelyard.environments.pip_settings import no_index
from steelyard.environments.uv import Uv, find_uv, open_log
from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard.files.folders import remove_folder

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
    folder = environments_folder() / _name(side.requirements, environment.folder, environment)
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


def _name(requirements: Sequence[str], managed: Path, environment: Environment) -> str:
    """Return the name of a folder beside the managed one, so that `steelyard env` lists and removes it like the others."""
    parts = (environment.contents, str(managed), environment.python_version, *sorted(requirements))
    framework, version, accelerator, _ = managed.name.rsplit("-", 3)
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
    return f"{framework}-{version}+required-{accelerator}-{key}"


def _make(side: SideSpec, environment: Environment, folder: Path) -> None:
    uv = Uv(open_log(folder.name))
    try:
        remove_folder(folder)
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
    _lay_over(folder, environment)
    atomic.write_text(folder / MARKER, json.dumps({"packages": packages}, indent=1))


def _lay_over(folder: Path, environment: Environment) -> None:
    """Let the packages of the managed environment be found behind those of a folder, and mark the folder as an environment."""
    assert environment.folder is not None
    (own,), managed = site_folders(folder), site_folders(environment.folder)
    # addsitedir, because it also reads the .pth files of the managed environment; it comes behind the side's own packages.
    lines = [f"import site; site.addsitedir({str(path)!r})" for path in managed]
    atomic.write_text(own / LAID_OVER, "\n".join(lines) + "\n")
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    atomic.write_text(
        folder / verification.MARKER, json.dumps({"name": environment.name, "verified_at": now}, indent=1)
    )


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
