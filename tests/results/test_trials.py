"""Reading trials: complete, incomplete and damaged files."""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import recorded_trials
from hypothesis import given
from hypothesis import strategies as st

from steelyard.errors import UserError
from steelyard.results import trials
from steelyard_worker import protocol, tensors

BLOCKS = st.lists(st.integers(1, 40), max_size=8).map(tuple)
ENDINGS = st.sampled_from(["done", "error", "nothing"])
WEIRD = st.sampled_from(
    [
        b"\n",
        b"123\n",
        b"[]\n",
        b"null\n",
        b'"text"\n',
        b"{}\n",
        b'{"v": 2}\n',
        b'{"v": 2, "event": "samples"}\n',
        b'{"v": 7, "event": "done"}\n',
        b"\xff\xfe\n",
        b"\x00" * 40,
    ]
)


def _read(text: bytes) -> trials.Trial:
    with tempfile.TemporaryDirectory() as name:
        folder = recorded_trials.write(Path(name) / "t", recorded_trials.job(Path(name)), [])
        (folder / protocol.EVENTS).write_bytes(text)
        return trials.read(folder)


def _text(events: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(event) + "\n" for event in events).encode()


@given(blocks=BLOCKS, ending=ENDINGS, cut=st.floats(0, 1))
def test_a_truncated_record_gives_the_first_blocks_of_the_complete_one(
    blocks: tuple[int, ...], ending: str, cut: float
) -> None:
    text = _text(recorded_trials.events(blocks, ending))
    complete, part = _read(text), _read(text[: round(cut * len(text))])
    assert part.blocks == complete.blocks[: len(part.blocks)]
    assert sum(block.steps for block in part.blocks) <= sum(blocks)
    assert part.done <= complete.done
    assert part.error in (None, complete.error)


@given(blocks=BLOCKS, cut=st.integers(0, 20))
def test_the_blocks_of_a_trial_are_those_of_its_events(blocks: tuple[int, ...], cut: int) -> None:
    events = recorded_trials.events(blocks)[:cut]
    trial = trials.replay(Path("/t"), recorded_trials.job(Path("/t")), events)
    samples = [event for event in events if event["event"] == "samples"]
    assert [(b.first_step, b.steps, b.elapsed_ns) for b in trial.blocks] == [
        (e["first_step"], e["steps"], e["elapsed_ns"]) for e in samples
    ]
    assert trial.done == any(event["event"] == "done" for event in events)


@given(blocks=BLOCKS, weird=WEIRD, place=st.integers(0, 12))
def test_a_damaged_line_is_an_error_that_names_the_trial_or_changes_nothing(
    blocks: tuple[int, ...], weird: bytes, place: int
) -> None:
    lines = _text(recorded_trials.events(blocks)).splitlines(keepends=True)
    try:
        trial = _read(b"".join([*lines[:place], weird, *lines[place:]]))
    except UserError as error:
        assert "Trial t cannot be read" in str(error)
        assert "To leave it out, delete" in str(error)
    else:
        assert [block.steps for block in trial.blocks] == list(blocks[: len(trial.blocks)])


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "{}", '{"version": 2}', '{"version": 99}', '{"version": 2, "case": 3}', "\x00"]
)
def test_a_damaged_job_is_an_error_that_names_the_trial(text: str, tmp_path: Path) -> None:
    folder = recorded_trials.write(tmp_path / "t", recorded_trials.job(tmp_path), recorded_trials.events())
    (folder / "job.json").write_text(text)
    with pytest.raises(UserError, match=r"Trial t cannot be read: .* To leave it out, delete .*t\."):
        trials.read(folder)


def test_step_times_and_losses_are_read_from_the_binary_files(tmp_path: Path) -> None:
    folder = recorded_trials.write(
        tmp_path / "t", recorded_trials.job(tmp_path), recorded_trials.events((1, 5, 10, 10))
    )
    trial = trials.read(folder)
    assert trial.steps_ns("cached").tolist() == [recorded_trials.STEP_NS] * 20
    assert trial.steps_ns("cached", ("first", "warm-up")).tolist() == [recorded_trials.STEP_NS] * 6
    assert trial.location_ns("cached") == recorded_trials.STEP_NS
    assert trial.losses("cached")[:2].tolist() == [1.0, 0.5]
    assert trial.location_ns("pipeline") is None


@pytest.mark.parametrize("name", ["samples.i64", "losses.f32"])
def test_a_binary_file_that_is_missing_or_short_is_named(name: str, tmp_path: Path) -> None:
    folder = recorded_trials.write(tmp_path / "t", recorded_trials.job(tmp_path), recorded_trials.events())
    trial = trials.read(folder)
    read = (lambda: trial.steps_ns("cached")) if name == "samples.i64" else (lambda: trial.losses("cached"))
    (folder / name).write_bytes(b"1234")
    with pytest.raises(UserError, match=rf"{name} is too short: .* To leave this trial out, delete .*\."):
        read()
    (folder / name).unlink()
    with pytest.raises(UserError, match=rf"{name} cannot be read \(No such file or directory\)\."):
        read()


def _edited(name: str, old: str, new: str) -> Any:
    def edit(folder: Path) -> None:
        path = folder / name
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new, 1))

    return edit


