"""Interpreters: how to start one cleanly, what is in it, and where to find one of a wanted version."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from steelyard.environments.lock import python_pair

OLDEST_PYTHON = (3, 10)
ANSWER_MARK = "STEELYARD-PROBE "
# Cold, and beside other imports on two cores, the slowest framework took 17 s; a network disk may add much.
IMPORT_LIMIT_S = 300.0
START_LIMIT_S = 30.0

# A variable with one of these beginnings would change what a child interpreter finds or how fast it runs.
MISLEADING = ("PYTHON", "PIP_", "UV_", "CONDA", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__", "_PYTHON")

# Of the user's own settings for uv, these would send packages elsewhere or change what is chosen.
MISLEADING_UV = (
    "UV_PYTHON",
    "UV_SYSTEM_PYTHON",
    "UV_BREAK_SYSTEM_PACKAGES",
    "UV_PROJECT",
    "UV_PROJECT_ENVIRONMENT",
    "UV_WORKING_DIR",
    "UV_CONSTRAINT",
    "UV_OVERRIDE",
    "UV_EXCLUDE",
    "UV_REQUIRE_HASHES",
    "UV_RESOLUTION",
    "UV_PRERELEASE",
    "UV_VENV_SEED",
)


@dataclass(frozen=True)
class Answer:
    """What an interpreter said about itself. `import_error` is empty when the framework imported."""

    python_version: str
    executable: str
    folders: tuple[str, ...] = ()
    packages: dict[str, str] = field(default_factory=dict)
    version: str = ""
    import_error: str = ""


class StartError(Exception):
    """The interpreter did not start or did not answer; the text says what happened."""


def clean_environ(python: Path | None = None, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables for a child process: nothing that misleads it, its own programs first in PATH.

    Python's, pip's, uv's and conda's own variables go; everything else stays.
    """
    source = os.environ if base is None else base
    environ = {name: value for name, value in source.items() if not name.startswith(MISLEADING)}
    if python is not None:
        folders = [str(python.parent), *filter(None, [environ.get("PATH", os.defpath)])]
        environ["PATH"] = os.pathsep.join(folders)
    return environ


def installer_environ(base: Mapping[str, str] | None = None) -> dict[str, str]:
    """As `clean_environ`, but the user's own settings for uv stay: its cache, certificates, time-outs."""
    source = os.environ if base is None else base
    kept = {name: value for name, value in source.items() if name.startswith("UV_") and not _misleads_uv(name)}
    return {**clean_environ(base=source), **kept}


def _misleads_uv(name: str) -> bool:
    # uv can choose a framework's accelerator build by itself (`UV_..._BACKEND`); here the lock chooses.
    return name in MISLEADING_UV or name.endswith("_BACKEND")


def programs_folder(folder: Path) -> Path:
    """Where a virtual environment keeps its programs."""
    return folder / ("Scripts" if os.name == "nt" else "bin")


def python_in(folder: Path) -> Path:
    """The interpreter of a virtual environment."""
    return programs_folder(folder) / ("python.exe" if os.name == "nt" else "python")


def starts(python: Path) -> bool:
    """Whether the interpreter runs at all (about 15 ms)."""
    try:
        done = subprocess.run(
            [python, "-I", "-S", "-c", "pass"],
            capture_output=True,
            timeout=START_LIMIT_S,
            env=clean_environ(python),
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def ask(python: Path, import_name: str = "") -> Answer:
    """Start the interpreter, import `import_name` (none when empty), return what it says about itself.

    Raises `StartError` when it does not start, crashes, or does not answer in time.
    """
    source = (Path(__file__).parent / "probe.py").read_text("utf-8")
    try:
        done = subprocess.run(
            [python, "-I", "-c", source, import_name],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=IMPORT_LIMIT_S if import_name else START_LIMIT_S,
            env=clean_environ(python),
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise StartError(f"it did not answer within {error.timeout:.0f} s") from error
    except OSError as error:
        raise StartError(error.strerror or str(error)) from error
    return _read_answer(done)


def _read_answer(done: "subprocess.CompletedProcess[str]") -> Answer:
    for line in reversed(done.stdout.splitlines()):
        if line.startswith(ANSWER_MARK):
            said = json.loads(line.removeprefix(ANSWER_MARK))
            return Answer(
                said["python_version"],
                said["executable"],
                tuple(said["folders"]),
                said.get("packages", {}),
                said.get("version", ""),
                said.get("import_error", ""),
            )
    if done.returncode < 0:
        raise StartError(f"it was killed by signal {-done.returncode}")
    last = (done.stderr.strip().splitlines() or ["nothing"])[-1]
    raise StartError(f"it ended with code {done.returncode} and said: {last[:300]}")


def find_python(version: str, uv: Path | None = None) -> Path | None:
    """An interpreter `'3.11'` on this machine: this one, one in PATH, or one that uv knows of."""
    if python_pair(version) == sys.version_info[:2]:
        return Path(sys.executable)
    if (found := shutil.which(f"python{version}")) and _is_version(Path(found), version):
        return Path(found)
    return _python_of_uv(version, uv) if uv else None


def _is_version(python: Path, version: str) -> bool:
    try:
        return python_pair(ask(python).python_version) == python_pair(version)
    except StartError:
        return False


def _python_of_uv(version: str, uv: Path) -> Path | None:
    command = [str(uv), "python", "find", "--no-python-downloads", "--no-project", version]
    done = subprocess.run(command, capture_output=True, text=True, env=installer_environ(), check=False)
    found = Path(done.stdout.strip())
    return found if done.returncode == 0 and found.is_file() else None
