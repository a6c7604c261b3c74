"""run.json as it is read: what is damaged, of an older or newer format, or of the wrong type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard import __version__
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard.results import record

WORKLOADS = Path(__file__).parents[1] / "workloads"
PLAN = resolve.plan(Options(workloads=("line",), frameworks=("fake",), workload_folders=(str(WORKLOADS),)))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a run that has begun."""
    record.write(tmp_path, record.RunRecord(PLAN, "2026-01-01", "running", "steelyard run"))
    return tmp_path


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
def test_a_run_json_that_cannot_be_used_is_named_with_its_state(text: str, state: str, run: Path) -> None:
    (run / "run.json").write_text(text)
    with pytest.raises(record.UnreadableRun, match=r"run\.json") as raised:
        record.read(run)
    assert raised.value.state == state


def test_a_run_json_that_cannot_be_opened_is_unreadable(run: Path) -> None:
    (run / "run.json").unlink()
    (run / "run.json").mkdir()
    with pytest.raises(record.UnreadableRun, match=r"run\.json cannot be read \(Is a directory\)\.") as raised:
        record.read(run)
    assert raised.value.state == "unreadable"


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ('{"format": 1, "plan": {"options": {}}}', "Read it with steelyard 0.1.0, or measure again."),
        ('{"format": 2}', "No release of steelyard reads it: measure again."),
        ('{"format": 0}', "No release of steelyard reads it: measure again."),
        ('{"format": 9, "steelyard": "3.12.0"}', "Update steelyard to version 3.12.0 or later."),
        ('{"format": 9}', "Update steelyard."),
        ('{"format": 9, "steelyard": 3}', "Update steelyard."),
        ('{"format": 9, "steelyard": "now: rm -r ~"}', "Update steelyard."),
        (f'{{"format": 9, "steelyard": "{__version__}"}}', "Update steelyard."),
    ],
)
def test_the_message_about_another_format_names_a_version_that_reads_it(text: str, advice: str, run: Path) -> None:
    (run / "run.json").write_text(text)
    with pytest.raises(record.UserError, match=r"has the (older|newer) format \d; .* reads format 3\. ") as raised:
        record.read(run)
    assert str(raised.value).endswith(f"reads format 3. {advice}")


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (("plan", "groups"), None, r"plan\.groups must be a list"),
        (("plan", "options", "silence_s"), "x", r"plan\.options\.silence_s must be a number"),
        (("plan", "groups", 0, "variants", 0, "case", "sizes"), [], r"variants\[0\]\.case\.sizes must be an object"),
        (("plan", "groups", 0, "variants", 0, "case", "settings", "mode"), 3, r"settings\.mode must be a string"),
        (("created",), 5, r"run\.created must be a string"),
    ],
)
def test_a_field_of_the_wrong_type_is_named(path: tuple[Any, ...], value: Any, named: str, run: Path) -> None:
    raw = json.loads((run / "run.json").read_text())
    place = raw
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    (run / "run.json").write_text(json.dumps(raw))
    with pytest.raises(record.UserError, match=named):
        record.read(run)


def test_a_run_json_is_the_same_after_writing_and_reading(run: Path) -> None:
    assert record.read(run).plan == PLAN
    assert record.update(run, state="complete").plan == PLAN
    assert record.read(run).state == "complete"


@pytest.mark.parametrize("created", ["yesterday", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_run_whose_start_is_no_time_is_damaged(created: str, run: Path) -> None:
    raw = json.loads((run / "run.json").read_text()) | {"created": created}
    (run / "run.json").write_text(json.dumps(raw))
    with pytest.raises(record.UnreadableRun, match="is damaged"):
        record.read(run)
