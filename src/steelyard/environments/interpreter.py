"""Interpreters: clean variables for a child process, and what an interpreter contains."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from steelyard.environments.folders import state_folder
from steelyard_worker import variables

OLDEST_PYTHON = (3, 10)
RESULT_MARK = "STEELYARD-PROBE "
# Cold, and next to other imports on two cores, the slowest framework took 17 s; a network disk can add much to that.
IMPORT_LIMIT_S = 300.0
START_LIMIT_S = 30.0


@dataclass(frozen=True)
class InterpreterInfo:
    """What an interpreter contains. `import_error` is empty when the framework was imported.

    `folders`: where it imports from; `module_folders`: where it found the framework. `packages` maps every installed distribution
    to its version.
    """

    python_version: str
    folders: list[str]
    module_folders: list[str] = field(default_factory=list)
    packages: dict[str, str] = field(default_factory=dict)
    version: str = ""
    import_error: str = ""


class StartError(Exception):
    """The interpreter did not start or gave no result; the text says what happened."""


class TimeLimitError(StartError):
    """The interpreter gave no result in time and was ended."""


def clean_environ(python: Path | None = None, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables for a child process, with the programs next to `python` first in PATH.

    Only those are passed on that change neither results nor speed, and those that say where libraries are.
    """
    environ = variables.passed(os.environ if base is None else base)
    if python is not None:
        folders = [str(python.parent), *filter(None, [environ.get("PATH", os.defpath)])]
        environ["PATH"] = os.pathsep.join(folders)
    return environ


def command(python: Path) -> list[str]:
    """Return how to start an interpreter: isolated from the user's settings, its byte code in a folder of steelyard's own.

    Byte code beside the packages could differ from its source without a trace, so it is never read.
    """
    own = str(python) == sys.executable
    return [str(python), "-I", *([] if own else ["-X", f"pycache_prefix={bytecode_folder(python)}"])]


def bytecode_folder(python: Path) -> Path:
    """Return the folder for the byte code of an interpreter's packages; it is deleted when their contents change."""
    return state_folder(python) / "bytecode"


def starts(python: Path) -> bool:
    """Return whether the interpreter runs at all (about 15 ms)."""
    try:
        return _run(python, ["-S", "-c", "pass"], START_LIMIT_S).returncode == 0
    except StartError:
        return False


def inspect_interpreter(python: Path, import_name: str = "", limit_s: float = IMPORT_LIMIT_S) -> InterpreterInfo:
    """Start the interpreter, import `import_name` if it is given, and return what it contains.

    Raises `StartError` when the interpreter does not start or crashes, `TimeLimitError` when it takes over `limit_s` seconds.
    """
    source = (Path(__file__).parent / "probe.py").read_text("utf-8")
    done = _run(python, ["-c", source, import_name], limit_s if import_name else min(limit_s, START_LIMIT_S))
    for line in reversed(done.stdout.splitlines()):
        if line.startswith(RESULT_MARK):
            return InterpreterInfo(**json.loads(line.removeprefix(RESULT_MARK)))
    if done.returncode < 0:
        raise StartError(f"it was ended by signal {-done.returncode}")
    last = (done.stderr.strip().splitlines() or ["nothing"])[-1]
    raise StartError(f"it ended with code {done.returncode} and printed: {last[:300]}")


def _run(python: Path, arguments: list[str], limit_s: float) -> subprocess.CompletedProcess[str]:
    try:
        process = subprocess.Popen(
            [*command(python), *arguments],
            env=clean_environ(python),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise StartError(error.strerror or str(error)) from error
    with process:
        try:
            output = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired as error:
            raise TimeLimitError(f"it gave no result within {error.timeout:.0f} s") from error
        finally:
            _end(process)
    return subprocess.CompletedProcess(process.args, process.returncode, *output)


def _end(process: "subprocess.Popen[str]") -> None:
    """End what is left of the process group: a child of the interpreter could keep its output open for ever."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
