"""`--store` of the commands: a run that is shared, a history of two machines from the store alone, and a server that is away."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from postgres_server import Server, running

from steelyard.results import record, run_folders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from subprocess import CompletedProcess

pytestmark = pytest.mark.end_to_end

WORKLOADS = str(Path(__file__).parents[1] / "workloads")
RUN = ("run", "--workloads", WORKLOADS, "-w", "line", "-f", "fake", "--rounds", "2", "--no-guard", "--plain")


@pytest.fixture
def server() -> Iterator[Server]:
    """A server for one test."""
    yield from running()


def test_runs_reach_the_store_also_after_it_was_away_and_no_record_has_the_password(
    server: Server, steelyard: Callable[..., CompletedProcess[str]], data_folder: Path, tmp_path: Path
) -> None:
    url = server.url()
    server.stop()
    done = steelyard(*RUN, "--store", url)
    assert done.returncode == 0, done.stderr
    (sentence,) = [line for line in done.stderr.splitlines() if "The store" in line]
    assert sentence.endswith("The run folders hold everything: the store is brought up to date the next time.")
    assert done.stdout.splitlines()[-1].endswith("report.html")
    server.start()
    again = steelyard(*RUN, "--if-changed", "--store", url)
    assert again.returncode == 0, again.stderr
    assert "so nothing was measured." in again.stdout
    assert "1 run added to the store postgresql:///postgres.\n" in again.stderr
    (name,) = run_folders.names(data_folder / "runs")
    assert "secret" not in record.read(data_folder / "runs" / name).command
    assert "secret" not in done.stderr + again.stderr
    elsewhere = steelyard("history", "--store", url, "--runs", tmp_path / "elsewhere", "--json")
    assert {line["contender"] for line in json.loads(elsewhere.stdout)} == {"fake/scripted"}
    shown = steelyard("history", "--store", url, "--runs", tmp_path / "elsewhere")
    assert Path(shown.stdout.splitlines()[-1]).exists()
    assert steelyard("merge", url, "--runs", tmp_path / "elsewhere").returncode == 0
    assert run_folders.names(tmp_path / "elsewhere") == [name]
