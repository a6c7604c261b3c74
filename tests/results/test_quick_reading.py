"""What is read quickly is what the checked reader returns, and what does not fit is refused with its sentence."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import recorded_trials
from hypothesis import given
from hypothesis import strategies as st
from indexed_runs import PLAN

from steelyard.results import events, index_rows, recorded_jobs, trials
from steelyard_worker import protocol, records

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.integers(-2, 2),
    st.floats(),
    st.text(max_size=3),
    st.just([]),
    st.just({}),
    st.dictionaries(st.text(max_size=2), st.integers(-1, 2), max_size=2),
)
WHOLE = {
    "input": "cached",
    "phase": "counted",
    "steps": 5,
    "start_ns": 7,
    "elapsed_ns": 11,
    "first_step": 0,
    "energy_uj": {},
    "gpu_percent": None,
    "t_ns": 13,
}


def _outcome(read: Any, *values: Any) -> Any:
    """Return what a function returns, or the text of its ValueError."""
    try:
        return repr(read(*values))
    except ValueError as error:
        return str(error)


@given(
    changes=st.dictionaries(st.sampled_from([*WHOLE, "cpu_ns", "sent_bytes", "unknown"]), VALUES, max_size=3),
    lacks=st.sets(st.sampled_from(list(WHOLE)), max_size=1),
)
def test_a_block_is_what_the_checked_reader_makes_of_it(changes: dict[str, Any], lacks: set[str]) -> None:
    event = {name: value for name, value in {"event": "samples", **WHOLE, **changes}.items() if name not in lacks}
    slow = _outcome(records.convert, events.Block, event, "samples")
    quick = _outcome(events.checked, event, 3)
    assert quick.removeprefix("events.jsonl, line 3: ") == slow


@given(
    kind=st.sampled_from(sorted(events.EVENTS)),
    values=st.dictionaries(
        st.sampled_from(
            [
                "method",
                "pid",
                "name",
                "elapsed_ns",
                "since_spawn_ns",
                "steps",
                "samples",
                "epoch",
                "kind",
                "message",
                "applied",
                "libraries",
                "spawned_ns",
                "ended_ns",
                "behind_ns",
                "cores",
                "blocks_ns",
                "missed",
                "files",
                "batch",
                "fingerprints",
            ]
        ),
        VALUES,
    ),
)
def test_every_event_is_what_the_checked_reader_makes_of_it(kind: str, values: dict[str, Any]) -> None:
    event = {"event": kind, **values}
    slow = _outcome(records.convert, events.EVENTS[kind], event, kind)
    assert _outcome(events.checked, event, 3).removeprefix("events.jsonl, line 3: ") == slow


def test_jobs_are_those_of_the_checked_reader_and_share_their_case() -> None:
    texts = [
        json.dumps(asdict(recorded_trials.job(Path(f"/runs/{number}"), number, 1, spawned_ns=number)))
        for number in (1, 2)
    ]
    one, two = (recorded_jobs.read(text) for text in texts)
    assert [one, two] == [protocol.from_line(text) for text in texts]
    assert one.case is two.case


def test_a_job_with_another_case_or_schedule_is_not_taken_for_an_earlier_one() -> None:
    known = asdict(recorded_trials.job(Path("/runs/1")))
    recorded_jobs.read(json.dumps(known))
    changed = known | {"case": known["case"] | {"seed": 7}, "schedule": known["schedule"] | {"counted_max": 5}}
    found = recorded_jobs.read(json.dumps(changed))
    assert (found.case.seed, found.schedule.counted_max) == (7, 5)


@pytest.mark.parametrize(
    "change",
    [
        {"round": -0.5},
        {"round": "1"},
        {"attempt": None},
        {"folder": 3},
        {"spawned_ns": 2**70},
        {"version": 0},
        {"case": {}},
        {"kind": 1},
    ],
    ids=str,
)
def test_a_wrong_job_is_refused_with_the_sentence_of_the_checked_reader(change: dict[str, Any]) -> None:
    known = asdict(recorded_trials.job(Path("/runs/1")))
    recorded_jobs.read(json.dumps(known))
    text = json.dumps(known | change)
    with pytest.raises(ValueError) as expected:
        protocol.from_line(text)
    with pytest.raises(ValueError) as said:
        recorded_jobs.read(text)
    assert str(said.value) == str(expected.value)


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"folder": "/runs"}'])
def test_what_is_no_job_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        recorded_jobs.read(text)


def test_a_dataclass_as_json_is_that_of_its_dictionary() -> None:
    for made in (recorded_trials.job(Path("/runs/1")), PLAN):
        assert index_rows.as_json(made) == json.dumps(records.plain(made))


def test_the_trials_of_a_run_are_written_by_one_statement_for_each_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "20260102-030405-line"
    for number in (1, 2, 3):
        folder = run / "trials" / f"r{number:02d}.0-fake"
        recorded_trials.write(folder, recorded_trials.job(folder, number), recorded_trials.events((1, 5, 10)))
    found, damaged = trials.read_all(run)
    one_by_one = [statement for trial in found for statement in index_rows.of_trial("a run", trial)]
    parts: list[Any] = []
    usual = index_rows.as_json
    monkeypatch.setattr(index_rows, "as_json", lambda made: parts.append(type(made).__name__) or usual(made))
    at_once = index_rows.of_trials("a run", found)

    assert not damaged
    assert [text.split(" (")[0] for text, _ in at_once] == [
        "DELETE FROM trials WHERE run = :run",
        "INSERT INTO trials",
        "INSERT INTO blocks",
    ]
    assert _inserted(at_once) == _inserted(one_by_one)
    assert parts.count("Case") == 1  # all three jobs have it
    jobs = [json.loads(row["job"]) for row in at_once[1][1]]
    assert jobs == [json.loads(json.dumps(records.plain(trial.job))) for trial in found]


def _inserted(statements: list[index_rows.Statement]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows that statements insert, by table."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for text, values in statements:
        if text.startswith("INSERT INTO "):
            rows.setdefault(text.split()[2], []).extend(values)
    return rows


def test_a_binary_file_is_opened_once_for_all_blocks_of_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "r01.0-fake"
    recorded_trials.write(folder, recorded_trials.job(folder), recorded_trials.events((1, 5, *[10] * 20)))
    trial = trials.read(folder)
    opened: list[str] = []
    usual = Path.open
    monkeypatch.setattr(
        Path, "open", lambda path, *more, **options: opened.append(path.name) or usual(path, *more, **options)
    )
    trial.check_files()
    assert sorted(opened) == [protocol.LOSSES, protocol.SAMPLES]
