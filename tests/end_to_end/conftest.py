"""Finished runs that many tests read."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from finished_runs import LINE, CommandLine, Finished, finished
from forked_command import READ_AT_START, Forked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from finished_runs import Steelyard


@pytest.fixture(scope="session")
def forked(environ_for: Callable[..., dict[str, str]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forked]:
    """What runs command lines without importing steelyard again."""
    made = Forked(environ_for(tmp_path_factory.mktemp("no-runs")))
    yield made
    made.close()


@pytest.fixture(scope="session")
def shared_steelyard(
    shared_steelyard: Steelyard, forked: Forked, environ_for: Callable[..., dict[str, str]]
) -> Steelyard:
    """Run `steelyard *argv` with the given data folder as the fixture of this name for all rooms does, in a forked process."""

    def run(data_folder: Path, *argv: str, **env: str) -> subprocess.CompletedProcess[str]:
        if any(name.startswith(READ_AT_START) for name in env):
            return shared_steelyard(data_folder, *argv, **env)
        done = forked.run([*map(str, argv)], environ_for(data_folder, **env))
        assert "Traceback" not in done.stderr, done.stderr
        assert "Traceback" not in done.stdout, done.stdout
        return done

    return run


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory, shared_steelyard: Steelyard) -> Finished:
    """A certified run of three rounds without noise: Fake and Dummy at 10 ms, and Dummy at 12 ms. Tests must not change it."""
    data_folder = tmp_path_factory.mktemp("measured")
    knobs = ("--knob", "fake.step_us=10000", "--knob", "dummy.step_us=10000,12000")
    return finished(
        data_folder,
        shared_steelyard(data_folder, "run", *LINE, "-f", "fake", "-f", "dummy", *knobs, "--rounds", "3", "--json"),
    )


@pytest.fixture(scope="session")
def uncertified(tmp_path_factory: pytest.TempPathFactory, shared_steelyard: Steelyard) -> Finished:
    """A run of two frameworks with a fixed protocol and without certificates. Tests must not change it."""
    data_folder = tmp_path_factory.mktemp("uncertified")
    knobs = ("--knob", "fake.step_us=1000", "--knob", "dummy.step_us=2000")
    options = ("--protocol", "fixed:10+200", "--no-certify", "--json")
    return finished(
        data_folder, shared_steelyard(data_folder, "run", *LINE, "-f", "fake", "-f", "dummy", *knobs, *options)
    )


@pytest.fixture
def copied(measured: Finished, data_folder: Path) -> Finished:
    """A copy of the finished run that a test may change; the fixtures `steelyard` and `cli` use its folder."""
    shutil.copytree(measured.data_folder, data_folder)
    return Finished(data_folder, data_folder / "runs" / measured.folder.name, measured.result, measured.stderr)


@pytest.fixture
def cli(
    capsys: pytest.CaptureFixture[str], data_folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    """Run the command line in this process, with temporary folders."""
    monkeypatch.setenv("STEELYARD_RUNS", str(data_folder))
    monkeypatch.setenv("STEELYARD_CACHE", str(cache))
    monkeypatch.setenv("COLUMNS", "160")
    return CommandLine(capsys)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mount a small disk with `disk("64m")`; a further call changes its size, `disk("ro")` makes it read-only."""
    folder = tmp_path / "disk"

    def mount(options: str) -> Path:
        if options == "ro":
            subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        elif folder.exists():
            subprocess.run(["mount", "-o", f"remount,size={options}", str(folder)], check=True)
        else:
            folder.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={options}", "tmpfs", str(folder)], check=True)
        return folder

    yield mount
    if folder.exists():
        subprocess.run(["umount", "-l", str(folder)], check=True)
