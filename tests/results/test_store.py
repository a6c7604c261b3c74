"""The index is derived from the event files: after loss, damage or delay it has the same contents again."""

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
import recorded_trials
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard.results import index_rows, points, record, trials
from steelyard.results.index_rows import OF_BLOCKS
from steelyard.results.store import FILE, Store

TRIALS = st.lists(
    st.tuples(
        st.integers(1, 12), st.integers(0, 3), st.sampled_from(["fake", "dummy"]),
        st.lists(st.integers(1, 30), max_size=5), st.sampled_from(["done", "error", "nothing"]),
    ),
    max_size=6, unique_by=lambda each: each[:3],
)  # fmt: skip


WORKLOADS = Path(__file__).parents[1] / "workloads"
PLAN = resolve.plan(Options(workloads=("line",), frameworks=("fake",), workload_folders=(str(WORKLOADS),)))


def _new_run(runs: Path, name: str = "20260101-000000-first-look") -> Path:
    folder = runs / name
    folder.mkdir(parents=True)
    record.write(folder, record.RunRecord(PLAN, "2026-01-01", "running", "steelyard run"))
    return folder


def _opened(runs: Path) -> tuple[Store, list[str]]:
    """Open the index of a folder; returns it with the sentences that it says."""
    said: list[str] = []
    return Store(runs, said.append), said


def _rows(runs: Path, *columns: str) -> list[tuple[Any, ...]]:
    """Return columns of all trials in an index, as another program reads them."""
    with closing(sqlite3.connect(runs / "index.sqlite")) as database:
        return database.execute(f"SELECT {', '.join(columns)} FROM trials ORDER BY run, id").fetchall()


def _trial(run: Path, number: int, attempt: int, framework: str, blocks: list[int], ending: str) -> Path:
    folder = run / "trials" / f"r{number:02d}.{attempt}-{framework}"
    made = recorded_trials.job(folder, number, attempt, framework)
    return recorded_trials.write(folder, made, recorded_trials.events(tuple(blocks), ending))


@settings(max_examples=25)
@given(planned=TRIALS)
def test_a_rebuilt_index_equals_one_that_was_updated_after_every_trial(
    planned: list[tuple[int, int, str, list[int], str]],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        run = _new_run(Path(name))
        updated, said = _opened(run.parent)
        updated.add_run(run)
        for each in planned:
            trial = trials.read(_trial(run, *each))
            if trial.done or trial.error:
                updated.add_trial(run.name, trial)
        updated.close()
        found = _dump(run.parent)
        (run.parent / "index.sqlite").unlink()
        rebuilt, more = _opened(run.parent)
        rebuilt.close()
        assert _dump(run.parent) == found
        assert said == more == []


def _dump(runs: Path) -> list[Any]:
    with closing(sqlite3.connect(runs / "index.sqlite")) as database:
        queries = ("runs ORDER BY id", "trials ORDER BY run, id", "blocks ORDER BY run, trial, first_step")
        return [database.execute(f"SELECT * FROM {query}").fetchall() for query in queries]


def test_adding_a_trial_again_replaces_its_entry(tmp_path: Path) -> None:
    run = _new_run(tmp_path)
    trial = trials.read(_trial(run, 1, 0, "fake", [1, 5, 10], "done"))
    store, said = _opened(tmp_path)
    store.add_trial(run.name, trial)
    store.add_trial(run.name, replace(trial, method=9))
    store.close()
    assert _rows(tmp_path, "id", "method") == [(trial.folder.name, 9)]
    assert said == []


def test_a_damaged_run_is_reported_and_the_others_are_indexed(tmp_path: Path) -> None:
    intact, damaged = _new_run(tmp_path, "20260102-000000-a"), _new_run(tmp_path, "20260101-000000-b")
    _trial(intact, 1, 0, "fake", [1, 5, 10], "done")
    (damaged / "run.json").write_text("{")
    store, (sentence,) = _opened(tmp_path)
    store.close()
    assert str(damaged / "run.json") in sentence
    assert _rows(tmp_path, "run") == [(intact.name,)]


def test_a_damaged_index_is_renamed_rebuilt_and_reported(tmp_path: Path) -> None:
    run = _new_run(tmp_path)
    _trial(run, 1, 0, "fake", [1, 5, 10], "done")
    (tmp_path / "index.sqlite").write_bytes(b"garbage" * 999)
    store, (sentence,) = _opened(tmp_path)
    store.close()
    assert "It was rebuilt from the event files; no data were lost." in sentence
    assert (tmp_path / "index.sqlite.damaged").read_bytes() == b"garbage" * 999
    assert len(_rows(tmp_path, "id")) == 1


@pytest.mark.parametrize(
    "change",
    [
        "PRAGMA user_version = 1", "DROP TABLE trials", "ALTER TABLE blocks DROP COLUMN steps", "CREATE TABLE more (id TEXT)",
        "ALTER TABLE runs RENAME COLUMN study TO title",
    ],
)  # fmt: skip
def test_an_index_of_another_version_or_with_other_tables_is_rebuilt(change: str, tmp_path: Path) -> None:
    run = _new_run(tmp_path)
    _trial(run, 1, 0, "fake", [1, 5, 10], "done")
    _opened(tmp_path)[0].close()
    with closing(sqlite3.connect(tmp_path / "index.sqlite")) as database:
        database.executescript(change)
    store, (sentence,) = _opened(tmp_path)
    store.close()
    assert "could not be used (it was written by another version, or altered)" in sentence
    assert len(_rows(tmp_path, "id")) == 1
    again, said = _opened(tmp_path)
    again.close()
    assert said == []


def test_an_index_that_cannot_be_renamed_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "index.sqlite").write_bytes(b"garbage" * 999)
    (tmp_path / "index.sqlite.damaged").mkdir()
    store, (sentence,) = _opened(tmp_path)
    store.add_run(_new_run(tmp_path))
    assert "could not be used (file is not a database), nor rebuilt (" in sentence


