"""Histories: which runs are one line, what is said of a change, and what a nightly check ends with."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from typing import TYPE_CHECKING

import numpy as np
import pytest
from reading import Page, check_policy
from recorded import Script, options, write_run

from steelyard.analysis.history import answer, history, slower
from steelyard.cli.live import LiveScreen
from steelyard.cli.main import main
from steelyard.errors import UserError
from steelyard.report import small_page
from steelyard.report.sections import histories
from steelyard.results import points, record, trials
from steelyard.results.points import Point, RunFacts
from steelyard.results.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST = datetime(2026, 10, 1, 2, 0, tzinfo=UTC)
HOST = {"cpu_model": "Test Processor", "cores_usable": 2}


@pytest.fixture(autouse=True)
def universal_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Days are those of the user's time zone."""
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def facts(night: int, **more) -> RunFacts:
    """Return the facts of a nightly run."""
    when = (FIRST + timedelta(days=night)).isoformat()
    packages = {"numpy": "2.0" if night < 20 else "2.1", "line": "1.0"}
    environments = {"fake": {"python_version": "3.11.7", "packages": packages}}
    values = {"study": "nightly", "created": when, "machine": "0123456789", "host": HOST, "method": 4, "code": "c0de"}
    name = f"run-{night:02d}"
    return RunFacts(**{"run": name, "name": name, **values, "environments": environments, **more})


def point(night: int, time: float = 1.0, line: str = "a", **more) -> Point:
    """Return what a nightly run measured of the contender Fake: `time` in units of ten milliseconds, with 1 % scatter."""
    random = np.random.default_rng([night, len(line), ord(line[0])])
    values = tuple(float(1e7 * time * each) for each in random.normal(1, 0.01) * random.normal(1, 0.003, 3))
    texts = {"group": "line:small", "variant": "fake", "title": "Fake", "input": "cached", "framework": "fake"}
    return Point(
        **{
            "run": f"run-{night:02d}",
            "line": line,
            **texts,
            "environment": "fake",
            "version": "1",
            "processes_ns": values,
            **more,
        }
    )


def planted(count: int = 30, place: int = 20, change: float = 1.1, **more):
    """Return the history of nights that are `change` times as long from `place` on."""
    found = [point(night, change if night >= place else 1.0) for night in range(count)]
    return history([facts(night) for night in range(count)], found, **more)


def test_a_change_is_named_with_its_days_its_runs_and_what_moved() -> None:
    (line,) = planted().lines
    (change,) = line.changes
    assert (change.before.name, change.after.name) == ("run-19", "run-20")
    assert change.moved == {"numpy": ("2.0", "2.1")}
    assert "slower [1.0" in change.sentence
    assert "between 2026-10-20 and 2026-10-21 (run-19, run-20): numpy 2.0 -> 2.1." in change.sentence
    assert answer(planted()) == "The level has changed in 1 of 1 line."


def test_a_change_without_another_package_says_so() -> None:
    (line,) = planted(place=10).lines
    assert line.changes[0].sentence.endswith("no package moved.")


def test_other_measuring_code_is_something_that_moved() -> None:
    runs = [facts(night, code="new0" if night >= 10 else "c0de") for night in range(20)]
    found = history(runs, [point(night, 1.1 if night >= 10 else 1.0) for night in range(20)])
    assert found.lines[0].changes[0].moved == {"measuring code": ("c0de", "new0")}


def test_three_slow_nights_are_no_change_and_four_are() -> None:
    assert planted(place=27, change=1.3).lines[0].changes == ()
    assert len(planted(place=26, change=1.3).lines[0].changes) == 1


def test_only_points_of_one_line_are_compared_and_each_line_has_its_own_plot_or_trace() -> None:
    found = [point(night, 1.1 if night >= 10 else 1.0, "ab"[night >= 10], input="cached") for night in range(20)]
    lines = history([facts(night) for night in range(20)], found).lines
    assert [len(line.runs) for line in lines] == [10, 10]
    assert not any(line.changes for line in lines)


