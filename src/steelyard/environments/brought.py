"""An interpreter of the user's own, that holds a framework already: examined, never changed."""

import hashlib
import json
import os
from dataclasses import asdict
from pathlib import Path

from steelyard.catalog import frameworks
from steelyard.environments.install import environments_folder
from steelyard.environments.interpreter import OLDEST_PYTHON, Answer, StartError, ask, starts
from steelyard.environments.lock import framework_names, python_pair, read_locks
from steelyard.environments.spec import Environment
from steelyard.environments.stamp import stamp_of
from steelyard.errors import UserError, nearest


def bring(name: str, python: Path | str) -> Environment:
    """The environment inside an interpreter that the user names; any Python from 3.10 on.

    `name` is a framework, or `framework@anything` to tell two interpreters apart. Packages installed for
    the user alone (`pip install --user`) do not count: workers do not see them either.
    Raises `UserError` when the file is missing, is not a Python, is too old, or when the framework in it
    is absent or does not import.
    """
    framework = name.partition("@")[0]
    import_name = _import_name(framework)
    path = _checked_path(framework, Path(python).expanduser())
    answer = _remembered(path, import_name) or _examined(framework, path, import_name)
    return Environment(
        name=name,
        framework=framework,
        version=answer.version,
        accelerator="",
        python=path,
        python_version=answer.python_version,
        packages=answer.packages,
        brought=True,
    )


def _import_name(framework: str) -> str:
    known = framework_names(locks := read_locks())
    if framework not in known and framework in frameworks.all_frameworks():
        return frameworks.framework(framework).module
    if framework not in known:
        raise UserError(f"There is no framework '{framework}'.{nearest(framework, known)}")
    return next(lock.import_name for lock in locks if lock.framework == framework)


def _checked_path(framework: str, path: Path) -> Path:
    # Not resolved: a virtual environment's interpreter is a link, and finds its packages by where it lies.
    path = Path(os.path.abspath(path))  # noqa: PTH100
    if path.is_dir():
        raise UserError(f"--env {framework}={path} is a folder; name the interpreter in it, .../bin/python.")
    if not path.exists():
        raise UserError(f"--env {framework}={path}: there is no such file.")
    return path


def _examined(framework: str, path: Path, import_name: str) -> Answer:
    version = _python_version(framework, path)
    if python_pair(version) < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        raise UserError(f"--env {framework}={path} is Python {version}; steelyard needs {oldest} or newer.")
    try:
        answer = ask(path, import_name)
    except StartError as error:
        raise UserError(f"--env {framework}={path}: `import {import_name}` broke the interpreter: {error}.") from error
    if answer.import_error.startswith("ModuleNotFoundError") and f"'{import_name}'" in answer.import_error:
        raise UserError(
            f"--env {framework}={path} (Python {version}) does not hold {framework}: it has no module"
            f" '{import_name}'. Install it there, or leave --env out and steelyard makes an environment."
        )
    if answer.import_error:
        raise UserError(f"--env {framework}={path}: `import {import_name}` fails there: {answer.import_error}.")
    _remember(path, import_name, answer)
    return answer


def _python_version(framework: str, path: Path) -> str:
    try:
        return ask(path).python_version
    except StartError as error:
        raise UserError(f"--env {framework}={path} is not a working Python interpreter: {error}.") from error


def _record(path: Path, import_name: str) -> Path:
    key = hashlib.sha256(f"{path}\0{import_name}".encode()).hexdigest()[:16]
    return environments_folder() / "brought" / f"{key}.json"


def _remember(path: Path, import_name: str, answer: Answer) -> None:
    """Keep the answer while nothing in the interpreter's package folders changes: an import takes seconds."""
    record = _record(path, import_name)
    record.parent.mkdir(parents=True, exist_ok=True)
    told = {"stamp": stamp_of(path, answer.folders), "answer": asdict(answer)}
    record.write_text(json.dumps(told), "utf-8")


def _remembered(path: Path, import_name: str) -> Answer | None:
    try:
        told = json.loads(_record(path, import_name).read_text("utf-8"))
        answer = Answer(**told["answer"])
        unchanged = told["stamp"] == stamp_of(path, answer.folders)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return answer if unchanged and starts(path) else None
