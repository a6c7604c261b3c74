"""The index is derived from the event files: after loss or delay it has the same contents again."""

from __future__ import annotations

import json
import sqlite3
import tempfile
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from indexed_runs import PLAN, new_run, new_trial, opened, rows

from steelyard.results import indexing, record, trials
from steelyard.results import store as store_module
from steelyard.results.index_rows import OF_BLOCKS
from steelyard.results.store import Store

TRIALS = st.lists(
    st.tuples(
        st.integers(1, 12),
        st.integers(0, 3),
        st.sampled_from(["fake", "dummy"]),
        st.lists(st.integers(1, 30), max_size=5),
        st.sampled_from(["done", "error", "nothing"]),
    ),
    max_size=6,
    unique_by=lambda each: each[:3],
)


@settings(max_examples=25)
@given(planned=TRIALS)
def test_a_rebuilt_index_equals_one_that_was_updated_after_every_trial(
    planned: list[tuple[int, int, str, list[int], str]],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        run = new_run(Path(name))
        updated, said = opened(run.parent)
        updated.add_run(run)
        for each in planned:
            trial = trials.read(new_trial(run, *each))
            if trial.done or trial.error:
                updated.add_trial(run.name, trial)
        updated.close()
        found = _dump(run.parent)
        (run.parent / "index.sqlite").unlink()
        rebuilt, more = opened(run.parent)
        rebuilt.close()
        assert _dump(run.parent) == found
        assert said == more == []


def _dump(runs: Path) -> list[Any]:
    with closing(sqlite3.connect(runs / "index.sqlite")) as database:
        queries = ("runs ORDER BY id", "trials ORDER BY run, id", "blocks ORDER BY run, trial, first_step")
        return [database.execute(f"SELECT * FROM {query}").fetchall() for query in queries]


def test_adding_a_trial_again_replaces_its_entry(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    trial = trials.read(new_trial(run, 1, 0, "fake", [1, 5, 10], "done"))
    store, said = opened(tmp_path)
    store.add_trial(run.name, trial)
    store.add_trial(run.name, replace(trial, method=9))
    store.close()
    assert rows(tmp_path, "id", "method") == [(trial.folder.name, 9)]
    assert said == []


def test_a_damaged_run_is_reported_and_the_others_are_indexed(tmp_path: Path) -> None:
    intact, damaged = new_run(tmp_path, "20260102-000000-a"), new_run(tmp_path, "20260101-000000-b")
    new_trial(intact, 1, 0, "fake", [1, 5, 10], "done")
    (damaged / "run.json").write_text("{")
    store, (sentence,) = opened(tmp_path)
    store.close()
    assert str(damaged / "run.json") in sentence
    assert rows(tmp_path, "run") == [(intact.name,)]


def test_an_index_that_is_locked_by_another_process_is_given_up_once_and_not_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = new_run(tmp_path)
    first, second = (trials.read(new_trial(run, number, 0, "fake", [1, 5, 10], "done")) for number in (1, 2))
    opened(tmp_path)[0].close()
    monkeypatch.setattr("steelyard.results.store.BUSY_S", 0.01)
    store, said = opened(tmp_path)
    with closing(sqlite3.connect(tmp_path / "index.sqlite", isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        store.add_trials(run.name, [first, second])
        (sentence,) = said
        assert "could not be written (database is locked). No data were lost" in sentence
        holder.execute("ROLLBACK")
    assert not (tmp_path / "index.sqlite.damaged").exists()


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_locked_index_is_waited_for_no_longer_than_five_seconds(journal: str, tmp_path: Path) -> None:
    run = new_run(tmp_path)
    opened(tmp_path)[0].close()
    with closing(sqlite3.connect(tmp_path / "index.sqlite", isolation_level=None)) as holder:
        holder.execute(f"PRAGMA journal_mode = {journal}")
        holder.execute("BEGIN EXCLUSIVE")
        began = time.monotonic()
        store, said = opened(tmp_path)
        for _ in range(3):
            store.add_run(run)
        assert time.monotonic() - began < 9, "it waits once"
        assert len(said) == 1
        holder.execute("ROLLBACK")


def test_of_two_processes_that_create_the_index_none_fails(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    new_trial(run, 1, 0, "fake", [1, 5, 10], "done")
    said: list[str] = []
    threads = [threading.Thread(target=lambda: Store(tmp_path, said.append).close()) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == []
    assert len(rows(tmp_path, "id")) == 1


def test_trials_that_cannot_be_indexed_on_a_full_disk_change_nothing_else(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    store, said = opened(tmp_path)
    assert store._database is not None
    store._database.execute("PRAGMA max_page_count = 1")  # makes SQLite report a full disk
    for number in (1, 2, 3):
        store.add_trial(run.name, trials.read(new_trial(run, number, 0, "fake", [1] * 400, "done")))
    (sentence,) = said
    assert "could not be written (database or disk is full). No data were lost" in sentence
    store.close()


def test_a_run_is_removed_with_its_trials(tmp_path: Path) -> None:
    run, other = new_run(tmp_path), new_run(tmp_path, "20260102-000000-other")
    for each in (run, other):
        new_trial(each, 1, 0, "fake", [1, 5, 10], "done")
    store, said = opened(tmp_path)
    store.remove_run(run.name)
    store.close()
    assert rows(tmp_path, "run") == [(other.name,)]
    assert said == []


def test_only_the_user_can_read_the_index(tmp_path: Path) -> None:
    opened(tmp_path / "new" / "runs")[0].close()
    assert (tmp_path / "new" / "runs").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "new" / "runs" / "index.sqlite").stat().st_mode & 0o777 == 0o600


def _complete(trial: trials.Trial) -> trials.Trial:
    """Return the trial with a value in every field that a process can record."""
    return replace(
        trial,
        method=7,
        applied={"mode": "scripted", "threads": 2},
        libraries={"numpy": "2.1"},
        phases_ns={"import": 5, "first-step": 8},
        first_step_since_spawn_ns=30,
        evaluations=(trials.Evaluation(40, {"accuracy": 0.75}, 9),),
        peak_resident_bytes=1000,
        peak_device_bytes=2000,
        warnings=({"kind": "spill", "message": "Slow."},),
    )


def test_the_index_can_be_searched_by_what_decides_a_trial(tmp_path: Path) -> None:
    """The columns are for other programs: the index is an ordinary SQLite file."""
    run = new_run(tmp_path)
    trial = _complete(trials.read(new_trial(run, 2, 1, "fake", [1, 5, 10], "error")))
    trial = replace(trial, job=replace(trial.job, worker_hash="0123"), error=("crash", "It broke."))
    store, said = opened(tmp_path)
    store.add_run(run)
    store.add_trial(run.name, trial)
    store.close()
    assert said == []
    database = sqlite3.connect(tmp_path / "index.sqlite")
    database.row_factory = sqlite3.Row
    row = dict(database.execute("SELECT * FROM trials").fetchone())
    case = trial.job.case
    expected = {
        "run": run.name,
        "id": "r02.1-fake",
        "kind": "measure",
        "case_id": case.id,
        "round": 2,
        "attempt": 1,
        "framework": "fake",
        "workload": "line",
        "preset": "small",
        "mode": "scripted",
        "method": 7,
        "worker_hash": "0123",
        "to_first_step_ns": 30,
        "peak_resident_bytes": 1000,
        "peak_device_bytes": 2000,
        "error_kind": "crash",
        "error_message": "It broke.",
        "done": 0,
        "folder": str(trial.folder),
    }
    assert {key: row[key] for key in expected} == expected
    as_json = {name: json.loads(row[name]) for name in ("applied", "libraries", "phases_ns", "evaluation", "warnings")}
    assert as_json == {
        "applied": trial.applied,
        "libraries": trial.libraries,
        "phases_ns": trial.phases_ns,
        "evaluation": {"steps": 40, "scores": {"accuracy": 0.75}, "elapsed_ns": 9, "epoch": 0},
        "warnings": list(trial.warnings),
    }
    indexed = dict(database.execute("SELECT * FROM runs").fetchone())
    assert (indexed["id"], indexed["folder"], indexed["study"]) == (run.name, str(run), PLAN.study.name)
    assert (indexed["created"], indexed["state"]) == ("2026-01-01", "running")
    assert json.loads(indexed["plan"]) == json.loads(json.dumps(PLAN.to_dict()))
    blocks = [tuple(block) for block in database.execute("SELECT * FROM blocks ORDER BY first_step")]
    assert blocks == [(run.name, "r02.1-fake", *(getattr(block, name) for name in OF_BLOCKS)) for block in trial.blocks]
    database.close()


def test_the_entry_of_a_run_follows_its_state_and_keeps_its_trials(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    new_trial(run, 1, 0, "fake", [1, 5, 10], "done")
    store, _ = opened(tmp_path)
    record.update(run, state="complete", machine="m1")
    store.add_run(run)
    store.close()
    with closing(sqlite3.connect(tmp_path / "index.sqlite")) as database:
        assert database.execute("SELECT state, machine FROM runs").fetchall() == [("complete", "m1")]
    assert len(rows(tmp_path, "id")) == 1


def test_without_a_file_for_the_index_everything_else_works(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    (tmp_path / "index.sqlite").mkdir()  # SQLite cannot open a folder, as it cannot write on a read-only disk
    store, (sentence,) = opened(tmp_path)
    assert sentence.startswith(f"The index {tmp_path / 'index.sqlite'} cannot be used (unable to open database file)")
    store.add_run(run)
    store.add_trial(run.name, trials.read(new_trial(run, 1, 0, "fake", [1, 5, 10], "done")))
    store.remove_run(run.name)
    store.close()


def test_a_damaged_trial_is_reported_and_the_others_are_indexed(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    good, damaged = (new_trial(run, number, 0, "fake", [1, 5, 10], "done") for number in (1, 2))
    (damaged / "job.json").write_text("{")
    (run / "trials" / "r03.0-fake").mkdir()  # a process that was killed before it got its job
    store, (sentence,) = opened(tmp_path)
    store.close()
    assert "Trial r02.0-fake cannot be read" in sentence
    assert rows(tmp_path, "id") == [(good.name,)]


def test_many_runs_are_read_by_several_processes_with_the_same_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2 * indexing.FEW):
        run = new_run(tmp_path, f"20260101-0000{number:02}-study")
        new_trial(run, 1, 0, "fake", [3], "done")
    monkeypatch.setattr(store_module, "SILENCE_S", float("inf"))  # however long it takes to start the processes
    dumps = []
    for cores in (1, 2):
        monkeypatch.setattr(indexing, "usable_cores", lambda cores=cores: cores)
        store, said = opened(tmp_path)
        store.close()
        assert said == []
        dumps.append(_dump(tmp_path))
        (tmp_path / "index.sqlite").unlink()
    assert dumps[0] == dumps[1]
    assert len(dumps[0][0]) == 2 * indexing.FEW


def test_while_many_runs_are_read_it_is_said_how_many_are_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        new_run(tmp_path, f"20260101-0000{number:02}-study")
    monkeypatch.setattr(store_module, "SILENCE_S", 0.0)
    store, said = opened(tmp_path)
    store.close()
    where = f"runs have been read into the index {tmp_path / 'index.sqlite'}."
    assert said == [f"1 of 3 {where}", f"2 of 3 {where}"]


def test_progress_begins_with_nothing_and_ends_with_all_runs_that_have_changed(tmp_path: Path) -> None:
    for number in range(3):
        new_trial(new_run(tmp_path, f"20260101-0000{number:02}-study"), 1, 0, "fake", [3], "done")
    seen: list[tuple[int, int]] = []
    Store(tmp_path, pytest.fail, lambda done, total: seen.append((done, total))).close()
    assert seen == [(0, 3), (1, 3), (2, 3), (3, 3)]
    seen.clear()
    with closing(Store(tmp_path, pytest.fail, lambda done, total: seen.append((done, total)))) as store:
        store.catch_up()
    assert seen == []
