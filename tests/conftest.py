"""Fixtures for all tests: the command line in its own process, interpreters with a framework, settings of hypothesis."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from caches_of_tests import free_cache, remove_older_caches, renew
from hypothesis import Phase, settings
from machine_limits import share_limits

from steelyard.console import Screen
from steelyard.files.paths import cache_folder
from steelyard.host.machine_lock import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytest_plugins = ("proved",)

REPOSITORY = Path(__file__).resolve().parent.parent
WORKLOADS = REPOSITORY / "tests" / "workloads"
LIMIT_S = 300  # much longer than any command takes, also beside other tests
USERS_CACHE = cache_folder()  # read before any test sets STEELYARD_CACHE

# Several processes take one file of tests at a time. Those that take longest come first, so that none is left to one process at
# the end.
LONGEST = (
    "cluster/test_cluster_runs.py",
    "cluster/test_strategies_over_nodes.py",
    "report/test_untrusted_files.py",
    "report/test_studies.py",
    "cluster/test_node_faults.py",
    "cluster/",
    "end_to_end/",
)

# Tests run at once, and nodes of a cluster are simulated on one machine: the lock of all its users would make them wait.
os.environ[VARIABLE] = ""

settings.register_profile("steelyard", deadline=None, max_examples=60)
settings.register_profile("steelyard-ci", deadline=None, max_examples=60, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=1500)
# For `make mutants`: the same examples for every mutant, and no time spent on simpler ones than the first that fails.
settings.register_profile(
    "mutants", deadline=None, max_examples=60, derandomize=True, database=None, phases=[Phase.explicit, Phase.generate]
)
settings.load_profile("steelyard-ci" if os.environ.get("CI") == "true" else "steelyard")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take longest first."""
    items.sort(key=lambda item: _rank(item.path.relative_to(REPOSITORY / "tests").as_posix()))


def _rank(name: str) -> int:
    """Return the place of a file, given by its path in `tests/`, among those that take long; all others are equal."""
    return next((place for place, start in enumerate(LONGEST) if name.startswith(start)), len(LONGEST))


@pytest.fixture(scope="session", autouse=True)
def _key_of_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the key that marks records in a temporary folder: tests leave nothing in the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEELYARD_STATE", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True)
def _open_screens_are_closed() -> Iterator[None]:
    """Close what a test has left open: after 30 s, it would write its sign of life into the output of another test."""
    opened: list[Screen] = []
    stage = Screen.stage

    def noted(screen: Screen, title: str) -> None:
        opened.append(screen)
        stage(screen, title)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Screen, "stage", noted)
        yield
    for each in opened:
        each.close()


@pytest.fixture(scope="session")
def machine_limits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for this machine's peaks and bandwidths, for `share_limits`; all processes of pytest have the same one."""
    folder = tmp_path_factory.getbasetemp()
    shared = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    (shared / "machines").mkdir(exist_ok=True)
    return shared / "machines"


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory, machine_limits: Path) -> Path:
    """A temporary cache, shared by the session: weights, certificates and the machine's limits are created once."""
    folder = tmp_path_factory.mktemp("session") / "cache"
    share_limits(folder, machine_limits)
    return folder


@pytest.fixture(scope="session")
def framework_cache() -> Iterator[Path]:
    """A cache for tests of real frameworks: weights, data and compiled code of earlier sessions of the same code.

    The environments are those of the user's cache. Certificates are made anew in every session: what need not be proved again is
    not run at all (`proved.py`), and what is run, such as the sample, must not read what an earlier session has concluded.
    The folder's name is always the same, and another one only while another session uses it: the byte code of the environments'
    packages is found by their paths, and to compile it again takes a minute.
    """
    folder, lock = free_cache(USERS_CACHE)
    try:
        renew(folder, judging_code(), USERS_CACHE / "environments")
        remove_older_caches(folder.parent)
        yield folder
    finally:
        lock.release()


def judging_code() -> str:
    """Return a hash of the orchestrator's code, without the rooms that only show what was measured."""
    root = REPOSITORY / "src" / "steelyard"
    found = [
        path
        for path in sorted(root.rglob("*"))
        if path.suffix in (".py", ".toml", ".txt")
        and path.relative_to(root).parts[0] not in ("cli", "report", "published", "profiles")
    ]
    text = "".join(f"{path.relative_to(root)} {hashlib.sha256(path.read_bytes()).hexdigest()}\n" for path in found)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@pytest.fixture(scope="session")
def command() -> list[str]:
    """The start of every command line."""
    return [sys.executable, "-m", "steelyard"]


@pytest.fixture(scope="session")
def environ_for(cache: Path) -> Callable[..., dict[str, str]]:
    """Return environment variables with temporary folders instead of the user's: `environ_for(data_folder, NAME=value)`."""

    def variables(data_folder: Path, **env: str) -> dict[str, str]:
        own = {
            "STEELYARD_CACHE": str(cache),
            "STEELYARD_RUNS": str(data_folder),
            "PYTHONPATH": str(REPOSITORY / "src"),
            "COLUMNS": "160",
        }
        return {**os.environ, "PYTHONWARNINGS": "error", **own, **env}

    return variables


@pytest.fixture(scope="session")
def shared_steelyard(
    command: list[str], environ_for: Callable[..., dict[str, str]]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `steelyard *argv` with the given data folder; a traceback always fails the test."""

    def run(data_folder: Path, *argv: str, **env: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*command, *map(str, argv)],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            env=environ_for(data_folder, **env),
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert "Traceback" not in done.stdout, done.stdout
        return done

    return run


@pytest.fixture
def data_folder(tmp_path: Path) -> Path:
    """A temporary folder instead of the user's data folder; runs are stored in `runs` below it."""
    return tmp_path / "data"


@pytest.fixture
def steelyard(
    data_folder: Path, shared_steelyard: Callable[..., subprocess.CompletedProcess[str]]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command line in a new process: `steelyard(*argv, **env)`; runs and cache are temporary."""

    def run(*argv: str, **env: str) -> subprocess.CompletedProcess[str]:
        return shared_steelyard(data_folder, *argv, **env)

    return run


@pytest.fixture(scope="session")
def environment() -> Callable[[str], Path]:
    """Return the interpreter of a framework's environment: `environment(name)`. Environments stay in the user's cache.

    Tests that use it are marked `conformance`.
    """
    from steelyard.environments import Environment, EnvironmentName, ensure_all, plan_environments

    known: dict[str, Path] = {}

    def ensured(name: str) -> Path:
        if name not in known:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("STEELYARD_CACHE", str(USERS_CACHE))
                created = ensure_all(plan_environments([EnvironmentName.parse(name)]), lambda event: None)[name]
            assert isinstance(created, Environment), created.sentence
            known[name] = created.python
        return known[name]

    return ensured
