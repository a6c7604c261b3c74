"""A forked command is what one in a new interpreter is: exit code, streams, variables, folder, arguments and state of its own."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import forked_command
import pytest
from finished_runs import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from forked_command import Forked

pytestmark = pytest.mark.end_to_end

COMMANDS = (
    ("list", "frameworks", "--json"),
    ("list", "workloads", "--workloads", str(WORKLOADS), "--json"),
    ("list", "everything"),
    ("run", "--workloads", str(WORKLOADS), "-w", "line", "-f", "nobody", "--dry-run"),
    ("report",),
)


@pytest.mark.parametrize("argv", COMMANDS, ids=" ".join)
def test_it_answers_what_a_new_interpreter_does(
    argv: tuple[str, ...],
    forked: Forked,
    command: list[str],
    environ_for: Callable[..., dict[str, str]],
    data_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    environ = environ_for(data_folder, COLUMNS="70")
    new = subprocess.run([*command, *argv], env=environ, capture_output=True, text=True, check=False)
    done = forked.run(argv, environ)
    assert (done.returncode, done.stdout, done.stderr) == (new.returncode, new.stdout, new.stderr)


def test_nothing_is_left_of_an_earlier_command(
    forked: Forked, environ_for: Callable[..., dict[str, str]], data_folder: Path, tmp_path: Path
) -> None:
    names = []
    for more in ((), ("--workloads", str(WORKLOADS)), ()):
        done = forked.run(("list", "workloads", *more, "--json"), environ_for(data_folder))
        names.append({each["workload"] for each in json.loads(done.stdout)})
    assert "line" in names[1] - names[0]
    assert names[2] == names[0]
    asked = ("new", "workload", "mine", "--into", str(tmp_path))
    assert [forked.run(asked, environ_for(data_folder)).returncode for _ in range(2)] == [0, 2]


def test_a_relative_folder_is_that_of_the_test(
    forked: Forked,
    environ_for: Callable[..., dict[str, str]],
    data_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert forked.run(("new", "workload", "mine", "--into", "."), environ_for(data_folder)).returncode == 0
    assert (tmp_path / "mine" / "network.py").exists()


def test_a_command_that_takes_too_long_is_ended(
    forked: Forked,
    environ_for: Callable[..., dict[str, str]],
    data_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    nobody_writes = tmp_path / "study.toml"
    os.mkfifo(nobody_writes)
    monkeypatch.setattr(forked_command, "LIMIT_S", 0.1)
    with pytest.raises(subprocess.TimeoutExpired):
        forked.run(("run", str(nobody_writes), "--dry-run"), environ_for(data_folder))
    monkeypatch.undo()
    assert forked.run(("list", "nothing"), environ_for(data_folder)).returncode == 2
