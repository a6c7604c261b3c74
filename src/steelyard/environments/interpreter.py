"""Interpreters: clean variables for a child process, and what an interpreter contains."""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

OLDEST_PYTHON = (3, 10)
RESULT_MARK = "STEELYARD-PROBE "
# Cold, and next to other imports on two cores, the slowest framework took 17 s; a network disk can add much to that.
IMPORT_LIMIT_S = 300.0
START_LIMIT_S = 30.0

# Variables with these prefixes change which packages a child interpreter finds, or how fast it runs.
MISLEADING = ("PYTHON", "PIP_", "UV_", "CONDA", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__", "_PYTHON")


@dataclass(frozen=True)
class InterpreterInfo:
    """What an interpreter contains. `import_error` is empty when the framework was imported."""

    python_version: str
    folders: list[str]
    packages: dict[str, str] = field(default_factory=dict)
    version: str = ""
    import_error: str = ""


class StartError(Exception):
    """The interpreter did not start or gave no result; the text says what happened."""


def clean_environ(python: Path | None = None, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables for a child process, with the programs next to `python` first in PATH.

    The variables of Python, pip, uv and conda are left out; all others stay.
    """
    source = os.environ if base is None else base
    environ = {name: value for name, value in source.items() if not name.startswith(MISLEADING)}
    if python is not None:
        folders = [str(python.parent), *filter(None, [environ.get("PATH", os.defpath)])]
        environ["PATH"] = os.pathsep.join(folders)
    return environ


def starts(python: Path) -> bool:
    """Return whether the interpreter runs at all (about 15 ms)."""
    try:
        return _run(python, ["-S", "-c", "pass"], START_LIMIT_S).returncode == 0
    except StartError:
        return False


def inspect_interpreter(python: Path, import_name: str = "") -> InterpreterInfo:
    """Start the interpreter, import `import_name` if it is given, and return what it contains.

    Raises `StartError` when the interpreter does not start, crashes, or takes too long.
    """
    source = (Path(__file__).parent / "probe.py").read_text("utf-8")
    done = _run(python, ["-c", source, import_name], IMPORT_LIMIT_S if import_name else START_LIMIT_S)
    for line in reversed(done.stdout.splitlines()):
        if line.startswith(RESULT_MARK):
            return InterpreterInfo(**json.loads(line.removeprefix(RESULT_MARK)))
    if done.returncode < 0:
        raise StartError(f"it was ended by signal {-done.returncode}")
    last = (done.stderr.strip().splitlines() or ["nothing"])[-1]
    raise StartError(f"it ended with code {done.returncode} and printed: {last[:300]}")


def _run(python: Path, arguments: list[str], limit_s: float) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            [python, "-I", *arguments], env=clean_environ(python), stdin=subprocess.DEVNULL, capture_output=True,
            text=True, errors="replace", timeout=limit_s, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise StartError(f"it gave no result within {error.timeout:.0f} s") from error
    except OSError as error:
        raise StartError(error.strerror or str(error)) from error
