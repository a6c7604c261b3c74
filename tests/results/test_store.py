"""The index is derived from the event files: after loss, damage or delay it has the same contents again."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from dataclasses import replace
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


def _new_run(runs: Path, name: str = "20260101-000000-first-look") -> Path:
    folder = runs / name
    folder.mkdir(parents=True)
    record.write(folder, record.RunRecord(PLAN, "2026-01-01", "running", "steelyard run"))
    return folder


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
        updated = Store(run.parent)
        updated.add_run(run)
        for each in planned:
            trial = trials.read(_trial(run, *each))
            if trial.done or trial.error:
                updated.add_trial(run.name, trial)
        found = updated.trials(run.name)
        assert {trial.folder.name for trial in found} == {
            t.folder.name for t in map(trials.read, run.glob("trials/*")) if t.done or t.error
        }
        updated.close()
        (run.parent / "index.sqlite").unlink()
        rebuilt = Store(run.parent)
        assert rebuilt.trials(run.name) == found
        assert rebuilt.notice == ""
        rebuilt.close()


def test_a_trial_from_the_index_equals_the_trial_from_its_folder(tmp_path: Path) -> None:
    run = _new_run(tmp_path)
    trial = trials.read(_trial(run, 1, 0, "fake", [1, 5, 10], "done"))
    store = Store(tmp_path)
    store.add_run(run)
    store.add_trial(run.name, trial)
    (found,) = store.trials(run.name)
    assert found == trial
    assert found.steps_ns("cached").tolist() == trial.steps_ns("cached").tolist()
    store.close()


def test_adding_a_trial_again_replaces_its_entry(tmp_path: Path) -> None:
    run = _new_run(tmp_path)
    trial = trials.read(_trial(run, 1, 0, "fake", [1, 5, 10], "done"))
    store = Store(tmp_path)
    store.add_run(run)
    store.add_trial(run.name, trial)
    store.add_trial(run.name, trial)
    assert store.trials(run.name) == [trial]
    store.close()


def test_an_ended_trial_that_was_not_indexed_is_found_when_the_run_is_read(tmp_path: Path) -> None:
    run = _new_run(tmp_path)
    store = Store(tmp_path)
    store.add_run(run)
    assert store.trials(run.name) == []
    folder = _trial(run, 1, 0, "fake", [1, 5, 10], "done")
    assert [trial.folder for trial in store.trials(run.name)] == [folder]
    store.close()


def test_a_process_that_has_not_ended_is_not_indexed(tmp_path: Path) -> None:
    run = _new_run(tmp_path)
    _trial(run, 1, 0, "fake", [1, 5, 10], "nothing")
    store = Store(tmp_path)
    assert store.trials(run.name) == []
    store.close()


def test_moved_runs_are_read_and_deleted_trials_are_left_out(tmp_path: Path) -> None:
    run = _new_run(tmp_path / "here")
    first, second = (_trial(run, number, 0, "fake", [1, 5, 10], "done") for number in (1, 2))
    Store(run.parent).close()
    shutil.move(run.parent, tmp_path / "there")
    shutil.rmtree(tmp_path / "there" / run.name / "trials" / second.name)
    store = Store(tmp_path / "there")
    (found,) = store.trials(run.name)
    assert found.folder == tmp_path / "there" / run.name / "trials" / first.name
    assert len(found.steps_ns("cached")) == 10
    store.close()


def test_a_damaged_run_is_reported_and_the_others_are_indexed(tmp_path: Path) -> None:
    intact, damaged = _new_run(tmp_path, "20260102-000000-a"), _new_run(tmp_path, "20260101-000000-b")
    _trial(intact, 1, 0, "fake", [1, 5, 10], "done")
    (damaged / "run.json").write_text("{")
    store = Store(tmp_path)
    assert str(damaged / "run.json") in store.notice
    assert len(store.trials(intact.name)) == 1
    with pytest.raises(record.UnreadableRun):
        store.trials(damaged.name)
    store.close()


def test_a_damaged_index_is_renamed_rebuilt_and_reported(tmp_path: Path) -> None:
    run = _new_run(tmp_path)
    _trial(run, 1, 0, "fake", [1, 5, 10], "done")
    Store(tmp_path).close()
    (tmp_path / "index.sqlite").write_bytes(b"garbage" * 999)
    store = Store(tmp_path)
    assert "It was rebuilt from the event files; no data were lost." in store.notice
    assert (tmp_path / "index.sqlite.damaged").read_bytes() == b"garbage" * 999
    assert len(store.trials(run.name)) == 1
    store.close()


def test_an_index_that_is_locked_by_another_process_is_not_damaged_and_updated_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = _new_run(tmp_path)
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


def test_trials_that_cannot_be_indexed_on_a_full_disk_are_indexed_later(tmp_path: Path) -> None:
    run = _new_run(tmp_path)
    store = Store(tmp_path)
    store.add_run(run)
    store._database.execute("PRAGMA max_page_count = 1")  # makes SQLite report a full disk
    folders = [_trial(run, number, 0, "fake", [1] * 400, "done") for number in (1, 2, 3)]
    for folder in folders:
        store.add_trial(run.name, trials.read(folder))
    assert "could not be written (database or disk is full). No data were lost" in store.notice
    store.close()
    reopened = Store(tmp_path)
    assert [trial.folder for trial in reopened.trials(run.name)] == folders
    reopened.close()


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("", "damaged"),
        ("{", "damaged"),
        ("[]", "damaged"),
        ("null", "damaged"),
        ('{"plan": {}}', "damaged"),
        ('{"format": "2"}', "damaged"),
        ('{"format": 3, "plan": {}, "created": "", "state": ""}', "damaged"),
        ('{"format": 1}', "older format"),
        ('{"format": 1, "plan": {}, "created": "", "state": ""}', "older format"),
        ('{"format": 4, "plan": {}, "created": "", "state": ""}', "newer format"),
    ],
)
def test_a_run_json_that_cannot_be_used_is_named_with_its_state(text: str, state: str, tmp_path: Path) -> None:
    run = _new_run(tmp_path)
    (run / "run.json").write_text(text)
    with pytest.raises(record.UnreadableRun, match=r"run\.json") as raised:
        record.read(run)
    assert raised.value.state == state


def test_a_run_json_that_cannot_be_opened_is_unreadable(tmp_path: Path) -> None:
    run = _new_run(tmp_path)
    (run / "run.json").unlink()
    (run / "run.json").mkdir()
    with pytest.raises(record.UnreadableRun, match=r"run\.json cannot be read \(Is a directory\)\.") as raised:
        record.read(run)
    assert raised.value.state == "unreadable"


def test_the_message_about_an_older_format_tells_what_to_do(tmp_path: Path) -> None:
    run = _new_run(tmp_path)
    (run / "run.json").write_text('{"format": 1, "plan": {"options": {}}, "created": "", "state": "complete"}')
    with pytest.raises(record.UserError, match=r"has the older format 1; .* reads format 3\. Read it with the version"):
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
    run = _new_run(tmp_path)
    raw = json.loads((run / "run.json").read_text())
    place = raw
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    (run / "run.json").write_text(json.dumps(raw))
    with pytest.raises(record.UserError, match=named):
        record.read(run)


def test_a_run_json_is_the_same_after_writing_and_reading(tmp_path: Path) -> None:
    run = _new_run(tmp_path)
    assert record.read(run).plan == PLAN
    assert record.update(run, state="complete").plan == PLAN
    assert record.read(run).state == "complete"


def _complete(trial: trials.Trial) -> trials.Trial:
    """Return the trial with a value in every field that a process can record."""
    return replace(
        trial,
        method=7,
        applied={"mode": "scripted", "threads": 2},
        libraries={"numpy": "2.1"},
        phases_ns={"import": 5, "first-step": 8},
        first_step_since_spawn_ns=30,
        evaluation=trials.Evaluation(40, {"accuracy": 0.75}, 9),
        peak_resident_bytes=1000,
        peak_device_bytes=2000,
        warnings=({"kind": "spill", "message": "Slow."},),
    )


@pytest.mark.parametrize("ending", [{"done": True, "error": None}, {"done": False, "error": ("crash", "It broke.")}])
def test_every_field_of_a_trial_is_in_the_index(ending: dict[str, Any], tmp_path: Path) -> None:
    run = _new_run(tmp_path)
    trial = replace(_complete(trials.read(_trial(run, 1, 0, "fake", [1, 5, 10], "done"))), **ending)
    store = Store(tmp_path)
    store.add_run(run)
    store.add_trial(run.name, trial)
    assert store.trials(run.name) == [trial]
    store.close()


def test_the_index_can_be_searched_by_what_decides_a_trial(tmp_path: Path) -> None:
    """The columns are for other programs: the index is an ordinary SQLite file."""
    run = _new_run(tmp_path)
    trial = _complete(trials.read(_trial(run, 2, 1, "fake", [1, 5, 10], "error")))
    trial = replace(trial, job=replace(trial.job, worker_hash="0123"), error=("crash", "It broke."))
    store = Store(tmp_path)
    store.add_run(run)
    store.add_trial(run.name, trial)
    store.close()
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
    indexed = dict(database.execute("SELECT * FROM runs").fetchone())
    assert (indexed["id"], indexed["folder"], indexed["study"]) == (run.name, str(run), PLAN.study.name)
    assert (indexed["created"], indexed["state"]) == ("2026-01-01", "running")
    assert json.loads(indexed["plan"]) == json.loads(json.dumps(PLAN.to_dict()))
    assert database.execute("SELECT count(*) FROM blocks").fetchone()[0] == 3
    database.close()


def test_the_entry_of_a_run_follows_its_state_and_keeps_its_trials(tmp_path: Path) -> None:
    run = _new_run(tmp_path)
    _trial(run, 1, 0, "fake", [1, 5, 10], "done")
    store = Store(tmp_path)
    assert len(store.trials(run.name)) == 1
    record.update(run, state="complete", machine="m1")
    store.add_run(run)
    row = store._database.execute("SELECT state, machine FROM runs").fetchall()
    assert [tuple(each) for each in row] == [("complete", "m1")]
    assert store._database.execute("SELECT count(*) FROM trials").fetchone()[0] == 1
    store.close()


def test_trials_are_sorted_by_round_and_attempt_and_blocks_by_their_steps(tmp_path: Path) -> None:
    run, other = _new_run(tmp_path), _new_run(tmp_path, "20260102-000000-other")
    for number, attempt in ((10, 0), (2, 1), (2, 0)):
        _trial(run, number, attempt, "fake", [1, 5, 10, 10], "done")
    _trial(other, 1, 0, "fake", [1, 7], "done")
    store = Store(tmp_path)
    found = store.trials(run.name)
    assert [(trial.job.round, trial.job.attempt) for trial in found] == [(2, 0), (2, 1), (10, 0)]
    assert [[block.first_step for block in trial.blocks] for trial in found] == [[0, 1, 6, 16]] * 3
    assert [[block.steps for block in trial.blocks] for trial in store.trials(other.name)] == [[1, 7]]
    assert store.notice == ""
    store.close()


def test_without_a_folder_for_the_index_the_event_files_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = _new_run(tmp_path)
    _trial(run, 1, 0, "fake", [1, 5, 10], "done")
    (tmp_path / "index.sqlite").mkdir()  # SQLite cannot open a folder, as it cannot write on a read-only disk
    store = Store(tmp_path)
    assert store.notice.startswith(
        f"The index {tmp_path / 'index.sqlite'} cannot be used (unable to open database file)"
    )
    assert len(store.trials(run.name)) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"index.sqlite", run.name}, "the index is in memory only"
    store.close()


def test_the_folder_of_the_index_is_created(tmp_path: Path) -> None:
    Store(tmp_path / "new" / "runs").close()
    assert (tmp_path / "new" / "runs" / "index.sqlite").is_file()
    Store(tmp_path / "new" / "runs").close()


def test_an_index_of_another_version_is_renamed_and_rebuilt(tmp_path: Path) -> None:
    run = _new_run(tmp_path)
    _trial(run, 1, 0, "fake", [1, 5, 10], "done")
    database = sqlite3.connect(tmp_path / "index.sqlite")
    database.executescript("CREATE TABLE trials (id TEXT); PRAGMA user_version = 1")
    database.close()
    store = Store(tmp_path)
    assert "could not be used (it was written by another version)" in store.notice
    assert (tmp_path / "index.sqlite.damaged").exists()
    assert len(store.trials(run.name)) == 1
    store.close()
    again = Store(tmp_path)
    assert again.notice == ""
    again.close()


def test_a_damaged_trial_is_reported_once_and_the_others_are_indexed(tmp_path: Path) -> None:
    run = _new_run(tmp_path)
    good, damaged = (_trial(run, number, 0, "fake", [1, 5, 10], "done") for number in (1, 2))
    (damaged / "job.json").write_text("{")
    (run / "trials" / "r03.0-fake").mkdir()  # a process that was killed before it got its job
    store = Store(tmp_path)
    for _ in range(2):
        assert [trial.folder for trial in store.trials(run.name)] == [good]
    assert store.notice.count("Trial r02.0-fake cannot be read") == 1
    store.close()


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
    Store(tmp_path).close()
    content = _damage_pages(tmp_path / "index.sqlite")
    store = Store(tmp_path)
    assert "could not be used (" in store.notice
    assert (tmp_path / "index.sqlite.damaged").read_bytes() == content
    assert len(store.trials(run.name)) == 8
    store.close()


def test_the_journal_of_a_damaged_index_that_another_process_uses_is_renamed_with_it(tmp_path: Path) -> None:
    run = _new_run(tmp_path)
    for number in range(1, 9):
        _trial(run, number, 0, "fake", [1] * 60, "done")
    Store(tmp_path).close()
    other = sqlite3.connect(tmp_path / "index.sqlite", isolation_level=None)
    other.execute("SELECT count(*) FROM trials").fetchone()
    _damage_pages(tmp_path / "index.sqlite")
    store = Store(tmp_path)
    for suffix in ("", "-wal", "-shm"):
        assert (tmp_path / f"index.sqlite.damaged{suffix}").exists(), suffix
    assert len(store.trials(run.name)) == 8
    store.close()
    other.close()


def test_a_refused_entry_is_reported_and_does_not_block_the_next(tmp_path: Path) -> None:
    run = _new_run(tmp_path)
    trial = trials.read(_trial(run, 1, 0, "fake", [1, 5, 10], "done"))
    store = Store(tmp_path)
    store.add_trial("a run that is not indexed", trial)
    assert "could not be written (FOREIGN KEY constraint failed)" in store.notice
    store.add_run(run)
    store.add_trial(run.name, trial)
    assert store.trials(run.name) == [trial]
    store.close()


def test_another_process_may_use_the_index_for_half_a_minute(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store._database.execute("PRAGMA busy_timeout").fetchone()[0] == 30_000
    store.close()
