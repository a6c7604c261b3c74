"""What a run shows while it measures: complete names at 80 columns, round of rounds, the time left, and a sign of life."""

from __future__ import annotations

import argparse
import io
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from steelyard import console as plain_lines
from steelyard.cli import live
from steelyard.cli.live import LiveScreen, in_words
from steelyard.cli.parser import parser
from steelyard.cli.time_left import TimeLeft
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard.statistics.decision import decide

WORKLOADS = Path(__file__).parents[1] / "workloads"
LONG = "TensorFlow 2.21.0rc1, graph, convolution_algorithm_of_the_framework_itself_or_of_another_library matmul"


def planned(**options):
    """Return the plan of two scripted contenders on the smallest workload."""
    given = {"workloads": ("line",), "frameworks": ("fake", "dummy"), "workload_folders": (str(WORKLOADS),)}
    return resolve.plan(Options(**{**given, **options}))


def drawn(screen, width=80):
    """Return what a screen shows now."""
    file = io.StringIO()
    Console(file=file, width=width, highlight=False).print(screen._body())
    return file.getvalue()


def a_ranking(plan, rounds=3, apart=0.5):
    """Return a ranking of the plan's contenders; `apart`: by how much the second one is slower (log ratio)."""
    first, second = (variant.case.id for variant in plan.variants)
    numbers = range(1, rounds + 1)
    return decide({first: dict.fromkeys(numbers, 1000000.0), second: {n: 1e6 * (1 + apart * n) for n in numbers}})


@pytest.fixture
def screen():
    """A live view of two scripted contenders, drawn into nothing, in its rounds."""
    shown = LiveScreen(planned(), Console(file=io.StringIO(), width=80))
    shown.stage("Rounds")
    yield shown
    shown.close()


def test_the_round_is_shown_with_the_largest_number_of_rounds(screen):
    screen.trial(2, screen._plan.variants[0])
    assert "round 2 of at most 12, line:small: Fake starting" in drawn(screen)
    fixed = LiveScreen(planned(protocol="fixed:10+20", rounds="5-5"), Console(file=io.StringIO()))
    fixed.trial(2, screen._plan.variants[0])
    assert "round 2 of 5, line:small: Fake starting" in drawn(fixed)


def test_every_node_of_a_cluster_shows_what_it_runs_until_its_trials_have_come_home(screen):
    first, second = screen._plan.variants
    screen.trial(1, first, "a")
    screen.trial(2, second, "b")
    text = drawn(screen)
    assert "a:  round 1 of at most 12, line:small: Fake" in text
    assert "b:  round 2 of at most 12, line:small: Dummy" in text
    screen.trial(1, second, "a")
    assert "a:  round 1 of at most 12, line:small: Dummy" in drawn(screen)
    screen.finished(SimpleNamespace(error=None, job=SimpleNamespace(node="a", case=second.case)))
    text = drawn(screen)
    assert "a:  round" not in text
    assert "b:  round 2" in text


def test_nodes_of_a_cluster_share_the_time_that_is_left():
    now = [0.0]
    plan = planned(protocol="fixed:10+20", rounds="8-8")
    left = TimeLeft(plan, lambda: now[0])
    for node in "ab":
        left.started(plan.variants[0], node)
    now[0] = 10.0
    for node in "ab":
        left.started(plan.variants[1], node)
    assert left.seconds() == pytest.approx((16 * 10 - 10) / 2)


@pytest.mark.parametrize("width", [40, 80])
def test_no_name_is_cut(screen, width):
    variant = replace(screen._plan.variants[0], title=LONG)
    screen.progress(LONG, 1, 3)
    screen.trial(1, variant)
    ranking = a_ranking(screen._plan)
    screen.ranking("line:small", ranking, dict.fromkeys(ranking.order, LONG))
    text = drawn(screen, width)
    assert "…" not in text
    assert "".join(text.split()).count("matmul") == 4
    assert max(map(len, text.splitlines())) <= width


def test_square_brackets_in_a_name_are_not_interpreted(screen):
    screen.trial(1, replace(screen._plan.variants[0], title="[bold]odd[/]"))
    assert "[bold]odd[/]" in drawn(screen)


def test_the_view_changes_while_nothing_is_reported(screen, monkeypatch):
    """It is drawn again every second, and what is drawn has the time that has passed."""
    screen.trial(1, screen._plan.variants[0])
    now = time.monotonic()
    monkeypatch.setattr(live.time, "monotonic", lambda: now + 5)
    before = drawn(screen)
    monkeypatch.setattr(live.time, "monotonic", lambda: now + 8)
    assert drawn(screen) != before
    assert live.REDRAWS_PER_SECOND >= 1


