"""Merged runs: every run once and exactly as it was, in any order and repetition; what cannot be merged is named."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import recorded_trials
from hypothesis import given, settings
from hypothesis import strategies as st
from test_run_folders import PLAN

from steelyard.errors import UserError
from steelyard.results import identity, merging, record, run_folders
from steelyard.results.store import Store

NAME, OTHER = "20260101-000000-line", "20260102-000000-line"
# Identity, name and finished trials: three different runs of one name, one of them in two states, and one of another name.
STATES = [
    ("aaaaaaaa1", NAME, 1),
    ("aaaaaaaa1", NAME, 2),
    ("cccccccc1", NAME, 1),
    ("bbbbbbbb1", NAME, 1),
    ("dddddddd1", OTHER, 1),
]


def run_in(runs: Path, identity: str, name: str = NAME, trials: int = 1, **more: str) -> Path:
    """Write a run with this many finished trials; returns its folder."""
    folder = runs / name
    folder.mkdir(parents=True)
    known = record.RunRecord(PLAN, "2026-01-01T00:00:00+00:00", "complete", "steelyard run", identity=identity)
    record.write(folder, replace(known, **more))
    for number in range(1, trials + 1):
        trial = folder / "trials" / f"r{number:02d}.0-fake"
        recorded_trials.write(trial, recorded_trials.job(trial, number), recorded_trials.events())
    (folder / "report.html").write_text(f"page of {folder}")
    return folder


def tree(folder: Path) -> dict[str, bytes]:
    """Return the contents of all files below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "lock"
    }


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A folder of runs for every state."""
    root = tmp_path_factory.mktemp("states")
    for place, (key, name, trials) in enumerate(STATES):
        run_in(root / str(place), key, name, trials, command=f"steelyard run {key}")
    return [root / str(place) for place in range(len(STATES))]


@settings(max_examples=12)
@given(
    st.lists(st.lists(st.integers(0, len(STATES) - 1), min_size=1), min_size=1, max_size=4),
    st.integers(0, len(STATES) - 1),
)
def test_any_order_and_repetition_gives_the_same_runs(states: list[Path], steps: list[list[int]], last: int) -> None:
    """Whatever was merged before, in how many steps, and through which folder in between."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        merging.merge(states, root / "at once")
        for step in steps:
            merging.merge([states[place] for place in step], root / "between")
        merging.merge([*reversed(states), root / "between", states[last]], root / "in steps")
        merging.merge([root / "in steps", root / "between"], root / "between")
        expected = tree(root / "at once")
        assert tree(root / "in steps") == expected
        assert tree(root / "between") == expected


def indexed(runs: Path) -> list[tuple[str, ...]]:
    """Return what the index of a folder says, without the place of the folder."""
    with closing(Store(runs, pytest.fail)) as store:
        store.catch_up()
    with closing(sqlite3.connect(runs / "index.sqlite")) as database:
        found = database.execute(
            "SELECT run, trials.id, name, state FROM trials JOIN runs ON run = runs.id ORDER BY 1, 2"
        )
        return [tuple(map(str, row)) for row in found]


def test_the_index_of_merged_runs_is_the_same_in_any_order(states: list[Path], tmp_path: Path) -> None:
    for place in (2, 0, 3, 1, 4):
        merging.merge([states[place]], tmp_path / "one by one")
        indexed(tmp_path / "one by one")
    merging.merge(states, tmp_path / "at once")
    assert indexed(tmp_path / "one by one") == indexed(tmp_path / "at once")
    assert len(indexed(tmp_path / "at once")) == 5


def test_every_run_is_kept_once_in_its_latest_state(states: list[Path], tmp_path: Path) -> None:
    done = merging.merge(states, tmp_path / "all")
    assert sorted(done.added) == [NAME, f"{NAME}-bbbbbbbb", f"{NAME}-cccccccc", OTHER]
    later = tree(states[1] / NAME)
    del later["report.html"]
    assert tree(tmp_path / "all" / NAME) == later


def test_a_later_state_replaces_an_earlier_one_but_never_the_other_way_round(
    states: list[Path], tmp_path: Path
) -> None:
    merging.merge([states[0]], tmp_path)
    (tmp_path / NAME / "report.html").write_text("an old page")
    assert merging.merge([states[1]], tmp_path).replaced == [NAME]
    assert not (tmp_path / NAME / "report.html").exists()
    done = merging.merge([states[0]], tmp_path)
    assert (done.added, done.replaced, done.unchanged) == ([], [], [NAME])


def test_the_state_with_more_processes_is_the_later_one_whatever_is_in_it(tmp_path: Path) -> None:
    held = [identity.held(run_in(tmp_path / str(count), "aaaaaaaa1", trials=count)) for count in range(6)]
    assert [one.is_later_than(other) for one, other in pairwise(held)] == [False] * 5
    assert [other.is_later_than(one) for one, other in pairwise(held)] == [True] * 5


