"""A child interpreter finds its own packages, whatever variables the user's shell sets."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import fake_uv
import pytest

from steelyard.environments import clean_environ, fetch_package, interpreter
from steelyard.environments.folders import python_in, site_folders
from steelyard.environments.interpreter import StartError, TimeLimitError, inspect_interpreter, starts
from steelyard.environments.uv import user_environ
from steelyard.errors import UserError

MISLEADING = {
    "PYTHONPATH": "/elsewhere",
    "PYTHONHOME": "/elsewhere",
    "VIRTUAL_ENV": "/elsewhere",
    "CONDA_PREFIX": "/elsewhere",
    "PIP_TARGET": "/elsewhere",
    "UV_PYTHON": "/elsewhere",
}


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """The interpreter of a bare environment."""
    fake_uv.venv.create(tmp_path / "bare", symlinks=True)
    return python_in(tmp_path / "bare")


def test_the_environments_own_programs_come_first(python: Path) -> None:
    path = clean_environ(python, {"PATH": "/bin"})["PATH"]
    assert path.split(os.pathsep) == [str(python.parent), "/bin"]


def test_uv_gets_the_users_settings_except_those_that_redirect_it() -> None:
    own = {"UV_CACHE_DIR": "/cache", "HTTPS_PROXY": "http://proxy"}
    assert user_environ({**MISLEADING, **own, "UV_CONSTRAINT": "c.txt", "UV_X_BACKEND": "auto"}) == own


def test_a_misleading_shell_does_not_reach_a_child(monkeypatch: pytest.MonkeyPatch, python: Path) -> None:
    for name, value in MISLEADING.items():
        monkeypatch.setenv(name, value)
    script = "import json, sys; print(json.dumps([sys.prefix, sys.path]))"
    done = subprocess.run([python, "-c", script], capture_output=True, env=clean_environ(python), check=True)
    prefix, path = json.loads(done.stdout)
    assert prefix == str(python.parents[1])
    assert "/elsewhere" not in path
    assert starts(python)


def test_a_framework_that_prints_and_hangs_at_exit_can_be_inspected(
    python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreter, "IMPORT_LIMIT_S", 20.0)
    body = "import atexit, time; print('banner, no newline', end=''); atexit.register(time.sleep, 600)"
    fake_uv.write_package(site_folders(python.parents[1])[0], "1.0", body)
    assert inspect_interpreter(python, "tinyframework").version == "1.0"


def test_modules_in_the_working_folder_do_not_hide_the_standard_library(
    python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise RuntimeError('not me')")
    monkeypatch.chdir(tmp_path)
    assert inspect_interpreter(python).python_version


def test_a_missing_interpreter_does_not_start() -> None:
    assert not starts(Path("/absent/python"))
    with pytest.raises(StartError, match="No such file"):
        inspect_interpreter(Path("/absent/python"))


def test_an_interpreter_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    # The child has the same output, so that reading to its end would wait for it.
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nsleep 60 & echo $! >" + str(tmp_path / "child") + "\nwait\n")
    program.chmod(0o755)
    began = time.monotonic()
    with pytest.raises(TimeLimitError, match="it gave no result within 1 s"):
        inspect_interpreter(program, "tinyframework", 1.0)
    assert time.monotonic() - began < 30
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 10
    while is_running(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(child)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_a_downloaded_package_is_complete(fake_uv: "object", tmp_path: Path) -> None:
    target = tmp_path / "data" / "tiny"
    assert fetch_package("tiny-framework==1.2.3", target) == target
    assert (target / "tinyframework" / "kernels.py").exists()
    assert [path.name for path in target.parent.iterdir() if path.suffix != ".lock"] == ["tiny"]
    (target / "mine").touch()
    assert fetch_package("tiny-framework==1.2.3", target) == target
    assert (target / "mine").exists()


def test_a_package_that_cannot_be_downloaded_leaves_nothing(fake_uv: "object", tmp_path: Path) -> None:
    fake_uv.behave("prints:error sending request: Connection refused")  # type: ignore[attr-defined]
    with pytest.raises(UserError, match="The package x==1 could not be downloaded: the package registry cannot"):
        fetch_package("x==1", tmp_path / "data")
    assert [path.name for path in tmp_path.iterdir() if "data" in path.name and path.suffix != ".lock"] == []


def test_only_steelyards_own_interpreter_reads_byte_code_beside_its_packages(cache: Path) -> None:
    assert interpreter.command(Path(sys.executable)) == [sys.executable, "-I"]
    program, isolated, option, prefix = interpreter.command(Path("/mine/bin/python"))
    assert (program, isolated, option) == ("/mine/bin/python", "-I", "-X")
    assert prefix.startswith(f"pycache_prefix={cache}/environments/interpreters/")