def test_an_interval_that_says_nothing_is_not_shown(screen):
    ranking = a_ranking(screen._plan, apart=0.9)
    screen.ranking("line:small", ranking, {variant.case.id: variant.title for variant in screen._plan.variants})
    screen.trial(4, screen._plan.variants[0])
    assert "x not enough rounds undecided" in " ".join(drawn(screen).split())


def test_the_time_of_a_process_that_takes_turns_is_that_in_which_it_runs():
    now, plan = [0.0], planned(minutes=0)
    left = TimeLeft(plan, lambda: now[0])
    fake, dummy = plan.variants
    for show, variant, seconds in (
        (left.started, fake, 5),
        (left.started, dummy, 7),
        (left.goes_on, fake, 2),
        (left.goes_on, dummy, 3),
        (left.goes_on, fake, 1),
    ):
        show(variant)
        now[0] += seconds
    for variant in (fake, dummy):
        left.ended(case_id=variant.case.id)
    assert left._spans_s == {fake.key: [8.0], dummy.key: [10.0]}
    assert left.seconds() == 2 * 18, "two of the first three rounds are left"
    left.started(fake)
    now[0] += 4
    left.started(dummy)
    now[0] += 3
    assert left.seconds() == 2 * 18 - 7, "both have begun, and one of them waits"


def test_the_process_whose_turn_it_is_is_shown(screen):
    first, second = screen._plan.variants
    screen.trial(2, first)
    screen.trial(2, second)
    screen.turn(first)
    screen.event({"event": "samples", "input": "cached", "phase": "counted", "elapsed_ns": 4000000, "steps": 2})
    assert "round 2 of at most 12, line:small: Fake cached, counted, 2.00 ms per step" in drawn(screen)


def test_the_time_left_is_that_of_the_rounds_still_needed():
    now, plan = [0.0], planned(minutes=0)
    left = TimeLeft(plan, lambda: now[0])
    fake, dummy = plan.variants
    assert left.seconds() is None

    def run(variant, seconds):
        left.started(variant)
        now[0] += seconds
        left.ended()

    run(fake, 10)
    assert left.seconds() == 50, "the first rounds are three of two processes each, all as long as the only one known"
    run(dummy, 20)
    assert left.seconds() == 60
    left.started(fake)
    now[0] += 4
    left.ranked("line:small", a_ranking(plan, rounds=1))
    assert left.seconds() == 60 - 4
    open_ranking = a_ranking(plan, rounds=3, apart=0.1)
    (pair,) = open_ranking.verdicts
    needed = min(pair.rounds_still_needed, 9)
    assert needed > 0
    left.ended()
    left.ranked("line:small", open_ranking)
    assert left.seconds() == pytest.approx(needed * (7 + 20)), "7 s is the mean of 10 and 4"


def test_a_decided_group_takes_no_more_time():
    now, plan = [0.0], planned()
    left = TimeLeft(plan, lambda: now[0])
    left.started(plan.variants[0])
    now[0] += 10
    left.ended()
    first, second = (variant.case.id for variant in plan.variants)
    left.ranked("line:small", decide({first: dict.fromkeys((1, 2, 3), 1e6), second: dict.fromkeys((1, 2, 3), 2e6)}))
    assert left.seconds() == 0


def test_the_time_limit_ends_the_rounds_after_the_first_three():
    now, plan = [0.0], planned(minutes=1.0)
    left = TimeLeft(plan, lambda: now[0])
    left.started(plan.variants[0])
    now[0] += 10
    left.ended()
    left.ranked("line:small", a_ranking(plan, rounds=2, apart=0.1))
    assert left.seconds() == 50, "the limit of a minute"
    now[0] = 300
    assert left.seconds() == 20, "the third round has to be finished whatever the time"


def test_on_a_terminal_something_moves_while_the_command_waits_for_another_run():
    file = io.StringIO()
    shown = LiveScreen(planned(), Console(file=file, width=80, force_terminal=True, highlight=False))
    shown.waiting("20260102-x")
    deadline = time.monotonic() + 60
    while "  2 s" not in file.getvalue() and time.monotonic() < deadline:
        time.sleep(0.05)
    shown.close()
    assert "Waiting for run 20260102-x\x1b" in file.getvalue()
    assert "  2 s" in file.getvalue()