def test_runs_whose_names_are_exchanged_make_room_for_each_other(tmp_path: Path) -> None:
    run_in(tmp_path, "cccccccc1", NAME)
    run_in(tmp_path, "aaaaaaaa1", f"{NAME}-aaaaaaaa")
    merging.merge([], tmp_path)
    assert record.read(tmp_path / NAME).identity == "aaaaaaaa1"
    assert record.read(tmp_path / f"{NAME}-cccccccc").identity == "cccccccc1"


def test_a_run_in_the_target_makes_room_for_the_one_that_has_the_name_by_its_identity(
    states: list[Path], tmp_path: Path
) -> None:
    merging.merge([states[2]], tmp_path)
    done = merging.merge([states[0]], tmp_path)
    assert done.renamed == {NAME: f"{NAME}-cccccccc"}
    assert record.read(tmp_path / f"{NAME}-cccccccc").identity == "cccccccc1"
    assert record.read(tmp_path / NAME).identity == "aaaaaaaa1"


def test_records_without_an_identity_are_told_apart_by_what_they_say(tmp_path: Path) -> None:
    run_in(tmp_path / "a", "", machine="one")
    run_in(tmp_path / "b", "", machine="another")
    shutil.copytree(tmp_path / "a", tmp_path / "copy of a")
    done = merging.merge([tmp_path / "a", tmp_path / "b", tmp_path / "copy of a"], tmp_path / "all")
    assert len(done.added) == 2
    again = merging.merge([tmp_path / "b", tmp_path / "a"], tmp_path / "all")
    assert (again.added, again.replaced, again.renamed) == ([], [], {})
    assert len(again.unchanged) == 2


def test_an_identity_that_would_be_a_path_is_none(tmp_path: Path) -> None:
    for name in "ab":
        run_in(tmp_path / name, "/../../evil", machine=name)
    done = merging.merge([tmp_path / "a", tmp_path / "b"], tmp_path / "all" / "runs")
    assert len(run_folders.names(tmp_path / "all" / "runs")) == len(done.added) == 2
    assert [path.name for path in (tmp_path / "all").iterdir()] == ["runs"]


def test_a_damaged_run_is_named_and_left_out(states: list[Path], tmp_path: Path) -> None:
    shutil.copytree(states[0], tmp_path / "mine")
    (tmp_path / "mine" / OTHER).mkdir()
    (tmp_path / "mine" / OTHER / "run.json").write_text('{"format": 3}')
    done = merging.merge([tmp_path / "mine"], tmp_path / "all")
    assert done.added == [NAME]
    (sentence,) = done.left_out
    assert str(tmp_path / "mine" / OTHER) in sentence
    assert "is damaged" in sentence


def test_a_damaged_run_in_the_target_keeps_its_folder(states: list[Path], tmp_path: Path) -> None:
    damaged = tmp_path / NAME
    damaged.mkdir()
    (damaged / "run.json").write_text("{")
    merging.merge([states[0]], tmp_path)
    assert (damaged / "run.json").read_text() == "{"
    assert record.read(tmp_path / f"{NAME}-aaaaaaaa").identity == "aaaaaaaa1"


def test_a_run_in_progress_is_left_out(tmp_path: Path) -> None:
    folder = run_in(tmp_path / "a", "aaaaaaaa1", state="running")
    with run_folders.claim(folder):
        done = merging.merge([tmp_path / "a"], tmp_path / "all")
    assert done.added == []
    assert "is in progress" in done.left_out[0]


def test_links_in_a_run_folder_are_not_followed(tmp_path: Path) -> None:
    folder = run_in(tmp_path / "a", "aaaaaaaa1")
    (folder / "trials" / "secret").symlink_to("/etc")
    (folder / "secret").symlink_to("/etc/hostname")
    merging.merge([folder], tmp_path / "all")
    assert not list((tmp_path / "all").rglob("secret"))


def test_a_folder_without_runs_is_refused_before_anything_is_written(states: list[Path], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for place, what in ((tmp_path / "empty", "holds no run"), (tmp_path / "none", "is no folder")):
        with pytest.raises(UserError, match=what):
            merging.merge([states[0], place], tmp_path / "all")
    assert not (tmp_path / "all").exists()


def test_a_target_that_cannot_be_written_is_one_sentence(states: list[Path], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        merging.merge([states[0]], tmp_path / "file")


def test_a_run_with_a_file_that_cannot_be_read_is_left_out(
    states: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = identity.files_of
    monkeypatch.setattr(identity, "files_of", lambda folder: {**found(folder), "trials/gone": 1})
    done = merging.merge([states[0]], tmp_path / "all")
    assert "trials/gone cannot be read (No such file or directory)" in done.left_out[0]
    assert not list((tmp_path / "all").iterdir())
