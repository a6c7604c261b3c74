"""What all tests share: the command line run for real, interpreters that hold a framework, and how hypothesis draws."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from steelyard.files.paths import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable

REPOSITORY = Path(__file__).resolve().parent.parent
WORKLOADS = REPOSITORY / "tests" / "workloads"
LIMIT_S = 120
USERS_CACHE = cache_folder()  # as it was before any test set another

settings.register_profile("steelyard", deadline=None, max_examples=60)
settings.register_profile("steelyard-ci", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("steelyard-ci" if os.environ.get("CI") == "true" else "steelyard")


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of this test session's own: weights, certificates, and the machine's peak are made once in it."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def framework_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of this session's own, except that the framework environments are those of the user's cache."""
    folder = tmp_path_factory.mktemp("framework-cache")
    environments = USERS_CACHE / "environments"
    environments.mkdir(parents=True, exist_ok=True)
    (folder / "environments").symlink_to(environments, target_is_directory=True)
    return folder


@pytest.fixture(scope="session")
def command() -> list[str]:
    """The command line's own beginning."""
    return [sys.executable, "-m", "steelyard"]


@pytest.fixture(scope="session")
def surroundings(cache: Path) -> Callable[..., dict[str, str]]:
    """Variables for a steelyard that must not touch the user's folders: `surroundings(home, NAME=value)`."""

    def of(home: Path, **env: str) -> dict[str, str]:
        own = {
            "STEELYARD_CACHE": str(cache),
            "STEELYARD_RUNS": str(home),
            "PYTHONPATH": str(REPOSITORY / "src"),
            "COLUMNS": "160",
        }
        return {**os.environ, "PYTHONWARNINGS": "error", **own, **env}

    return of


@pytest.fixture(scope="session")
def shared_steelyard(
    command: list[str], surroundings: Callable[..., dict[str, str]]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `steelyard *argv` with a home of the caller's choice; a traceback fails the test whatever it looks for."""

    def run(home: Path, *argv: str, **env: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*command, *map(str, argv)],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            env=surroundings(home, **env),
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert "Traceback" not in done.stdout, done.stdout
        return done

    return run


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder that stands for the user's own data folder; runs are kept in `runs` below it."""
    return tmp_path / "home"


@pytest.fixture
def steelyard(
    home: Path, shared_steelyard: Callable[..., subprocess.CompletedProcess[str]]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command line in a process of its own: `steelyard(*argv, **env)`; runs and cache are temporary."""

    def run(*argv: str, **env: str) -> subprocess.CompletedProcess[str]:
        return shared_steelyard(home, *argv, **env)

    return run


@pytest.fixture(scope="session")
def environment() -> Callable[[str], Path]:
    """Return the interpreter of a framework's environment: `environment(name)`; kept in the user's cache between runs.

    Tests that use it are marked `conformance`.
    """
    from steelyard.environments import Environment, ensure_all, plan_environments

    known: dict[str, Path] = {}

    def ensured(name: str) -> Path:
        if name not in known:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("STEELYARD_CACHE", str(USERS_CACHE))
                made = ensure_all(plan_environments([name]), lambda event: None)[name]
            assert isinstance(made, Environment), made.sentence
            known[name] = made.python
        return known[name]

    return ensured
