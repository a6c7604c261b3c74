"""Rounds that were repeated only because a worker stood still: whose they were, and the verdicts with and without them."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from reading import Page
from recorded import Script, view_of, write_run

from steelyard.report import as_json, page, terminal
from steelyard.results import record
from steelyard_worker.protocol import EVENTS

if TYPE_CHECKING:
    from pathlib import Path

STALL_NS = 3 * 10**9
BEFORE_16 = "a worker stood still for 3.0 s of 4.0 s that were counted"
KEPT_FROM = "fake was kept from computing for 3.0 s of 4.0 s that were counted"
OTHERS = "other processes used 0.06 cores"


def repeated_run(root: Path, *reasons: str, still: str = "fake", **noise: Any) -> Path:
    """Write a run of which the second round was repeated; in its first attempt one contender stood still for three seconds."""
    folder = write_run(root, {"fake": Script(10.0), "dummy": Script(12.0)}, sources=("pipeline",))
    for home in folder.glob("trials/r02.0-*"):
        _again(home)
        if still in home.name:
            _stall(home)
    path = folder / record.ROUNDS
    notes = [json.loads(line) for line in path.read_text().splitlines()]
    for note in notes:
        if not note["kept"]:
            note |= {"reasons": list(reasons), "host_noise": {"seconds": 20.0, **noise}}
    path.write_text("".join(json.dumps(note) + "\n" for note in notes))
    return folder


def _again(home: Path) -> None:
    """Copy a process as that of the next attempt."""
    again = home.with_name(home.name.replace("r02.0-", "r02.1-"))
    shutil.copytree(home, again)
    job = json.loads((again / "job.json").read_text())
    (again / "job.json").write_text(json.dumps({**job, "attempt": 1, "folder": str(again)}))


def _stall(home: Path) -> None:
    """Make the last counted block longer, without more CPU time."""
    events = [json.loads(line) for line in (home / EVENTS).read_text().splitlines()]
    last = [event for event in events if event.get("phase") == "counted"][-1]
    last["elapsed_ns"] += STALL_NS
    (home / EVENTS).write_text("".join(json.dumps(event) + "\n" for event in events))


def found(folder: Path, name: str) -> list[tuple[str, str]]:
    return [(each.subject, each.sentence) for each in view_of(folder).warnings if each.name == name]


def test_a_round_that_was_repeated_only_because_one_stood_still_is_counted_for_it(tmp_path: Path) -> None:
    folder = repeated_run(tmp_path, KEPT_FROM)
    assert found(folder, "RepeatedForOne") == [
        ("Fake on line:small", "1 round was repeated only because it was kept from computing."),
    ]
    (entry,) = as_json.as_dict(view_of(folder))["repeated_for_standstill"]
    assert entry == {"group": "line:small", "round": 2, "attempt": 0, "contenders": ["Fake"]}


def test_an_older_record_says_that_nobody_asked_who_had_the_processors(tmp_path: Path) -> None:
    ((_, sentence),) = found(repeated_run(tmp_path, BEFORE_16), "RepeatedForOne")
    assert sentence == (
        "1 round was repeated only because it stood still. Whether others had the processors was not asked then: a framework "
        "that waits by itself stands still as well."
    )


def test_a_verdict_that_is_another_one_with_the_repeated_round_is_named_with_both_ratios(tmp_path: Path) -> None:
    ((pair, sentence),) = found(repeated_run(tmp_path, KEPT_FROM), "VerdictOfRepeatedRounds")
    assert pair == "Fake and Dummy on line:small"
    now, otherwise = sentence.split(" as the rounds count, and ")
    assert now.startswith("Fake over Dummy is 0.83x [0.8")
    assert now.endswith("(Fake is better)")
    assert "undecided" in otherwise
    assert otherwise.endswith("with the round that was repeated only because Fake stood still.")


def test_a_verdict_that_stays_is_not_mentioned(tmp_path: Path) -> None:
    assert found(repeated_run(tmp_path, KEPT_FROM, still="nobody"), "VerdictOfRepeatedRounds") == []


@pytest.mark.parametrize(
    ("reasons", "noise", "counts"),
    [
        ((BEFORE_16,), {}, True),
        ((OTHERS, BEFORE_16), {"foreign_cores": 0.06}, False),  # it is repeated because of them as well
        ((OTHERS,), {"foreign_cores": 0.06}, False),
        (("2.0 MiB of memory were swapped", BEFORE_16), {}, False),
        (("on node b other processes used 0.06 cores", BEFORE_16), {}, False),
    ],
)
def test_only_means_that_nothing_else_would_have_repeated_it(
    tmp_path: Path, reasons: tuple[str, ...], noise: dict[str, float], counts: bool
) -> None:
    folder = repeated_run(tmp_path, *reasons, **noise)
    assert bool(found(folder, "RepeatedForOne")) is counts
    assert ("repeated_for_standstill" in as_json.as_dict(view_of(folder))) is counts


def test_what_else_disturbed_a_round_does_not_count_where_it_is_usual_here(tmp_path: Path) -> None:
    """The first round had as many other programs, so these would not have repeated the second."""
    folder = repeated_run(tmp_path, OTHERS, BEFORE_16, foreign_cores=0.06)
    path = folder / record.ROUNDS
    first, *others = (json.loads(line) for line in path.read_text().splitlines())
    notes = [{**first, "severity": 1.2, "reasons": [OTHERS]}, *others]
    path.write_text("".join(json.dumps(note) + "\n" for note in notes))
    assert found(folder, "RepeatedForOne")


def test_the_page_and_the_terminal_tell_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    view = view_of(repeated_run(tmp_path, KEPT_FROM))
    terminal.show(view)
    shown = " ".join(capsys.readouterr().out.split())
    told = "Fake on line:small: 1 round was repeated only because it was kept from computing."
    assert told in shown
    assert told.partition(": ")[2] in Page(page.render(view)).text()
