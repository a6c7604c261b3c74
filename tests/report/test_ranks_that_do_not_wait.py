"""Ranks that do not wait for each other in every step, beside those of their framework that do: speed and what is learnt."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace

import pytest
from reading import Page
from recorded import Script, view_of
from rich.console import Console
from test_scaling import EXACT, SCRIPTS, as_kind, run

from steelyard.analysis import asynchronous_ranks, scaling
from steelyard.report import as_json, page, terminal
from steelyard.report.sections import asynchronous_ranks as ranks_section
from steelyard.results.learning import Course

# `alone` plays the ranks that do not wait: 5.4 ms, beside 6 ms of `copies`.
FASTER = pytest.approx(6 / 5.4, rel=1e-4)


def course(*accuracies, seconds=2.0, score="accuracy"):
    """Return a training with an accuracy after each epoch of so many seconds."""
    numbers = tuple(float(each) for each in range(1, len(accuracies) + 1))
    times = tuple(seconds * each for each in numbers)
    return Course(numbers, numbers, times, numbers, {score: accuracies} if score else {})


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    return view_of(run(tmp_path_factory.mktemp("runs"), SCRIPTS))


@pytest.fixture
def trained(view, monkeypatch):
    """Return a function: the view in which `alone` is of a kind, with trainings of both, and these thresholds."""

    def made(own=(), waiting=(), thresholds=(), kind="asynchronous"):
        courses = {"alone:2": list(own), "copies:2": list(waiting), "single:1": []}
        monkeypatch.setattr(asynchronous_ranks, "courses", lambda trials: courses[trials[0].job.case.strategy])
        comparison = as_kind(view, "alone:2", kind, "batch")
        return replace(view, comparisons=(replace(comparison, thresholds=thresholds),))

    return made


def only(view):
    (comparison,) = view.comparisons
    (found,) = asynchronous_ranks.beside(comparison)
    return found


@pytest.mark.parametrize("kind", ["asynchronous", "local"])
def test_the_speed_is_that_of_ranks_that_wait_over_that_of_those_that_do_not(trained, kind):
    found = only(trained(kind=kind))
    assert (found.contender.case.strategy, found.waiting.case.strategy) == ("alone:2", "copies:2")
    assert found.speed.value == FASTER
    assert found.learnt is None
    assert re.fullmatch(
        r"Fake, alone:2: 1\.11x \[1\.11, 1\.11\] the speed of copies:2\.", asynchronous_ranks.line(found)
    )


@pytest.mark.parametrize("kind", ["alone", "processes", "model", "pipeline", "sharded"])
def test_other_kinds_are_beside_none(trained, kind):
    (comparison,) = trained(kind=kind).comparisons
    assert asynchronous_ranks.beside(comparison) == []


def test_the_fastest_of_those_that_wait_and_have_as_many_parts_is_the_other(tmp_path):
    scripts = {"copies:2": Script(6.0, **EXACT), "copies:4": Script(2.0, **EXACT), "alone": SCRIPTS["alone"]}
    found = view_of(run(tmp_path, scripts, ("copies:2", "copies:4", "alone:2"), batches=(16,)))
    comparison = as_kind(found, "alone:2", "local", "batch")
    (row,) = asynchronous_ranks.beside(comparison)
    assert row.waiting.case.strategy == "copies:2"
    slower = replace(row.waiting, trials=tuple(_slower(each, 2) for each in row.waiting.trials))
    others = [each for each in comparison.contenders if each is not row.waiting]
    (row,) = asynchronous_ranks.beside(replace(comparison, contenders=(slower, *others, row.waiting)))
    assert row.waiting is not slower


def _slower(trial, factor):
    return replace(trial, blocks=tuple(replace(each, elapsed_ns=each.elapsed_ns * factor) for each in trial.blocks))


def test_a_contender_with_other_settings_or_that_failed_is_not_the_other(trained):
    (comparison,) = trained().comparisons
    single, copies, alone = sorted(comparison.contenders, key=lambda each: "sca".index(each.case.strategy[0]))
    settings = replace(copies.case.settings, precision="float64")
    for other in (
        replace(copies, failure="It fell over."),
        replace(copies, case=replace(copies.case, settings=settings)),
    ):
        assert asynchronous_ranks.beside(replace(comparison, contenders=(single, other, alone))) == []


def test_the_highest_threshold_that_one_of_the_two_has_reached_decides(trained):
    found = only(trained([course(0.5, 0.7, 0.8)], [course(0.5, 0.9, 0.96, seconds=3.0)], (0.7, 0.95, 0.99)))
    assert (found.score, found.threshold) == ("accuracy", 0.95)
    own, waiting = found.learnt
    assert (own.seconds, own.epoch, own.arrived, own.last) == (None, None, 0, 0.8)
    assert (waiting.seconds, waiting.epoch, waiting.arrived, waiting.last) == (9.0, 3.0, 1, 0.96)
    assert asynchronous_ranks.line(found).endswith(
        " the speed of copies:2. Accuracy 95 % never, with copies:2 by 9.00 s (epoch 3). At the end 80 %, with copies:2 96 %."
    )


def test_the_hardest_perplexity_is_the_lowest(trained):
    courses = [[course(60.0, each, score="perplexity")] for each in (20.0, 40.0)]
    found = only(trained(*courses, (10.0, 30.0, 50.0)))
    assert found.threshold == 30.0
    assert (
        "Perplexity 30 by 4.00 s (epoch 2), with copies:2 never. At the end 20, with copies:2 40."
        in asynchronous_ranks.line(found)
    )


def test_a_training_without_a_last_score_is_compared_in_speed_alone(trained):
    found = only(trained([course(0.5, float("nan"))], [course(0.5, 0.8)], (0.4,)))
    assert (found.learnt, found.speed.value) == (None, FASTER)


def test_times_are_those_of_half_of_the_trainings_and_the_last_score_is_a_mean(trained):
    own = [course(0.5, 0.9), course(0.9, 0.9), course(0.5, 0.6)]
    waiting = [course(0.5, 0.9), course(0.5, 0.6), course(0.5, 0.6)]
    found = only(trained(own, waiting, (0.8,)))
    first, second = found.learnt
    assert (first.seconds, first.epoch, first.last) == (4.0, 2.0, pytest.approx(0.8))
    assert (second.seconds, second.arrived) == (None, 1)
    assert (
        "Accuracy 80 % by 4.00 s (epoch 2), with copies:2 in fewer than half of its trainings."
        in asynchronous_ranks.line(found)
    )


@pytest.mark.parametrize("thresholds", [(), (0.99,)])
def test_without_a_threshold_that_was_reached_the_last_scores_are_compared(trained, thresholds):
    found = only(trained([course(0.5, 0.7)], [course(0.5, 0.8)], thresholds))
    assert found.threshold is None
    assert asynchronous_ranks.line(found).endswith(" the speed of copies:2. At the end 70 %, with copies:2 80 %.")


@pytest.mark.parametrize(
    ("own", "waiting"), [("accuracy", None), ("accuracy", ""), ("accuracy", "perplexity"), ("", ""), (None, None)]
)
def test_scores_that_only_one_of_them_has_are_not_compared(trained, own, waiting):
    """No training, or one without a score after each epoch, has none."""
    courses = [[] if each is None else [course(0.5, score=each)] for each in (own, waiting)]
    found = only(trained(*courses, (0.4,)))
    assert (found.learnt, found.threshold, found.score) == (None, None, "")


def test_without_a_common_round_there_is_no_speed(trained):
    view = trained()
    (comparison,) = view.comparisons
    late = [
        replace(each, trials=tuple(replace(one, job=replace(one.job, round=one.job.round + 9)) for one in each.trials))
        if each.case.strategy == "alone:2"
        else each
        for each in comparison.contenders
    ]
    (found,) = asynchronous_ranks.beside(replace(comparison, contenders=tuple(late)))
    assert found.speed is None
    assert asynchronous_ranks.line(found) == "Fake, alone:2: no round in common with copies:2."
    assert ranks_section.rows([found]) == [["Fake, alone:2", "copies:2", "-"]]


def test_page_terminal_and_json_say_it(trained):
    view = trained([course(0.5, 0.96)], [course(0.5, 0.9)], (0.95,))
    found = Page(page.render(view))
    sentence = asynchronous_ranks.line(only(view))
    said = ["".join(each.text.split()) for each in found.all("li")]  # the page explains words of it
    assert "".join(sentence.split()) in said
    (table,) = [each for each in found.all("table") if "ranks that wait" in each.words]
    for words in (
        "Fake, alone:2",
        "copies:2",
        "accuracy reached",
        "95 %",
        "by 4.00 s (epoch 2)",
        "never",
        "96 %",
        "90 %",
    ):
        assert words in table.words
    assert ranks_section.HEADING in [each.words for each in found.all("h4")]

    shown = io.StringIO()
    terminal.print_view(Console(file=shown, width=200), view)
    assert ranks_section.HEADING in shown.getvalue()
    assert sentence in shown.getvalue()

    (read,) = json.loads(json.dumps(as_json.as_dict(view)))["comparisons"]
    (row,) = read["ranks"]["not_waiting"]
    assert (row["score"], row["threshold"]) == ("accuracy", 0.95)
    assert row["speed"]["value"] == FASTER
    assert row["learnt"] == {"last": 0.96, "seconds": 4.0, "epoch": 2.0, "arrived": 1}
    assert row["learnt_by_waiting"] == {"last": 0.9, "seconds": None, "epoch": None, "arrived": 0}


def test_a_page_without_such_ranks_has_no_such_table(view):
    found = Page(page.render(view))
    assert ranks_section.HEADING not in [each.words for each in found.all("h4")]


def test_strategies_that_differ_in_knobs_of_their_own_are_alike(view):
    """Each may set knobs that the other does not: one of the two has a layout of its own."""
    for one, other in (("copies:2", "alone:2"), ("alone:2", "copies:2")):
        comparison = as_kind(view, one, "local", "batch", layout="own")
        contenders = {each.case.strategy: each for each in comparison.contenders}
        spread = replace(scaling.spread_of(contenders[one]), knobs={"layout": "own"})
        trials = tuple(replace(each, job=replace(each.job, spread=spread)) for each in contenders[one].trials)
        declared = replace(contenders[one], trials=trials)
        assert scaling.alike(contenders[other], declared)
        assert scaling.alike(declared, contenders[other])
        assert not scaling.alike(contenders[other], contenders[one])
