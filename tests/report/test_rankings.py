"""Page, table and JSON rank by any quantity, with its own unit, direction and words."""

from __future__ import annotations

import json
from dataclasses import replace
from fnmatch import fnmatch
from operator import attrgetter

import pytest
from reading import Page
from recorded import Script, view_of, write_run

from steelyard import report
from steelyard.analysis import compare, formatting, headlines, warnings
from steelyard.report import as_json, columns, page
from steelyard.results import quantities
from steelyard.results.quantities import ENERGY, LARGEST_BATCH, LATENCIES, OF_EPOCHS, OF_PHASES, STEP_TIME, THROUGHPUT
from steelyard.wording.task_words import fill

# Not those of the run of these tests: it trains, but no whole epochs, searches for no batch, its phases have no memory, and no meter was read.
LEFT_OUT = (ENERGY, LARGEST_BATCH, *LATENCIES, *OF_EPOCHS, *OF_PHASES)
QUANTITIES = {name: each for name, each in quantities.QUANTITIES.items() if each not in LEFT_OUT}
OTHERS = [quantity for quantity in QUANTITIES.values() if quantity is not STEP_TIME]
RULE = fill(headlines.RULE, "training")
PER_PROCESS = [quantity for quantity in OTHERS if quantity.per_process]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Fake is faster and needs 300 MiB; Dummy has the faster first step and needs 310 MiB."""
    scripts = {"fake": Script(10.0, first_step_ms=900.0), "dummy": Script(12.0, first_step_ms=50.0)}
    return write_run(tmp_path_factory.mktemp("runs"), scripts)


@pytest.fixture(scope="module")
def view(folder):
    """Return a function that returns the view of the run, ranked by a quantity."""
    made = {quantity.name: view_of(folder, quantity) for quantity in QUANTITIES.values()}
    return lambda quantity: made[quantity.name]


@pytest.mark.parametrize(
    ("name", "source", "headline", "sentence"),
    [
        ("step time", "cached", "Fake is the fastest.", "Fake is 1.2?x [?] faster than Dummy."),
        (
            "throughput",
            "cached",
            "Fake has the highest throughput.",
            "Fake has a 1.2?x [?] higher throughput than Dummy.",
        ),
        (
            "first step",
            "process",
            "Dummy has the fastest first step.",
            "Dummy has a 18.0x [?] faster first step than Fake.",
        ),
        (
            "time to first step",
            "process",
            "Dummy has the shortest time to first step.",
            "Dummy has a 1.81x [?] shorter time to first step than Fake.",
        ),
        ("peak memory", "process", "Fake uses the least memory.", "Fake uses 1.03x [?] less memory than Dummy."),
    ],
)
def test_the_verdict_is_in_the_words_of_the_quantity(view, name, source, headline, sentence):
    (comparison,) = view(QUANTITIES[name]).comparisons
    assert headlines.headline(comparison, source) == headline
    pattern = sentence.replace("[?]", "[[]*]")
    assert fnmatch(headlines.verdict(comparison, source), pattern), headlines.verdict(comparison, source)


@pytest.mark.parametrize("quantity", QUANTITIES.values(), ids=attrgetter("name"))
def test_the_best_comes_first_and_the_ratio_is_that_of_the_values(view, quantity):
    (comparison,) = view(quantity).comparisons
    for source in comparison.rankings:
        best, other = comparison.contenders
        assert quantity.cost(best.standings[source].value) < quantity.cost(other.standings[source].value)
        ratio = other.standings[source].ratio
        assert ratio.value == pytest.approx(other.standings[source].value / best.standings[source].value, rel=1e-9)
        assert ratio.low < ratio.value < ratio.high
        assert (ratio.value < 1) == quantity.more_is_better
        (found,) = compare.contenders(
            replace(view(quantity), comparisons=(_only(comparison, source),)), "dummy", "fake"
        )
        expected = ratio.value if best.title == "Fake" else 1 / ratio.value
        assert found.ratio == pytest.approx(expected, rel=1e-9)


def _only(comparison, source):
    return replace(comparison, rankings={source: comparison.rankings[source]})


@pytest.mark.parametrize(
    ("name", "headings", "cells"),
    [
        ("throughput", ["mean throughput", "ratio to highest", "mean step"], ["points/s", "highest", "0.83x"]),
        ("first step", ["mean first step", "ratio to fastest"], ["50.0 ms", "900 ms", "18.0x"]),
        ("time to first step", ["mean time to first step", "ratio to shortest"], ["1.05 s", "1.90 s", "1.81x"]),
        ("peak memory", ["mean peak memory", "ratio to least"], ["300 MiB", "310 MiB", "least", "1.03x"]),
    ],
)
def test_page_and_terminal_lead_with_the_quantity_and_its_ratio(view, printed, name, headings, cells):
    found, text = Page(page.render(view(QUANTITIES[name]))), printed(view(QUANTITIES[name]), 160)
    shown = [cell.words for cell in found.all("th", role="columnheader")][1:]
    assert shown[: len(headings)] == headings
    assert name not in shown  # no second column with another summary of the same quantity
    in_cells = " ".join(cell.words for cell in found.all("td", role="cell"))
    for cell in cells:
        assert cell in in_cells and cell in text


@pytest.mark.parametrize("quantity", OTHERS, ids=attrgetter("name"))
def test_neither_page_nor_terminal_says_fastest_of_what_is_not_a_time(view, printed, quantity):
    plotted = Page(page.render(view(quantity)))
    text = plotted.text() + str(plotted.figures()) + printed(view(quantity), 160)
    text = text.replace("fastest matrix product", "").replace("fastest first step", "")
    assert ("fastest" in text) == (quantity.best == "fastest")
    assert f"ratio to {quantity.best}" in text


@pytest.mark.parametrize("quantity", OTHERS, ids=attrgetter("name"))
def test_page_terminal_and_json_say_what_is_ranked_and_by_which_rule(view, printed, quantity):
    basis = f"Ranked by {quantity.label}: {'more' if quantity.more_is_better else 'less'} is better."
    found = Page(page.render(view(quantity)))
    assert found.all("p", class_="question")[0].words == basis
    assert RULE in found.text()
    assert f"{basis} {RULE}" in " ".join(printed(view(quantity), 100).split())
    read = as_json.as_dict(view(quantity))
    assert read["quantity"] == {
        "name": quantity.name,
        "unit": quantity.unit,
        "more_is_better": quantity.more_is_better,
        "decision": RULE,
    }


def test_the_default_ranking_says_nothing_of_quantities(view, printed):
    read = as_json.as_dict(view(STEP_TIME))
    assert "quantity" not in read
    assert "standings" not in read["comparisons"][0]["contenders"][0]
    assert RULE not in Page(page.render(view(STEP_TIME))).text()
    assert "Ranked by" not in printed(view(STEP_TIME), 100)


@pytest.mark.parametrize("quantity", PER_PROCESS, ids=attrgetter("name"))
def test_a_quantity_with_one_value_per_process_has_one_table_and_no_plot_of_steps(view, quantity):
    found = Page(page.render(view(quantity)))
    assert found.all("h3")[0].words == "One value per process"
    assert len(found.all("table", class_="verdict")) == 1
    kinds = {name.partition("/")[0] for name in found.figures()}
    assert kinds == {"rounds", "losses", "start", "memory", "machine", "confusion"}
    assert not {"mean step", "median step", "throughput", "share of peak"} & {
        c.heading for c in columns.ranked_by(quantity, "training")
    }


def test_a_quantity_with_a_value_per_input_keeps_the_plots_of_steps(view):
    found = Page(page.render(view(THROUGHPUT)))
    assert {"steps/line:small/cached", "steps/line:small/pipeline"} <= found.figures().keys()


@pytest.mark.parametrize("quantity", OTHERS, ids=attrgetter("name"))
def test_json_has_the_values_in_the_unit_of_the_quantity(view, quantity):
    read = json.loads(json.dumps(as_json.as_dict(view(quantity)), allow_nan=False))["comparisons"][0]
    (comparison,) = view(quantity).comparisons
    for contender, stored in zip(comparison.contenders, read["contenders"], strict=True):
        assert stored["standings"].keys() == comparison.rankings.keys() == read["sentences"].keys()
        assert stored["speeds"].keys() == {"pipeline", "cached"}
        for source, standing in contender.standings.items():
            assert stored["standings"][source]["value"] == standing.value
    for source, (verdict,) in read["verdicts"].items():
        assert verdict["kind"] == "better"
        ratio = comparison.contenders[1].standings[source].ratio
        assert verdict["ratio"] == pytest.approx(1 / ratio.value, rel=1e-9)  # the best over the other one
        assert verdict["low"] == pytest.approx(1 / ratio.high, rel=1e-9)


@pytest.mark.parametrize("quantity", OTHERS, ids=attrgetter("name"))
def test_without_certificates_the_plot_shows_means_in_the_unit_of_the_quantity(tmp_path, quantity):
    folder = write_run(tmp_path, {"fake": Script(passed=None), "dummy": Script(12.0, passed=None)})
    found = Page(page.render(view_of(folder, quantity)))
    (figure, *_) = (figure for name, figure in found.figures().items() if name.startswith("ratios/"))
    axis = figure["layout"]["xaxis"]
    assert axis["title"]["text"] == f"mean {quantity.label}"
    assert axis["ticksuffix"] == {"ns": "s", "bytes": " MiB", "samples/s": " points/s"}[quantity.unit]
    (value, _) = (trace["x"][0] for trace in figure["data"] if trace["mode"] == "markers")
    assert (
        0.9
        < value
        / {"ns": 0.05 if quantity.name == "first step" else 1.05, "bytes": 300, "samples/s": 1600}[quantity.unit]
        < 1.1
    )
    assert "There is no verdict on the " in found.text()


def test_a_quantity_that_no_process_recorded_gives_no_verdict(tmp_path, printed):
    folder = write_run(tmp_path, {"fake": Script(), "dummy": Script()})
    unknown = replace(QUANTITIES["peak memory"], read=lambda trial, source: None)
    found = view_of(folder, unknown)
    assert "No verdict: no contender has a valid, certified result." in printed(found, 100)
    assert not Page(page.render(found)).all("td", role="cell")


def test_small_and_nearly_equal_ratios_are_shown_with_enough_digits(view):
    (comparison,) = view(THROUGHPUT).comparisons
    _, other = comparison.contenders
    for (value, low, high), text in {
        (0.9991, 0.9985, 0.9996): "0.9991x [0.9985, 0.9996]",
        (0.0042, 0.0041, 0.0043): "0.0042x [0.0041, 0.0043]",
        (0.83, 0.81, 0.85): "0.83x [0.81, 0.85]",
        (0.99, 0.95, 1.03): "0.99x [0.95, 1.03]",
    }.items():
        standing = other.standings["cached"]
        changed = replace(standing, ratio=replace(standing.ratio, value=value, low=low, high=high))
        shown = formatting.ratio(comparison, replace(other, standings={"cached": changed}), "cached")
        assert str(shown) == text


def test_the_page_of_another_quantity_does_not_replace_the_page_of_the_run(folder, view, monkeypatch):
    monkeypatch.setattr(page, "library", lambda: "")
    written = [report.write(view(quantity)).name for quantity in QUANTITIES.values()]
    assert written == [
        "report.html",
        "report-throughput.html",
        "report-first-step.html",
        "report-time-to-first-step.html",
        "report-peak-memory.html",
    ]
    assert all((folder / name).is_file() for name in written)


def test_a_warning_about_step_times_is_not_on_a_page_of_the_whole_process(folder, monkeypatch):
    monkeypatch.setattr(warnings, "INPUT_BOUND", 2.0)  # every pipeline then limits the speed
    named = {
        quantity.name: {each.name for each in view_of(folder, quantity).warnings} for quantity in QUANTITIES.values()
    }
    assert {name for name, found in named.items() if "InputBound" in found} == {"step time", "throughput"}
    assert all("RepeatedRounds" in found for found in named.values())
