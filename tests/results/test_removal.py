"""Removing runs: by complete names, all or none, and never one that is in progress."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from test_run_folders import finish, new_run

from steelyard.errors import UserError
from steelyard.results import removal, run_folders
from steelyard.results.store import Store

if TYPE_CHECKING:
    from pathlib import Path

FIRST, SECOND = "20260101-000000-cpu", "20260102-000000-cpu"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for name in (FIRST, SECOND):
        finish(new_run(tmp_path / name, state="complete"))
    Store(tmp_path).close()
    return tmp_path


def test_a_removed_run_is_gone_from_the_disk_and_from_the_index(runs: Path) -> None:
    ((name, size),) = removal.remove(runs, [FIRST])
    assert name == FIRST
    assert size > 1000
    assert run_folders.names(runs) == [SECOND]
    assert not [path for path in runs.iterdir() if FIRST in path.name]
    with closing(sqlite3.connect(runs / "index.sqlite")) as database:
        assert database.execute("SELECT DISTINCT run FROM trials").fetchall() == [(SECOND,)]


def test_nothing_is_removed_if_one_run_is_in_progress(runs: Path) -> None:
    with (
        run_folders.claim(runs / SECOND),
        pytest.raises(UserError, match=f"Run {SECOND} is in progress, so nothing was rem"),
    ):
        list(removal.remove(runs, [FIRST, SECOND]))
    assert run_folders.names(runs) == [FIRST, SECOND]


@pytest.mark.parametrize(
    "name", ["20260101", "latest", ".", "..", f"../{FIRST}", f"{FIRST}/trials", "", "index.sqlite"]
)
def test_only_the_complete_name_of_a_run_removes_it(name: str, runs: Path) -> None:
    with pytest.raises(UserError, match="so nothing was removed"):
        list(removal.remove(runs, [SECOND, name]))
    assert run_folders.names(runs) == [FIRST, SECOND]


def test_a_damaged_run_can_be_removed(runs: Path) -> None:
    (runs / FIRST / "run.json").write_text("{")
    list(removal.remove(runs, [FIRST]))
    assert run_folders.names(runs) == [SECOND]


def test_of_a_run_that_is_a_link_only_the_link_is_removed(runs: Path, tmp_path: Path) -> None:
    link = runs / "20260103-000000-cpu"
    link.symlink_to(runs / FIRST)
    list(removal.remove(runs, [link.name]))
    assert run_folders.names(runs) == [FIRST, SECOND]