def test_an_index_that_is_locked_by_another_process_is_given_up_once_and_not_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = _new_run(tmp_path)
    first, second = (trials.read(_trial(run, number, 0, "fake", [1, 5, 10], "done")) for number in (1, 2))
    _opened(tmp_path)[0].close()
    monkeypatch.setattr("steelyard.results.store.BUSY_S", 0.01)
    store, said = _opened(tmp_path)
    with closing(sqlite3.connect(tmp_path / "index.sqlite", isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        store.add_trials(run.name, [first, second])
        (sentence,) = said
        assert "could not be written (database is locked). No data were lost" in sentence
        holder.execute("ROLLBACK")
    assert not (tmp_path / "index.sqlite.damaged").exists()


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_locked_index_is_waited_for_no_longer_than_five_seconds(journal: str, tmp_path: Path) -> None:
    run = _new_run(tmp_path)
    _opened(tmp_path)[0].close()
    with closing(sqlite3.connect(tmp_path / "index.sqlite", isolation_level=None)) as holder:
        holder.execute(f"PRAGMA journal_mode = {journal}")
        holder.execute("BEGIN EXCLUSIVE")
        began = time.monotonic()
        store, said = _opened(tmp_path)
        for _ in range(3):
            store.add_run(run)
        assert time.monotonic() - began < 9, "it waits once"
        assert len(said) == 1
        holder.execute("ROLLBACK")


def test_of_two_processes_that_create_the_index_none_fails(tmp_path: Path) -> None:
    run = _new_run(tmp_path)
    _trial(run, 1, 0, "fake", [1, 5, 10], "done")
    said: list[str] = []
    threads = [threading.Thread(target=lambda: Store(tmp_path, said.append).close()) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == []
    assert len(_rows(tmp_path, "id")) == 1


def test_trials_that_cannot_be_indexed_on_a_full_disk_change_nothing_else(tmp_path: Path) -> None:
    run = _new_run(tmp_path)
    store, said = _opened(tmp_path)
    assert store._database is not None
    store._database.execute("PRAGMA max_page_count = 1")  # makes SQLite report a full disk
    for number in (1, 2, 3):
        store.add_trial(run.name, trials.read(_trial(run, number, 0, "fake", [1] * 400, "done")))
    (sentence,) = said
    assert "could not be written (database or disk is full). No data were lost" in sentence
    store.close()


def test_a_run_is_removed_with_its_trials(tmp_path: Path) -> None:
    run, other = _new_run(tmp_path), _new_run(tmp_path, "20260102-000000-other")
    for each in (run, other):
        _trial(each, 1, 0, "fake", [1, 5, 10], "done")
    store, said = _opened(tmp_path)
    store.remove_run(run.name)
    store.close()
    assert _rows(tmp_path, "run") == [(other.name,)]
    assert said == []


def test_only_the_user_can_read_the_index(tmp_path: Path) -> None:
    _opened(tmp_path / "new" / "runs")[0].close()
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
    run = _new_run(tmp_path)
    trial = _complete(trials.read(_trial(run, 2, 1, "fake", [1, 5, 10], "error")))
    trial = replace(trial, job=replace(trial.job, worker_hash="0123"), error=("crash", "It broke."))
    store, said = _opened(tmp_path)
    store.add_run(run)
    store.add_trial(run.name, trial)
    store.close()
    assert said == []
    database = sqlite3.connect(tmp_path / "index.sqlite")
    database.row_factory = sqlite3.Row
    row = dict(database.execute("SELECT * FROM trials").fetchone())
    case = trial.job.case
    expected = {
        "run": run.name, "id": "r02.1-fake", "kind": "measure", "case_id": case.id, "round": 2, "attempt": 1,
        "framework": "fake", "workload": "line", "preset": "small", "mode": "scripted", "method": 7,
        "worker_hash": "0123", "to_first_step_ns": 30, "peak_resident_bytes": 1000, "peak_device_bytes": 2000,
        "error_kind": "crash", "error_message": "It broke.", "done": 0, "folder": str(trial.folder),
    }  # fmt: skip
    assert {key: row[key] for key in expected} == expected
    as_json = {name: json.loads(row[name]) for name in ("applied", "libraries", "phases_ns", "evaluation", "warnings")}
    assert as_json == {
        "applied": trial.applied, "libraries": trial.libraries, "phases_ns": trial.phases_ns,
        "evaluation": {"steps": 40, "scores": {"accuracy": 0.75}, "elapsed_ns": 9, "epoch": 0}, "warnings": list(trial.warnings),
    }  # fmt: skip
    indexed = dict(database.execute("SELECT * FROM runs").fetchone())
    assert (indexed["id"], indexed["folder"], indexed["study"]) == (run.name, str(run), PLAN.study.name)
    assert (indexed["created"], indexed["state"]) == ("2026-01-01", "running")
    assert json.loads(indexed["plan"]) == json.loads(json.dumps(PLAN.to_dict()))
    blocks = [tuple(block) for block in database.execute("SELECT * FROM blocks ORDER BY first_step")]
    assert blocks == [(run.name, "r02.1-fake", *(getattr(block, name) for name in OF_BLOCKS)) for block in trial.blocks]
    database.close()


def test_the_entry_of_a_run_follows_its_state_and_keeps_its_trials(tmp_path: Path) -> None:
    run = _new_run(tmp_path)
    _trial(run, 1, 0, "fake", [1, 5, 10], "done")
    store, _ = _opened(tmp_path)
    record.update(run, state="complete", machine="m1")
    store.add_run(run)
    store.close()
    with closing(sqlite3.connect(tmp_path / "index.sqlite")) as database:
        assert database.execute("SELECT state, machine FROM runs").fetchall() == [("complete", "m1")]
    assert len(_rows(tmp_path, "id")) == 1


def test_without_a_file_for_the_index_everything_else_works(tmp_path: Path) -> None:
    run = _new_run(tmp_path)
    (tmp_path / "index.sqlite").mkdir()  # SQLite cannot open a folder, as it cannot write on a read-only disk
    store, (sentence,) = _opened(tmp_path)
    assert sentence.startswith(f"The index {tmp_path / 'index.sqlite'} cannot be used (unable to open database file)")
    store.add_run(run)
    store.add_trial(run.name, trials.read(_trial(run, 1, 0, "fake", [1, 5, 10], "done")))
    store.remove_run(run.name)
    store.close()


def test_a_damaged_trial_is_reported_and_the_others_are_indexed(tmp_path: Path) -> None:
    run = _new_run(tmp_path)
    good, damaged = (_trial(run, number, 0, "fake", [1, 5, 10], "done") for number in (1, 2))
    (damaged / "job.json").write_text("{")
    (run / "trials" / "r03.0-fake").mkdir()  # a process that was killed before it got its job
    store, (sentence,) = _opened(tmp_path)
    store.close()
    assert "Trial r02.0-fake cannot be read" in sentence
    assert _rows(tmp_path, "id") == [(good.name,)]


def _damage_pages(path: Path) -> bytes:
    """Overwrite the second half of an index, and return its content."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2 :] = b"\xff" * (len(content) - len(content) // 2)
    path.write_bytes(content)
    return bytes(content)


def test_a_damaged_page_is_found_when_the_index_is_opened(tmp_path: Path) -> None:
    run = _new_run(tmp_path)
    for number in range(1, 9):
        _trial(run, number, 0, "fake", [1] * 60, "done")
    _opened(tmp_path)[0].close()
    content = _damage_pages(tmp_path / "index.sqlite")
    store, (sentence,) = _opened(tmp_path)
    store.close()
    assert "could not be used (" in sentence
    assert (tmp_path / "index.sqlite.damaged").read_bytes() == content
    assert len(_rows(tmp_path, "id")) == 8


def test_the_journal_of_a_damaged_index_that_another_process_uses_is_renamed_with_it(tmp_path: Path) -> None:
    run = _new_run(tmp_path)
    for number in range(1, 9):
        _trial(run, number, 0, "fake", [1] * 60, "done")
    _opened(tmp_path)[0].close()
    other = sqlite3.connect(tmp_path / "index.sqlite", isolation_level=None)
    other.execute("SELECT count(*) FROM trials").fetchone()
    _damage_pages(tmp_path / "index.sqlite")
    _opened(tmp_path)[0].close()
    for suffix in ("", "-wal", "-shm"):
        assert (tmp_path / f"index.sqlite.damaged{suffix}").exists(), suffix
    assert len(_rows(tmp_path, "id")) == 8
    other.close()


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two indexed runs that have a point each."""
    point = points.Point("", "line", "g", "fake", "Fake", "cached", "fake", "fake", "1", (1e6, 2e6))
    monkeypatch.setattr(points, "points", lambda folder, known, found: [replace(point, run=folder.name)])
    for name in ("20260101-000000-a", "20260102-000000-b"):
        record.update(_new_run(tmp_path, name), state="complete", machine="m1", host={"cores_usable": 2})
    _opened(tmp_path)[0].close()
    return tmp_path


def _set(runs: Path, table: str, column: str, value: Any) -> None:
    """Write a value into a column of the second run's rows."""
    key = {"points": "run", "runs": "id"}[table]
    with closing(sqlite3.connect(runs / FILE)) as database, database:
        query = f"UPDATE {table} SET {column} = ? WHERE {key} = '20260102-000000-b'"
        assert database.execute(query, [value]).rowcount == 1


def _history(runs: Path) -> tuple[Any, list[str]]:
    store, said = _opened(runs)
    with closing(store):
        return store.history(), said


@pytest.mark.parametrize(("column", "value", "named"), recorded_trials.ALTERED_ROWS)
def test_an_index_with_an_altered_row_is_rebuilt_and_changes_no_history(
    column: str, value: Any, named: str, measured: Path
) -> None:
    expected, said = _history(measured)
    assert said == []
    assert len(expected[1]) == 2
    _set(measured, *column.split("."), value)
    found, (sentence,) = _history(measured)
    assert found == expected
    assert sentence.startswith(f"The index {measured / FILE} could not be used ({column}")
    assert named in sentence
    assert sentence.endswith("It was rebuilt from the event files; no data were lost.")
    assert (measured / f"{FILE}.damaged").exists()
    assert _history(measured) == (expected, [])


@pytest.mark.parametrize("column", ["runs.study", "points.title"])
def test_bytes_in_place_of_a_text_are_an_altered_row(column: str, measured: Path) -> None:
    """SQLite keeps them in any column; PostgreSQL does not."""
    expected, _ = _history(measured)
    _set(measured, *column.split("."), b"Fake")
    found, (sentence,) = _history(measured)
    assert found == expected
    assert f"({column} must be a string" in sentence


def test_an_index_that_is_altered_again_after_it_was_rebuilt_is_given_up(
    measured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, _ = _history(measured)

    def refuse(row: tuple[Any, ...]) -> points.Point:
        raise ValueError("points.line is bad")

    monkeypatch.setattr(index_rows, "to_point", refuse)
    found, (_, second) = _history(measured)
    assert found == expected
    assert "could not be read (points.line is bad). No data were lost" in second
