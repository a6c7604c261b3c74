"""Advice where nothing is decided: equal in practice, or something that can be done and how long it takes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from reading import Page
from recorded import Script, options, view_of, write_run

from steelyard.plan.protocols import protocol
from steelyard.report import page, terminal
from steelyard.report.advice import advice, seconds_per_round
from steelyard.statistics.decision import DecisionPlan, Ranking, Verdict

TITLES = {"a": "JAX", "b": "MXNet", "c": "PyTorch"}
SEQUENTIAL = protocol("sequential")


def ranking(rounds_run=5, most=12, **needed):
    """Return a ranking in which A may be as fast as each of these, known within a factor of 1.3; `needed`: more rounds."""
    pairs = tuple(
        Verdict("undecided", 0.95, 0.77, 1.1, rounds_run, count, 0.02, "a", key, 0.01, 0.77, 1.1)
        for key, count in needed.items()
    )
    order = ("a", *needed)
    return Ranking(order, "a", pairs, frozenset(needed), rounds_run, 0.02, 0.1, DecisionPlan(most_rounds=most))


def closer(found, low=0.96):
    """Return a ranking whose intervals are narrow."""
    pairs = tuple(replace(each, low=low, high=1.02, joint_low=low, joint_high=1.02) for each in found.verdicts)
    return replace(found, verdicts=pairs)


def test_rounds_that_the_plan_still_allows_are_a_command_with_its_time():
    sentence = advice(ranking(b=4), TITLES, SEQUENTIAL, "20260102-x", 45.0, extends=True)
    assert sentence == (
        "About 4 more rounds would settle it, in about 3 minutes: `steelyard run --resume 20260102-x --minutes 0`"
    )


@pytest.mark.parametrize(
    ("round_s", "words"), [(None, "it: "), (20.0, "it, in about 80 seconds: "), (7200, "8 hours: ")]
)
def test_the_time_has_a_fitting_unit_and_is_left_out_if_unknown(round_s, words):
    assert words in advice(ranking(b=4), TITLES, SEQUENTIAL, "x", round_s, extends=True)


def test_rounds_beyond_the_plan_are_never_advised():
    sentence = advice(ranking(b=70), TITLES, SEQUENTIAL, "x", 45.0, extends=True)
    assert "--resume" not in sentence
    assert sentence == (
        "Telling them apart would take about 75 rounds in all, more than the 12 of a run: measure on a quieter machine "
        "(`steelyard doctor` shows what disturbs this one)."
    )


@pytest.mark.parametrize(("needed", "resumes"), [(7, True), (8, False)])
def test_the_last_round_of_the_plan_is_the_limit(needed, resumes):
    assert ("--resume" in advice(ranking(b=needed), TITLES, SEQUENTIAL, "x", 45.0, extends=True)) is resumes


def test_a_run_that_has_had_all_its_rounds_is_followed_by_a_new_one():
    """A study's quick size has three rounds; that one more would do is no reason to look for a quieter machine."""
    sentence = advice(ranking(3, most=3, b=1), TITLES, SEQUENTIAL, "x", 60.0, extends=True)
    assert sentence == "A new run with `--rounds 4` would settle it, in about 4 minutes."
    assert "about 13 rounds in all, more than the 12 of a run" in advice(
        ranking(12, b=1), TITLES, SEQUENTIAL, "x", 60.0, extends=True
    )


def test_what_can_be_settled_is_told_from_what_cannot():
    sentence = advice(ranking(b=40, c=6), TITLES, SEQUENTIAL, "x", 60.0, extends=True)
    assert sentence.startswith("MXNet would take about 45 rounds in all, more than the 12 of a run")
    assert sentence.endswith(
        "About 6 more rounds would settle PyTorch, in about 6 minutes: `steelyard run --resume x --minutes 0`"
    )


def test_candidates_within_a_tenth_are_equal_in_practice():
    sentence = advice(closer(ranking(b=70)), TITLES, SEQUENTIAL, "x", 45.0, extends=True)
    assert sentence == "Treat JAX and MXNet as equal in practice: they differ by at most 4.2 %."
    assert "at most 4.3 %" in advice(closer(ranking(b=70), 0.959), TITLES, SEQUENTIAL, "x", 45.0, extends=True)


def test_a_ranking_that_does_not_decide_about_the_rounds_needs_a_new_run():
    sentence = advice(ranking(b=4), TITLES, SEQUENTIAL, "x", 60.0, extends=False)
    assert sentence == "A new run with `--rounds 9` would settle it, in about 9 minutes."
    assert "--rounds" not in advice(ranking(b=8), TITLES, SEQUENTIAL, "x", 60.0, extends=False)


def test_a_fixed_protocol_has_no_limit_but_reason():
    fixed = protocol("fixed:10+20", "5")
    assert "`--rounds 25`" in advice(ranking(most=5, b=20), TITLES, fixed, "x", 1.0, extends=True)
    assert "quieter machine" in advice(ranking(most=5, b=200), TITLES, fixed, "x", 1.0, extends=True)


def test_fewer_rounds_than_possible_were_asked_for():
    few = protocol("sequential", "3-5")
    assert "`--rounds 9`" in advice(ranking(most=5, b=4), TITLES, few, "x", 60.0, extends=False)


@pytest.mark.parametrize("found", [ranking(), ranking(rounds_run=1, b=2)])
def test_nothing_is_advised_if_all_is_decided_or_after_one_round(found):
    assert advice(found, TITLES, SEQUENTIAL, "x", 45.0, extends=True) == ""


def test_the_time_of_a_round_is_that_of_the_last_one_that_counted():
    lines = [
        {"group": "a", "kept": True, "host_noise": {"seconds": 30.0}},
        {"group": "a", "kept": True, "host_noise": {"seconds": 20.0}},
        {"group": "a", "kept": False, "host_noise": {"seconds": 90.0}},
        {"group": "b", "kept": True, "host_noise": {}},
    ]
    assert [seconds_per_round(lines, group) for group in "abc"] == [20.0, None, None]


def test_page_terminal_and_json_have_the_advice(tmp_path, printed):
    scripts = {"fake": Script(10.0, process_scatter=0.03), "dummy": Script(10.1, process_scatter=0.03)}
    view = view_of(write_run(tmp_path, scripts, options(frameworks=("fake", "dummy"))))
    (comparison,) = view.comparisons
    (words,) = {each.words for each in Page(page.render(view)).all("p", class_="next")}
    told = comparison.advice[comparison.primary]
    assert words == told.replace("`", "")
    assert " ".join(told.split()) in " ".join(printed(view, 80).split())
    assert told.startswith("Treat Fake and Dummy as equal in practice") or "rounds" in told
    assert terminal.as_dict(view)["comparisons"][0]["advice"] == comparison.advice