def test_the_order_is_that_of_time_whatever_the_time_zone_and_the_names() -> None:
    east = timezone(timedelta(hours=9))
    earlier = facts(2, run="z", created=(FIRST + timedelta(hours=1)).astimezone(east).isoformat())
    later = facts(1, run="a", created=(FIRST + timedelta(hours=2)).isoformat())
    found = history([later, earlier], [point(1, run="a"), point(2, run="z")])
    assert [run.run for run in found.lines[0].runs] == ["z", "a"]


def test_only_a_slow_down_beyond_the_limit_with_its_whole_interval_ends_a_nightly_check() -> None:
    assert len(slower(planted(), 0.05)) == 1
    assert slower(planted(), 0.10) == []
    (line,) = planted(change=1.055).lines
    assert line.reference
    assert line.reference.ratio.value > 1.05 > line.reference.ratio.low
    assert not line.is_slower_by(0.05)
    assert slower(planted(change=0.9), 0.05) == []
    assert slower(planted(change=1.0), 0.0) == []


def test_an_accepted_change_is_left_out_with_the_runs_before_it() -> None:
    assert slower(planted(since=date(2026, 10, 21)), 0.05) == []
    assert len(planted(since=date(2026, 10, 21)).lines[0].runs) == 10


def test_a_slow_down_names_the_runs_that_it_is_compared_with() -> None:
    (sentence,) = slower(planted(), 0.05)
    assert sentence.startswith("Fake in line:small, cached batch: 9.9 % slower [1.0")
    assert "than its last stable level, 20 runs from 2026-10-01 to 2026-10-20 (run-00 to run-19), on" in sentence


def test_a_level_that_is_accepted_ends_the_failures_and_a_slow_down_after_it_fails_again() -> None:
    accepted = date(2026, 10, 25)
    assert len(slower(planted(), 0.05)) == 1
    found = planted(accepted=accepted)
    assert slower(found, 0.05) == []
    assert len(found.lines[0].runs) == 30
    assert found.lines[0].changes, "it is still shown"
    again = [point(night, 1.1 if night < 30 else 1.21) for night in range(20, 40)]
    both = history(
        [facts(night) for night in range(40)], [*(point(night) for night in range(20)), *again], accepted=accepted
    )
    (sentence,) = slower(both, 0.05)
    assert "10 runs from 2026-10-21 to 2026-10-30" in sentence
    assert len(slower(planted(accepted=date(2026, 1, 1)), 0.05)) == 1, "no run is that old"


def test_after_a_lucky_week_a_nightly_check_does_not_fail() -> None:
    """The week was 13 % faster than the nights before and after it."""
    lucky = [point(night, 0.87 if 20 <= night < 27 else 1.0) for night in range(60)]
    for count in range(30, 60):
        found = history([facts(night) for night in range(count)], lucky[:count])
        assert found.lines[0].changes
        assert slower(found, 0.05) == []


def crept(weekly: float = 1.005, nights: int = 150):
    """Return the history of nights of which each week takes `weekly` times as long as the last."""
    found = [point(night, weekly ** (night / 7)) for night in range(nights)]
    return history([facts(night) for night in range(nights)], found)


def test_a_creep_is_reported_with_its_rate_its_beginning_and_what_moved_and_fails_a_nightly_check() -> None:
    (line,) = crept().lines
    assert line.changes == ()
    assert line.creep
    assert line.creep.since.when < FIRST + timedelta(days=28)
    assert line.creep.weekly.low < 1.005 < line.creep.weekly.high
    assert answer(crept()) == "1 line of 1 creeps."
    assert line.creep.sentence.startswith("creeps: 0.5")
    assert "% slower each week [0.4" in line.creep.sentence
    assert "since about 2026-10-" in line.creep.sentence
    assert line.creep.sentence.endswith("altogether; numpy 2.0 -> 2.1 in this time.")
    (sentence,) = slower(crept(), 0.05)
    assert sentence.startswith("Fake in line:small, cached batch: creeps: 0.5")
    assert slower(crept(), 0.2) == []
    assert slower(crept(0.995), 0.05) == []
    assert crept(0.995).lines[0].creep.sentence.startswith("creeps: 0.5")


