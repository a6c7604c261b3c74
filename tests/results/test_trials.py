"""Reading trials: complete, incomplete and damaged files."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
import recorded_trials
from hypothesis import given
from hypothesis import strategies as st

from steelyard.errors import UserError
from steelyard.results import trials
from steelyard_worker import protocol

BLOCKS = st.lists(st.integers(1, 40), max_size=8).map(tuple)
ENDINGS = st.sampled_from(["done", "error", "nothing"])
WEIRD = st.sampled_from(
    [
        b"\n", b"123\n", b"[]\n", b"null\n", b'"text"\n', b"{}\n", b'{"v": 2}\n', b'{"v": 2, "event": "samples"}\n',
        b'{"v": 7, "event": "done"}\n', b"\xff\xfe\n", b"\x00" * 40,
    ]
)  # fmt: skip


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