def _overwritten(name: str, place: int, content: bytes) -> Any:
    def overwrite(folder: Path) -> None:
        with (folder / name).open("r+b") as file:
            file.seek(place)
            file.write(content)

    return overwrite


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (
            _edited("events.jsonl", '"elapsed_ns": 50000000', '"elapsed_ns": -5'),
            r"events\.jsonl, line 5: samples\.elapsed_ns must be at",
        ),
        (
            _edited("events.jsonl", '"steps": 5', '"steps": 0'),
            r"events\.jsonl, line 5: samples\.steps must be at least 1",
        ),
        (_edited("events.jsonl", '"steps": 5', '"steps": 1e9'), r"line 5: samples\.steps must be a whole number"),
        (_edited("events.jsonl", '"steps": 5', f'"steps": {10**30}'), r"line 5: samples\.steps must be at most"),
        (_edited("events.jsonl", '"steps": 5', f'"steps": {10**15}'), r"samples\.i64 is too short"),
        (_edited("events.jsonl", '"input": "cached", ', ""), r"line 4: samples lacks the field 'input'"),
        (_edited("events.jsonl", ": 1000,", ": NaN,"), r"line 7: memory\.peak_resident_bytes must be a finite number"),
        (_edited("events.jsonl", '{"v": 2, "t_ns": 1', "garbage"), r"events\.jsonl, line 2: not an event"),
        (_edited("events.jsonl", '"event": "phase"', '"event": 7'), r"events\.jsonl, line 2: not an event"),
        (
            _edited("job.json", '"round": 1', '"round": "one"'),
            r"job\.json is damaged \(Job\.round must be a whole number",
        ),
        (
            _overwritten("samples.i64", 64, b"\xff" * 8),
            r"samples\.i64 is damaged: the times of the block from step 6 on",
        ),
        (
            _overwritten("losses.f32", 32, b"\x00\x00\xc0\x7f"),
            r"losses\.f32 is damaged: a loss from step 6 on is not a finite",
        ),
        (lambda folder: (folder / "losses.f32").unlink(), r"losses\.f32 cannot be read \(No such file"),
        (
            lambda folder: (folder / "events.jsonl").write_bytes(b"\x00\xff" * 99 + b"\n"),
            r"events\.jsonl, line 1: not an event",
        ),
    ],
)
def test_a_damaged_trial_is_named_with_file_and_line_and_the_others_are_read(
    damage: Any, named: str, tmp_path: Path
) -> None:
    folders = [tmp_path / "trials" / f"r0{number}.0-fake" for number in (1, 2)]
    for number, folder in enumerate(folders, 1):
        recorded_trials.write(folder, recorded_trials.job(folder, number), recorded_trials.events())
    damage(folders[0])
    found, (sentence,) = trials.read_all(tmp_path)
    assert [trial.folder for trial in found] == folders[1:]
    assert re.search(named, sentence), sentence
    assert f", delete {folders[0]}." in sentence


def test_only_ended_trials_are_returned_sorted_by_round_and_attempt(tmp_path: Path) -> None:
    for number, attempt, ending in ((10, 0, "done"), (2, 1, "error"), (2, 0, "done"), (3, 0, "nothing")):
        folder = tmp_path / "trials" / f"r{number:02d}.{attempt}-fake"
        recorded_trials.write(
            folder, recorded_trials.job(folder, number, attempt), recorded_trials.events(ending=ending)
        )
    (tmp_path / "trials" / "r04.0-fake").mkdir()  # a process that was killed before it got its job
    found, damaged = trials.read_all(tmp_path)
    assert [(trial.job.round, trial.job.attempt) for trial in found] == [(2, 0), (2, 1), (10, 0)]
    assert damaged == []


@pytest.mark.parametrize("name", ["job.json", "events.jsonl", "samples.i64"])
def test_a_pipe_in_place_of_a_file_is_not_waited_for(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "trials" / "r01.0-fake"
    recorded_trials.write(folder, recorded_trials.job(folder), recorded_trials.events())
    (folder / name).unlink()
    os.mkfifo(folder / name)
    assert len(trials.read_all(tmp_path)[1]) == 1


def test_predictions_that_cannot_be_scored_lose_no_times(tmp_path: Path) -> None:
    folder = tmp_path / "trials" / "r01.0-fake"
    events = recorded_trials.events()
    events.insert(-1, {**events[-1], "event": "evaluated", "steps": 40, "samples": 4, "elapsed_ns": 9})
    recorded_trials.write(folder, recorded_trials.job(folder), events)
    for predicted, reason in (
        ({}, "there is no array 'predicted'"),
        ({"predicted": np.zeros((4, 2))}, "ValueError: operands could not be broadcast"),
    ):
        tensors.write(folder / protocol.PREDICTIONS, {"truth": np.zeros(3), **predicted})
        (trial,), damaged = trials.read_all(tmp_path)
        (evaluation,), (warning,) = trial.evaluations, trial.warnings
        assert (damaged, evaluation.scores, evaluation.steps) == ([], {}, 40)
        assert warning["name"] == protocol.NOT_SCORED and reason in warning["reason"]
        assert trial.location_ns("cached") > 0
    (folder / protocol.PREDICTIONS / tensors.BYTES).write_bytes(b"1")
    assert "does not hold what index.json says of it" in trials.read_all(tmp_path)[1][0]
    (folder / protocol.PREDICTIONS / tensors.INDEX).write_text("[]")
    assert "has tensor format None" in trials.read_all(tmp_path)[1][0]
