"""Every command starts in an interpreter of its own: it imports all that it uses. Other tests fork one that has imported everything."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from finished_runs import DRY_RUN, LINE
from forked_command import LIMIT_S

from steelyard.cli.descriptions import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from finished_runs import Finished

pytestmark = pytest.mark.end_to_end

RUNS, FOLDER, BUNDLE = "the runs", "a new folder", "a folder that does not exist"
STARTED = {
    "run": DRY_RUN[1:],
    "certify": (*LINE[:4], "-f", "fake", "-f", "dummy", "--plain"),
    "slurm-script": (),
    "report": (),
    "export": ("--format", "md"),
    "bundle": ("-o", BUNDLE),
    "gallery": (RUNS, "-o", BUNDLE),
    "cite": (),
    "advise": (),
    "explain": ("--plain",),
    "compare": ("fake", "dummy/scripted,step_us=12000"),
    "list": ("runs",),
    "new": ("workload", "mine", "--into", FOLDER),
    "port": ("new", FOLDER, "-f", "pytorch", "-f", "jax"),
    "history": (),
    "merge": (RUNS, "--runs", FOLDER),
    "runs": ("list",),
    "env": ("list",),
    "cache": (),
    "doctor": (),
}
# What a command may answer on this machine, or with this run: that something is missing or unfit.
OTHER_CODES = {"advise": (1,), "doctor": (1,), "explain": (1, 3)}
# The nodes of a cluster are asked in tests/cluster, by interpreters of their own.
ELSEWHERE = {"nodes"}


def test_every_command_is_started() -> None:
    assert STARTED.keys() | ELSEWHERE == COMMANDS.keys()


@pytest.mark.parametrize("name", STARTED)
def test_a_command_starts_in_an_interpreter_of_its_own(
    name: str, command: list[str], copied: Finished, environ_for: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    (tmp_path / FOLDER).mkdir()
    folders = {RUNS: str(copied.data_folder / "runs"), FOLDER: str(tmp_path / FOLDER), BUNDLE: str(tmp_path / BUNDLE)}
    argv = [folders.get(word, word) for word in STARTED[name]]
    done = subprocess.run(
        [*command, name, *argv],
        env=environ_for(copied.data_folder),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode in (0, *OTHER_CODES.get(name, ())), done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    assert done.stdout
