"""A damaged or altered index is renamed, reported and rebuilt from the event files, and changes no result."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import recorded_trials
from indexed_runs import new_run, new_trial, opened, rows

from steelyard.results import index_rows, points, record
from steelyard.results.store import FILE


def test_a_damaged_index_is_renamed_rebuilt_and_reported(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    new_trial(run, 1, 0, "fake", [1, 5, 10], "done")
    (tmp_path / "index.sqlite").write_bytes(b"garbage" * 999)
    store, (sentence,) = opened(tmp_path)
    store.close()
    assert "It was rebuilt from the event files; no data were lost." in sentence
    assert (tmp_path / "index.sqlite.damaged").read_bytes() == b"garbage" * 999
    assert len(rows(tmp_path, "id")) == 1


@pytest.mark.parametrize(
    "change",
    [
        "PRAGMA user_version = 1",
        "DROP TABLE trials",
        "ALTER TABLE blocks DROP COLUMN steps",
        "CREATE TABLE more (id TEXT)",
        "ALTER TABLE runs RENAME COLUMN study TO title",
    ],
)
def test_an_index_of_another_version_or_with_other_tables_is_rebuilt(change: str, tmp_path: Path) -> None:
    run = new_run(tmp_path)
    new_trial(run, 1, 0, "fake", [1, 5, 10], "done")
    opened(tmp_path)[0].close()
    with closing(sqlite3.connect(tmp_path / "index.sqlite")) as database:
        database.executescript(change)
    store, (sentence,) = opened(tmp_path)
    store.close()
    assert "could not be used (it was written by another version, or altered)" in sentence
    assert len(rows(tmp_path, "id")) == 1
    again, said = opened(tmp_path)
    again.close()
    assert said == []


def test_an_index_that_cannot_be_renamed_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "index.sqlite").write_bytes(b"garbage" * 999)
    (tmp_path / "index.sqlite.damaged").mkdir()
    store, (sentence,) = opened(tmp_path)
    store.add_run(new_run(tmp_path))
    assert "could not be used (file is not a database), nor rebuilt (" in sentence


def _damage_pages(path: Path) -> bytes:
    """Overwrite the second half of an index, and return its content."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2 :] = b"\xff" * (len(content) - len(content) // 2)
    path.write_bytes(content)
    return bytes(content)


def test_a_damaged_page_is_found_when_the_index_is_opened(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    for number in range(1, 9):
        new_trial(run, number, 0, "fake", [1] * 60, "done")
    opened(tmp_path)[0].close()
    content = _damage_pages(tmp_path / "index.sqlite")
    store, (sentence,) = opened(tmp_path)
    store.close()
    assert "could not be used (" in sentence
    assert (tmp_path / "index.sqlite.damaged").read_bytes() == content
    assert len(rows(tmp_path, "id")) == 8


def test_the_journal_of_a_damaged_index_that_another_process_uses_is_renamed_with_it(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    for number in range(1, 9):
        new_trial(run, number, 0, "fake", [1] * 60, "done")
    opened(tmp_path)[0].close()
    other = sqlite3.connect(tmp_path / "index.sqlite", isolation_level=None)
    other.execute("SELECT count(*) FROM trials").fetchone()
    _damage_pages(tmp_path / "index.sqlite")
    opened(tmp_path)[0].close()
    for suffix in ("", "-wal", "-shm"):
        assert (tmp_path / f"index.sqlite.damaged{suffix}").exists(), suffix
    assert len(rows(tmp_path, "id")) == 8
    other.close()


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two indexed runs that have a point each."""
    point = points.Point("", "line", "g", "fake", "Fake", "cached", "fake", "fake", "1", (1e6, 2e6))
    monkeypatch.setattr(points, "points", lambda folder, known, found: [replace(point, run=folder.name)])
    for name in ("20260101-000000-a", "20260102-000000-b"):
        record.update(new_run(tmp_path, name), state="complete", machine="m1", host={"cores_usable": 2})
    opened(tmp_path)[0].close()
    return tmp_path


def _set(runs: Path, table: str, column: str, value: Any) -> None:
    """Write a value into a column of the second run's rows."""
    key = {"points": "run", "runs": "id"}[table]
    with closing(sqlite3.connect(runs / FILE)) as database, database:
        query = f"UPDATE {table} SET {column} = ? WHERE {key} = '20260102-000000-b'"
        assert database.execute(query, [value]).rowcount == 1


def _history(runs: Path) -> tuple[Any, list[str]]:
    store, said = opened(runs)
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