@pytest.mark.parametrize(("run", "words"), [("20260102-x", "run 20260102-x"), ("", "another run")])
def test_plain_lines_say_that_the_command_still_waits(monkeypatch, capsys, run, words):
    monkeypatch.setattr(plain_lines, "SILENCE_S", 0.05)
    screen = plain_lines.Screen()
    screen.waiting(run)
    said = _until_said(capsys, "... still waiting, 0 s since the start")
    screen.stage("Data")
    said += _until_said(capsys, "... still running, 0 s since the start")
    screen.close()
    assert said.startswith(f"== Waiting for {words}\n")


def test_a_screen_whose_lines_go_elsewhere_gives_one_sign_of_life_in_each_interval(monkeypatch):
    said, now, waits = [], [0.0], []

    class Elsewhere(plain_lines.Screen):
        def say(self, sentence):
            said.append(sentence)

    class Closing:
        def wait(self, seconds):
            """Let the time pass; after five intervals the screen is closed, and after many waits without an interval, too."""
            waits.append(seconds)
            now[0] += seconds
            return now[0] > 5 * plain_lines.SILENCE_S or len(waits) > 100

    monkeypatch.setattr(plain_lines, "time", SimpleNamespace(monotonic=lambda: now[0]))
    screen = Elsewhere()
    screen._closed = Closing()
    screen._end_silences()
    times = ("30 s", "1 min", "1 min 30 s", "2 min", "2 min 30 s")
    assert said == [f"   ... still running, {time} since the start" for time in times]


def test_a_sign_of_life_has_the_counts_of_what_is_not_done(monkeypatch, capsys):
    monkeypatch.setattr(plain_lines, "SILENCE_S", 0.05)
    screen = plain_lines.Screen()
    screen.stage("Certificates")
    screen.progress("a:b: processes", 0, 4)
    screen.progress("c:d: processes", 0, 2)
    screen.progress("unknown", 5, 0)
    _until_said(capsys, "... still running, 0 s since the start; a:b: processes, 0 of 4; c:d: processes, 0 of 2\n")
    screen.progress("a:b: processes", 3, 4)
    screen.progress("c:d: processes", 2, 2)
    _until_said(capsys, "since the start; a:b: processes, 3 of 4\n")
    screen.stage("Rounds")
    _until_said(capsys, "since the start\n")
    screen.close()


def test_the_help_text_names_the_longest_silence():
    words = f"none for {plain_lines.SILENCE_S:.0f} s"
    for command in ("run", "certify", "explain", "advise", "env"):
        (commands,) = (each for each in parser([command])._actions if isinstance(each, argparse._SubParsersAction))
        assert words in " ".join(commands.choices[command].format_help().split())


def _until_said(capsys, words):
    """Return what was said on standard error until these words were."""
    said, deadline = "", time.monotonic() + 20
    while words not in said and time.monotonic() < deadline:
        said += capsys.readouterr().err
        time.sleep(0.02)
    assert words in said
    return said


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.2, "0 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (125, "2 min 05 s")]
)
def test_times_are_in_minutes_and_seconds(seconds, words):
    assert in_words(seconds) == words


def test_plain_lines_say_nothing_of_a_comparison_without_a_finished_process(screen, capsys):
    ranking, lines = a_ranking(screen._plan), plain_lines.Screen()
    titles = dict.fromkeys(ranking.order, "A")
    lines.ranking("line:small", replace(ranking, verdicts=(), still_undecided=frozenset(), rounds_run=0), titles)
    assert not any(capsys.readouterr())
    lines.ranking("line:small", ranking, titles)
    assert "line:small after" in capsys.readouterr().err
    lines.close()


def test_plain_lines_do_not_say_that_more_rounds_are_missing_where_there_is_only_one(screen, capsys):
    ranking, lines = a_ranking(screen._plan), plain_lines.Screen()
    titles = dict.fromkeys(ranking.order, "A")
    for rounds, said in ((1, "line:small: its only round is done."), (2, "line:small after")):
        lines.ranking(
            "line:small", replace(ranking, plan=replace(ranking.plan, least_rounds=1, most_rounds=rounds)), titles
        )
        shown = capsys.readouterr().err
        assert said in shown
        assert ("yet" in shown or "after" in shown) == (rounds > 1)
    lines.close()


def test_plain_lines_end_a_long_silence(monkeypatch, capsys):
    monkeypatch.setattr(plain_lines, "SILENCE_S", 0.05)
    screen = plain_lines.Screen()
    screen.stage("Certificates")
    deadline = time.monotonic() + 20
    while "still running" not in (said := capsys.readouterr().err) and time.monotonic() < deadline:
        time.sleep(0.02)
    screen.close()
    assert "still running" in said
    screen._watch.join(20)
    assert not screen._watch.is_alive(), "a closed screen is silent"
