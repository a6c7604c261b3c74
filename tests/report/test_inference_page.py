"""The report of an inference: its words, its latencies, and nothing of losses, optimizers or test metrics."""

from __future__ import annotations

import re

import numpy as np
import pytest
from reading import Page
from recorded import Script, options, view_of, write_run

from steelyard.analysis import compare, formatting, headlines
from steelyard.errors import UserError
from steelyard.report import as_json, page
from steelyard.report.terms import TERMS
from steelyard.results.quantities import FIRST_STEP, LATENCIES, PEAK_MEMORY, THROUGHPUT

SCRIPTS = {"fake": Script(10.0, first_step_ms=900.0), "dummy": Script(12.0)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("runs"), SCRIPTS, options(tasks=("inference",)))


def test_page_and_terminal_speak_of_batches_and_never_of_training(folder, printed):
    found = view_of(folder)
    plotted = Page(page.render(found))
    drawn = [(figure["data"], figure["layout"]) for figure in plotted.figures().values()]
    shown = plotted.text() + str(drawn) + printed(found, 160)
    for of_both_tasks in (TERMS["certificate"], TERMS["protocol"], TERMS["trial"], "optimizer_implementation native"):
        shown = shown.replace(of_both_tasks, "")
    words = re.findall(
        r".{30}\b(?:training|trains?|trained|steps?|loss(?:es)?|optimizers?|accuracy)\b.{20}", shown, re.I
    )
    assert words == []
    for text in (
        "Inference with the framework's own input pipeline",
        "mean time per batch",
        "first batch",
        "latency p99",
    ):
        assert text.lower() in shown.lower()
    assert "Which framework runs the forward pass fastest on this machine?" in shown


def test_the_columns_of_latencies_are_those_of_the_recorded_batches(folder):
    """Each process timed 201 batches from 1 to 2 times the step's time, evenly spread."""
    fake = view_of(folder).comparisons[0].contenders[0]
    for share, quantity in zip((0.5, 0.95, 0.99), LATENCIES, strict=True):
        found = fake.latencies[quantity.name]
        assert found.value_ns == pytest.approx(10e6 * (1 + share), rel=0.01)
        assert found.low_ns < found.value_ns < found.high_ns
        assert found.processes == 5
        assert re.fullmatch(r"1\d\.\d\d ms \[1\d\.\d\d, [12]\d\.\d\d\]", str(formatting.latency(fake, quantity)))


def test_the_picture_shows_which_share_of_batches_was_complete_within_a_time(folder):
    plotted = Page(page.render(view_of(folder))).figures()["latency/line:small"]
    curve, marks, *_ = plotted["data"]
    assert curve["y"][0] == 0
    assert curve["y"][-1] == 100
    assert np.interp(0.015, curve["x"], curve["y"]) == pytest.approx(50, abs=1)
    assert marks["y"] == [50, 95, 99]
    assert marks["x"] == pytest.approx([0.015, 0.0195, 0.0199], rel=0.01)
    assert plotted["layout"]["xaxis"]["title"]["text"] == "latency of one batch"


@pytest.mark.parametrize("quantity", LATENCIES, ids=lambda each: each.name)
def test_a_run_can_be_ranked_by_a_latency(folder, printed, quantity):
    found = view_of(folder, quantity)
    (comparison,) = found.comparisons
    assert headlines.headline(comparison, "process") == f"Fake has the lowest {quantity.name}."
    assert re.search(
        rf"Fake has a 1\.2\dx \[[^]]*\] lower {quantity.name} than Dummy", printed(found, 100).replace("\n", " ")
    )
    plotted = Page(page.render(found))
    (drawing,) = plotted.all("svg", class_="ratios")
    assert drawing.attributes["aria-label"].startswith(
        f"{quantity.name.capitalize()} divided by that of the best: Fake lowest; "
    )


def test_other_quantities_have_the_words_of_an_inference(folder, printed):
    assert "Dummy has the fastest first batch." in printed(view_of(folder, FIRST_STEP), 160)
    assert "as those on the time per batch" in " ".join(printed(view_of(folder, THROUGHPUT), 160).split())
    assert "Ranked by first-batch time: less is better." in printed(view_of(folder, FIRST_STEP), 160)
    assert Page(page.render(view_of(folder, PEAK_MEMORY))).all("h1")[0].words == "Line: inference"


def test_a_warning_has_the_words_of_an_inference(folder):
    (slow,) = [each for each in view_of(folder).warnings if each.name == "SlowFirstStep"]
    assert slow.sentence == "The first batch took 900 ms, as long as 90 later batches."


def test_json_has_task_and_latencies(folder):
    (found,) = as_json.as_dict(view_of(folder))["comparisons"]
    assert found["task"] == "inference"
    assert found["contenders"][0]["latencies"].keys() == {"latency p50", "latency p95", "latency p99"}
    assert found["contenders"][0]["latencies"]["latency p50"]["processes"] == 5


def test_a_run_that_trained_cannot_be_ranked_by_a_latency(tmp_path):
    folder = write_run(tmp_path, {"fake": Script(), "dummy": Script()})
    with pytest.raises(UserError) as caught:
        view_of(folder, LATENCIES[0])
    assert str(caught.value) == (
        "Run 20260102-030405-test has no latency p50: only runs with --task inference measure it."
    )
    assert "latency/line:small" not in Page(page.render(view_of(folder))).figures()


def test_an_inference_and_a_training_are_not_compared(tmp_path):
    trained = view_of(write_run(tmp_path / "a", {"fake": Script(), "dummy": Script()}))
    inferred = view_of(write_run(tmp_path / "b", SCRIPTS, options(tasks=("inference",))))
    with pytest.raises(UserError, match=r"task \(training before, inference after\)"):
        compare.runs(trained, inferred)
