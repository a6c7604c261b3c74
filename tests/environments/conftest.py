"""A cache of its own for each test, a tiny framework's lock file, and a stand-in for uv."""

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from environment_doubles import Events, FakeUv

from steelyard.environments import ensure, external, interpreter, interpreter_cache, uv, verification
from steelyard.environments.interpreter import InterpreterInfo
from steelyard.environments.lock import parse_lock
from steelyard.environments.spec import EnvironmentSpec

OWN_PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
TINY_LOCK = f"""# framework = tiny
# version = 1.2.3
# accelerator = cpu
# import = tinyframework
# distribution = tiny-framework
# python = 3.10 to {OWN_PYTHON}
# installed mb = 1

tiny-framework==1.2.3
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder of this test."""
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def _small_interpreters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpreters import from their package folders alone: to read a standard library takes half a second."""
    inspect = interpreter.inspect_interpreter

    def inspected(python: Path, module: str = "", limit_s: float = interpreter.IMPORT_LIMIT_S) -> InterpreterInfo:
        found = inspect(python, module, limit_s)
        return replace(found, folders=[folder for folder in found.folders if folder.endswith("-packages")])

    for each in (external, interpreter_cache, verification):
        monkeypatch.setattr(each, "inspect_interpreter", inspected)


@pytest.fixture
def events() -> Events:
    return Events([])


@pytest.fixture
def fake_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeUv:
    """A stand-in that is used in place of uv."""
    folder = tmp_path / "fake"
    folder.mkdir()
    shutil.copy(Path(__file__).parent / "fake_uv.py", folder)
    program = folder / "uv"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{folder}/fake_uv.py" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr(uv, "find_uv", lambda: program)
    return FakeUv(folder)


@pytest.fixture
def tiny() -> EnvironmentSpec:
    """The specification of the tiny framework's environment."""
    lock = parse_lock("tiny-1.2.3-cpu", TINY_LOCK)
    return EnvironmentSpec("tiny", lock, OWN_PYTHON)


@pytest.fixture
def created(fake_uv: FakeUv, tiny: EnvironmentSpec) -> Path:
    """The folder of a working environment."""
    folder = ensure(tiny).folder
    assert folder
    return folder
