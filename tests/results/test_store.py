"""The index is a copy of the event files: it can be lost, damaged or late, and says the same afterwards."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import pytest
import recorded_trials
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard.results import record, trials
from steelyard.results.store import Store

TRIALS = st.lists(
    st.tuples(
        st.integers(1, 12), st.integers(0, 3), st.sampled_from(["fake", "dummy"]),
        st.lists(st.integers(1, 30), max_size=5), st.sampled_from(["done", "error", "nothing"]),
    ),
    max_size=6, unique_by=lambda each: each[:3],
)  # fmt: skip


WORKLOADS = Path(__file__).parents[1] / "workloads"
PLAN = resolve.plan(Options(workloads=("line",), frameworks=("fake",), workload_folders=(str(WORKLOADS),)))


def _begin(runs: Path, name: str = "20260101-000000-first-look") -> Path:
    folder = runs / name
    folder.mkdir(parents=True)
    record.write(folder, record.RunRecord(PLAN, "2026-01-01", "running", "steelyard run"))
    return folder


def _trial(run: Path, number: int, attempt: int, framework: str, blocks: list[int], ending: str) -> Path:
    folder = run / "trials" / f"r{number:02d}.{attempt}-{framework}"
    made = recorded_trials.job(folder, number, attempt, framework)
    return recorded_trials.write(folder, made, recorded_trials.events(tuple(blocks), ending))


@settings(max_examples=25)
@given(asked=TRIALS)
def test_an_index_that_was_rebuilt_or_is_late_equals_one_that_was_kept_up(
    asked: list[tuple[int, int, str, list[int], str]],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        run = _begin(Path(name))
        kept_up = Store(run.parent)
        kept_up.add_run(run)
        for each in asked:
            trial = trials.read(_trial(run, *each))
            if trial.done or trial.error:
                kept_up.add_trial(run.name, trial)
        told = kept_up.trials(run.name)
        assert {trial.folder.name for trial in told} == {
            t.folder.name for t in map(trials.read, run.glob("trials/*")) if t.done or t.error
        }
        kept_up.close()
        (run.parent / "index.sqlite").unlink()
        fresh = Store(run.parent)
        assert fresh.trials(run.name) == told
        assert fresh.notice == ""
        fresh.close()


def test_a_trial_comes_out_of_the_index_as_it_was_read(tmp_path: Path) -> None:
    run = _begin(tmp_path)
    trial = trials.read(_trial(run, 1, 0, "fake", [1, 5, 10], "done"))
    store = Store(tmp_path)
    store.add_run(run)
    store.add_trial(run.name, trial)
    (found,) = store.trials(run.name)
    assert found == trial
    assert found.steps_ns("cached").tolist() == trial.steps_ns("cached").tolist()
    store.close()


def test_a_trial_that_is_added_again_replaces_what_was_known_of_it(tmp_path: Path) -> None:
    run = _begin(tmp_path)
    trial = trials.read(_trial(run, 1, 0, "fake", [1, 5, 10], "done"))
    store = Store(tmp_path)
    store.add_run(run)
    store.add_trial(run.name, trial)
    store.add_trial(run.name, trial)
    assert store.trials(run.name) == [trial]
    store.close()


def test_a_process_that_ended_unseen_is_found_when_the_run_is_read(tmp_path: Path) -> None:
    run = _begin(tmp_path)
    store = Store(tmp_path)
    store.add_run(run)
    assert store.trials(run.name) == []
    folder = _trial(run, 1, 0, "fake", [1, 5, 10], "done")
    assert [trial.folder for trial in store.trials(run.name)] == [folder]
    store.close()


def test_a_process_that_has_not_ended_is_in_no_index(tmp_path: Path) -> None:
    run = _begin(tmp_path)
    _trial(run, 1, 0, "fake", [1, 5, 10], "nothing")
    store = Store(tmp_path)
    assert store.trials(run.name) == []
    store.close()


def test_runs_that_were_moved_or_thinned_out_are_read_where_they_are(tmp_path: Path) -> None:
    run = _begin(tmp_path / "here")
    first, second = (_trial(run, number, 0, "fake", [1, 5, 10], "done") for number in (1, 2))
    Store(run.parent).close()
    shutil.move(run.parent, tmp_path / "there")
    shutil.rmtree(tmp_path / "there" / run.name / "trials" / second.name)
    store = Store(tmp_path / "there")
    (found,) = store.trials(run.name)
    assert found.folder == tmp_path / "there" / run.name / "trials" / first.name
    assert len(found.steps_ns("cached")) == 10
    store.close()


def test_a_damaged_run_is_told_and_the_others_are_indexed(tmp_path: Path) -> None:
    whole, damaged = _begin(tmp_path, "20260102-000000-a"), _begin(tmp_path, "20260101-000000-b")
    _trial(whole, 1, 0, "fake", [1, 5, 10], "done")
    (damaged / "run.json").write_text("{")
    store = Store(tmp_path)
    assert str(damaged / "run.json") in store.notice
    assert [row["id"] for row in store.runs()] == [whole.name]
    assert len(store.trials(whole.name)) == 1
    store.close()


def test_a_damaged_index_is_kept_aside_and_said(tmp_path: Path) -> None:
    run = _begin(tmp_path)
    _trial(run, 1, 0, "fake", [1, 5, 10], "done")
    Store(tmp_path).close()
    (tmp_path / "index.sqlite").write_bytes(b"garbage" * 999)
    store = Store(tmp_path)
    assert "it was rebuilt from the event files, nothing is lost." in store.notice
    assert (tmp_path / "index.sqlite.damaged").read_bytes() == b"garbage" * 999
    assert len(store.trials(run.name)) == 1
    store.close()


def test_an_index_that_another_process_holds_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = _begin(tmp_path)
    _trial(run, 1, 0, "fake", [1, 5, 10], "done")
    Store(tmp_path).close()
    monkeypatch.setattr("steelyard.results.store.BUSY_S", 0.01)
    holder = sqlite3.connect(tmp_path / "index.sqlite", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    store = Store(tmp_path)
    _trial(run, 2, 0, "fake", [1, 5, 10], "done")
    store.trials(run.name)
    assert "could not be written (database is locked)" in store.notice
    assert not (tmp_path / "index.sqlite.damaged").exists()
    holder.execute("ROLLBACK")
    assert len(store.trials(run.name)) == 2
    store.close()
    holder.close()


def test_a_disk_that_takes_no_more_stops_nobody(tmp_path: Path) -> None:
    run = _begin(tmp_path)
    store = Store(tmp_path)
    store.add_run(run)
    store._database.execute("PRAGMA max_page_count = 1")  # SQLite's own way of meeting a full disk
    folders = [_trial(run, number, 0, "fake", [1] * 400, "done") for number in (1, 2, 3)]
    for folder in folders:
        store.add_trial(run.name, trials.read(folder))
    assert "could not be written (database or disk is full); the event files have everything." in store.notice
    store.close()
    late = Store(tmp_path)
    assert [trial.folder for trial in late.trials(run.name)] == folders
    late.close()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"format": 1}',
        '{"format": 1, "plan": {}, "created": "", "state": ""}',
        '{"format": 2, "plan": {}, "created": "", "state": ""}',
        '{"format": 3, "plan": {}, "created": "", "state": ""}',
    ],
)
def test_a_damaged_head_of_a_run_is_refused_by_name(text: str, tmp_path: Path) -> None:
    run = _begin(tmp_path)
    (run / "run.json").write_text(text)
    with pytest.raises(record.UserError, match=r"run\.json"):
        record.read(run)


def test_a_run_of_the_older_format_is_refused_in_one_sentence_that_says_what_to_do(tmp_path: Path) -> None:
    run = _begin(tmp_path)
    (run / "run.json").write_text('{"format": 1, "plan": {"options": {}}, "created": "", "state": "complete"}')
    with pytest.raises(record.UserError, match=r"has format 1, .* reads format 2\. Read it with that version"):
        record.read(run)


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (("plan", "groups"), None, r"plan\.groups must be a list"),
        (("plan", "options", "seed"), "x", r"plan\.options\.seed must be a whole number"),
        (("plan", "groups", 0, "variants", 0, "case", "sizes"), [], r"variants\[0\]\.case\.sizes must be an object"),
        (("plan", "groups", 0, "variants", 0, "case", "settings", "mode"), 3, r"settings\.mode must be a string"),
        (("created",), 5, r"run\.created must be a string"),
    ],
)
def test_a_field_of_the_wrong_type_is_named(path: tuple[Any, ...], value: Any, named: str, tmp_path: Path) -> None:
    run = _begin(tmp_path)
    raw = json.loads((run / "run.json").read_text())
    place = raw
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    (run / "run.json").write_text(json.dumps(raw))
    with pytest.raises(record.UserError, match=named):
        record.read(run)


def test_the_record_of_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    run = _begin(tmp_path)
    assert record.read(run).plan == PLAN
    assert record.update(run, state="complete").plan == PLAN
    assert record.read(run).state == "complete"