def test_the_page_shows_a_creep() -> None:
    page = Page(small_page.render(histories.page(crept())))
    assert "1 line of 1 creeps." in page.text()
    assert "slower each week" in page.text()
    assert "creeps since about 2026-10-" in page.text()


def test_an_unknown_study_names_the_nearest() -> None:
    with pytest.raises(UserError, match=r"No run of the study 'nihgtly' is stored\. Did you mean 'nightly'\?"):
        planted(study="nihgtly")


def test_two_runs_are_too_few_to_say_anything() -> None:
    assert answer(planted(count=2)) == "No line has 3 runs yet, so no change can be told from noise."


def test_the_page_shows_every_line_change_and_run_and_nothing_can_get_out_of_its_text() -> None:
    found = planted()
    evil = "</script><script>alert(1)</script>"
    runs = [replace(run, name=evil) for run in found.lines[0].runs]
    text = small_page.render(histories.page(history(runs, found.lines[0].points)))
    assert evil not in text
    page = Page(text)
    assert "The level has changed in 1 of 1 line." in page.text()
    assert "numpy 2.0 -> 2.1" in page.text()
    assert text.count("10.") > 20
    assert "https://" not in text.partition('id="library"')[0].replace("https://plot.ly", "")
    check_policy(page)


# Runs on the disk.


@pytest.fixture
def runs(tmp_path):
    """A folder with three nightly runs of two contenders, of which one has no certificate."""
    for night in range(3):
        folder = write_run(
            tmp_path / "new",
            {"fake": Script(step_ms=10 + night, rounds=2), "dummy": Script(passed=False, rounds=2)},
            created=(FIRST + timedelta(days=night)).isoformat(),
        )
        (tmp_path / "new" / "index.sqlite").unlink()
        folder.rename(tmp_path / f"night-{night}")
    (tmp_path / "new").rmdir()
    return tmp_path


def stored(runs):
    """Return what the index says of a folder of runs."""
    with closing(Store(runs, pytest.fail)) as store:
        return store.history()


def test_the_index_gives_what_the_folders_hold(runs) -> None:
    left_out: list[str] = []
    known, found = points.read_all(runs, left_out)
    again, indexed = stored(runs)
    assert sorted(again, key=lambda each: each.run) == known
    assert sorted(indexed, key=lambda each: (each.run, each.input)) == sorted(
        found, key=lambda each: (each.run, each.input)
    )
    assert left_out == []
    assert {each.framework for each in found} == {"fake"}
    assert len({each.line for each in found}) == 2


def test_the_index_follows_runs_that_come_change_and_go(runs) -> None:
    stored(runs)
    (runs / "night-0").rename(runs / "night-9")
    trial = next(path for path in (runs / "night-1" / trials.FOLDER).iterdir() if "fake" in path.name)
    trial.rename(runs / "gone")
    known, found = stored(runs)
    assert {run.run for run in known} == {"night-1", "night-2", "night-9"}
    assert {each.run for each in found} == {"night-2", "night-9"}, "one process is not enough"


def test_without_an_index_the_folders_are_read(runs) -> None:
    known, found = stored(runs)
    (runs / "index.sqlite").unlink()
    (runs / "index.sqlite").mkdir()
    said: list[str] = []
    with closing(Store(runs, said.append)) as store:
        again = store.history()
    assert len(said) == 1
    assert (len(again[0]), len(again[1])) == (len(known), len(found))


