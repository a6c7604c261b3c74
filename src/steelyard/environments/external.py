"""External interpreters: given by the user, already with a framework; inspected, never changed."""

import os
from pathlib import Path

from steelyard.catalog import frameworks
from steelyard.environments.folders import locked, state_folder
from steelyard.environments.interpreter import (
    IMPORT_LIMIT_S,
    OLDEST_PYTHON,
    StartError,
    TimeLimitError,
    inspect_interpreter,
)
from steelyard.environments.interpreter_cache import Known, examine, identity, unchanged
from steelyard.environments.lock import python_pair, read_locks
from steelyard.environments.progress import Progress, Report, quiet
from steelyard.environments.spec import Environment, EnvironmentName
from steelyard.errors import UserError, nearest


def checked_path(name: str, python: Path) -> Path:
    """Return the absolute path of a user's interpreter for an environment. UserError: there is no such file."""
    # Not resolved: the interpreter of a virtual environment is a link and finds its packages by the link's path.
    path = Path(os.path.abspath(python.expanduser()))  # noqa: PTH100
    if path.is_dir():
        raise UserError(f"--env {name}={path} is a folder. Name the interpreter in it, such as bin/python.")
    if not path.exists():
        raise UserError(f"--env {name}={path}: there is no such file. Name a Python interpreter.")
    return path


def external_environment(
    name: EnvironmentName, python: Path, report: Report = quiet, limit_s: float = IMPORT_LIMIT_S
) -> Environment:
    """Return the environment in an interpreter of the user's own, Python 3.10 or newer.

    The version in the name can be anything; it distinguishes two interpreters. Packages installed with
    `pip install --user` do not count, because workers do not see them either.
    Raises `UserError` when the file is missing, is not a Python, is too old, or when the framework is not
    installed or cannot be imported within `limit_s` seconds.
    """
    module = _import_name(name.framework)
    path = checked_path(str(name), python)
    with locked(
        state_folder(path), lambda: report(Progress(str(name), "waiting", sentence="another process examines it"))
    ):
        report(Progress(str(name), "checking"))
        known = unchanged(path, module)
        if known is None:
            report(Progress(str(name), "verifying", sentence=f"importing {module} in {path}"))
            known = _examined(name.framework, path, module, limit_s)
    report(Progress(str(name), "ready"))
    info = known.info
    return Environment(
        str(name), name.framework, info.version, path, info.python_version, info.packages, contents=identity(known)
    )


def _import_name(framework: str) -> str:
    names = {lock.framework: lock.import_name for lock in read_locks()}
    if framework in names:
        return names[framework]
    if framework in frameworks.all_frameworks():
        return frameworks.framework(framework).module
    raise UserError(f"There is no framework '{framework}'.{nearest(framework, list(names))}")


def _examined(framework: str, path: Path, module: str, limit_s: float) -> Known:
    given = f"--env {framework}={path}"
    try:
        bare = inspect_interpreter(path, "", limit_s)
    except StartError as error:
        raise UserError(f"{given} is not a working Python interpreter: {error}.") from error
    version = bare.python_version
    if python_pair(version) < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        raise UserError(f"{given} is Python {version}. Name an interpreter of Python {oldest} or newer.")
    try:
        known = examine(path, bare, module, limit_s)
    except TimeLimitError as error:
        raise UserError(f"{given}: `import {module}` hangs: {error}. Allow more time with --silence.") from error
    except StartError as error:
        raise UserError(f"{given}: `import {module}` crashes the interpreter: {error}.") from error
    failed = known.info.import_error
    if failed.startswith("ModuleNotFoundError") and f"'{module}'" in failed:
        raise UserError(
            f"{given} (Python {version}) does not contain {framework}: it has no module '{module}'."
            f" Install it there, or leave --env out and steelyard creates an environment."
        )
    if failed:
        raise UserError(f"{given}: `import {module}` fails: {failed}.")
    return known
