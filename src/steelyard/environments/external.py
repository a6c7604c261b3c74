"""External interpreters: given by the user, already with a framework; inspected, never changed."""

import hashlib
import json
import os
from dataclasses import asdict
from pathlib import Path

from steelyard.catalog import frameworks
from steelyard.environments.folders import environments_folder
from steelyard.environments.interpreter import OLDEST_PYTHON, InterpreterInfo, StartError, inspect_interpreter, starts
from steelyard.environments.lock import python_pair, read_locks
from steelyard.environments.spec import Environment, EnvironmentName
from steelyard.environments.stamp import stamp_of
from steelyard.errors import UserError, nearest


def external_environment(name: EnvironmentName, python: Path) -> Environment:
    """Return the environment in an interpreter of the user's own, Python 3.10 or newer.

    The version in the name can be anything; it distinguishes two interpreters. Packages installed with
    `pip install --user` do not count, because workers do not see them either.
    Raises `UserError` when the file is missing, is not a Python, is too old, or when the framework is not
    installed or cannot be imported.
    """
    import_name = _import_name(name.framework)
    path = _checked_path(name.framework, python.expanduser())
    info = _read_record(path, import_name) or _inspected(name.framework, path, import_name)
    return Environment(str(name), name.framework, info.version, path, info.python_version, info.packages)


def _import_name(framework: str) -> str:
    names = {lock.framework: lock.import_name for lock in read_locks()}
    if framework in names:
        return names[framework]
    if framework in frameworks.all_frameworks():
        return frameworks.framework(framework).module
    raise UserError(f"There is no framework '{framework}'.{nearest(framework, list(names))}")


def _checked_path(framework: str, path: Path) -> Path:
    # Not resolved: the interpreter of a virtual environment is a link and finds its packages by the link's path.
    path = Path(os.path.abspath(path))  # noqa: PTH100
    if path.is_dir():
        raise UserError(f"--env {framework}={path} is a folder. Name the interpreter in it, such as bin/python.")
    if not path.exists():
        raise UserError(f"--env {framework}={path}: there is no such file. Name a Python interpreter.")
    return path


def _inspected(framework: str, path: Path, import_name: str) -> InterpreterInfo:
    given = f"--env {framework}={path}"
    try:
        version = inspect_interpreter(path).python_version
    except StartError as error:
        raise UserError(f"{given} is not a working Python interpreter: {error}.") from error
    if python_pair(version) < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        raise UserError(f"{given} is Python {version}. Name an interpreter of Python {oldest} or newer.")
    try:
        info = inspect_interpreter(path, import_name)
    except StartError as error:
        raise UserError(f"{given}: `import {import_name}` crashes the interpreter: {error}.") from error
    if info.import_error.startswith("ModuleNotFoundError") and f"'{import_name}'" in info.import_error:
        raise UserError(
            f"{given} (Python {version}) does not contain {framework}: it has no module '{import_name}'."
            f" Install it there, or leave --env out and steelyard creates an environment."
        )
    if info.import_error:
        raise UserError(f"{given}: `import {import_name}` fails: {info.import_error}.")
    _write_record(path, import_name, info)
    return info


def _record(path: Path, import_name: str) -> Path:
    key = hashlib.sha256(f"{path}\0{import_name}".encode()).hexdigest()[:16]
    return environments_folder() / "external" / f"{key}.json"


def _write_record(path: Path, import_name: str, info: InterpreterInfo) -> None:
    """Store the result while the interpreter's package folders stay unchanged, because an import takes seconds."""
    record = _record(path, import_name)
    record.parent.mkdir(parents=True, exist_ok=True)
    values = {"stamp": stamp_of(path, info.folders), "info": asdict(info)}
    record.write_text(json.dumps(values), "utf-8")


def _read_record(path: Path, import_name: str) -> InterpreterInfo | None:
    try:
        values = json.loads(_record(path, import_name).read_text("utf-8"))
        info = InterpreterInfo(**values["info"])
        unchanged = values["stamp"] == stamp_of(path, info.folders)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return info if unchanged and starts(path) else None