@pytest.mark.parametrize(
    "change",
    [
        {"shared_machine": True},
        {"machine": ""},
        {"reused": {"line:small": {"run": "night-0", "created": "2026-10-01T02:00:00+00:00"}}},
    ],
)
def test_results_that_were_disturbed_or_measured_by_another_run_are_in_no_line(runs, change) -> None:
    record.update(runs / "night-2", **change)
    assert {each.run for each in stored(runs)[1]} == {"night-0", "night-1"}


@pytest.mark.parametrize("change", [{"method": 1}, {"machine": "another"}])
def test_another_method_or_machine_is_another_line(runs, change) -> None:
    record.update(runs / "night-2", **change)
    assert len({each.line for each in stored(runs)[1]}) == 4


def test_a_nightly_check_ends_with_1_only_if_a_contender_became_slower(tmp_path, capsys) -> None:
    random = np.random.default_rng(1)
    for night in range(12):
        slow = 1.2 if night >= 8 else 1.0
        folder = write_run(
            tmp_path / "new",
            {"fake": Script(step_ms=10 * slow * random.normal(1, 0.01), rounds=2)},
            options(frameworks=("fake",)),
            sources=("cached",),
            created=(FIRST + timedelta(days=night)).isoformat(),
        )
        folder.rename(tmp_path / f"night-{night:02d}")
    asked = ["history", "line", "--runs", str(tmp_path)]
    assert main([*asked, "--fail-if-slower", "5%"]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[-1] == str(tmp_path / "history-line.html")
    assert (tmp_path / "history-line.html").exists()
    assert err.startswith("steelyard: Fake in line:small, cached batch: 2")
    assert main([*asked, "--fail-if-slower", "30%"]) == 0
    capsys.readouterr()
    assert main([*asked, "--json"]) == 0
    (line,) = json.loads(capsys.readouterr().out)
    assert len(line["runs"]) == 12
    assert line["changes"][0]["after"] == "night-08"
    known = line["newest_over_reference"]
    assert (known["first"], known["last"], known["runs"]) == ("night-00", "night-07", 8)
    assert 1.05 < known["low"] < known["ratio"] < known["high"]
    assert line["creep"] is None
    assert line["false_alarms"] == {"at_most": 0.05, "looks": 365, "lines": 1}
    assert main([*asked, "--fail-if-slower", "5%", "--accept", "2026-10-12"]) == 0
    capsys.readouterr()
    with closing(sqlite3.connect(tmp_path / "index.sqlite")) as database:
        assert database.execute("SELECT count(*) FROM points").fetchone() == (12,)


@pytest.mark.parametrize("is_terminal", [True, False])
def test_on_a_terminal_it_is_shown_how_many_runs_have_been_read(runs, monkeypatch, capsys, is_terminal) -> None:
    monkeypatch.setattr("steelyard.cli.commands.history.FEW", 2)
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    shown = []
    monkeypatch.setattr(LiveScreen, "progress", lambda screen, *values: shown.append(values))
    for _ in range(2):  # the second time nothing is new
        assert main(["history", "--runs", str(runs)]) == 0
    assert shown == ([("runs", done, 3) for done in range(4)] if is_terminal else [])
    assert capsys.readouterr().err.count("Reading 3 runs") == is_terminal


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--fail-if-slower", "much"], "--fail-if-slower must be a share of at least 0, such as 5%, not 'much'."),
        (["--fail-if-slower", "5%x"], "--fail-if-slower must be a share of at least 0, such as 5%, not '5%x'."),
        (["--fail-if-slower", "-1"], "--fail-if-slower must be a share of at least 0, such as 5%, not '-1'."),
        (["--since", "yesterday"], "--since must be a day such as 2026-11-01, not 'yesterday'."),
        (["--accept", "today"], "--accept must be a day such as 2026-11-01, not 'today'."),
        ([], "has a result for a history. Start with: steelyard run"),
    ],
)
def test_what_cannot_be_shown_is_one_sentence(tmp_path, capsys, arguments, sentence) -> None:
    assert main(["history", "--runs", str(tmp_path / "none"), *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert sentence in line
    assert not (tmp_path / "none").exists()
