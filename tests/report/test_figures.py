"""Plots show what was measured: every spike, every interruption, no false precision."""

from __future__ import annotations

import itertools
import json
import math
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from recorded import Script, view_of, write_run

from steelyard.report import forest, losses, page, series, stability
from steelyard.report.figures import extremes, plain
from steelyard.report.styles import COLOURS, style, styles


def group(*variants):
    """Return what `styles` reads of a comparison."""
    return SimpleNamespace(contenders=[SimpleNamespace(variant=each) for each in variants])


def test_the_contenders_of_the_smallest_comparison_have_different_colours():
    strategies = ("alone:2", "devices:2", "processes:2", "single:1")
    few = [f"{framework}/single:1" for framework in "abcde"]
    many = [f"{framework}/{strategy}" for framework in "abcde" for strategy in strategies]
    found = styles([group(*many), group(*few)])
    assert found.keys() == {*many}
    assert len({found[each].colour for each in few}) == len(few)
    assert len({(each.colour, each.symbol) for each in found.values()}) == len(many)


def test_thinning_keeps_the_extremes_of_every_bin_in_order():
    values = np.random.default_rng(1).normal(10, 1, 100_000)
    values[54_321], values[777] = 99.0, 0.1
    places, kept = extremes(values, 500)
    assert len(kept) <= 1000
    assert {54_321, 777} <= set(places.tolist())
    assert (np.diff(places) > 0).all()
    assert (values[places] == kept).all()


def test_short_series_are_not_thinned():
    values = np.arange(10.0)
    assert extremes(values, 5)[1].tolist() == values.tolist()


def test_a_step_beyond_the_scale_is_marked_with_its_true_value(recorded_view):
    comparison = recorded_view.comparisons[0]
    figure = series.step_times(comparison, "cached", styles(recorded_view.comparisons))
    marks = [trace for trace in figure.data if trace["mode"] == "markers"]
    (longest,) = {round(value, 3) for trace in marks for value, _ in trace["customdata"]}
    assert 0.046 <= longest <= 0.050
    assert any("longest 48" in note["text"] or "longest 47" in note["text"] for note in figure.layout["annotations"])


def test_rounds_are_not_connected_and_first_steps_are_omitted(recorded_view):
    figure = series.step_times(recorded_view.comparisons[0], "cached", styles(recorded_view.comparisons))
    counted = figure.data[1]
    assert counted["x"].count(None) == 5
    assert len([x for x in counted["x"] if x is not None]) == 5 * 100
    assert max(y for y in counted["y"] if y) < 0.02


def test_loss_curves_coincide_and_their_difference_is_plotted(recorded_view):
    figure = losses.figure(recorded_view.comparisons[0], styles(recorded_view.comparisons))
    first, second, distance = figure.data
    assert np.allclose(first["y"], second["y"], atol=1e-5)
    assert distance["yaxis"] == "y2"
    assert 0 < max(y for y in distance["y"] if y) < 1e-5


def test_different_update_rules_are_mentioned(recorded_view):
    comparison = recorded_view.comparisons[0]
    assert "update rules" not in losses.figure(comparison, styles(recorded_view.comparisons)).caption
    rule = "As the framework's own rule does: epsilon is added elsewhere."
    first, second = comparison.contenders
    declared = replace(second, proof=replace(second.proof, details={"declared": rule}))
    unknown = losses.figure(
        replace(comparison, contenders=(first, declared)), styles(recorded_view.comparisons)
    ).caption
    assert "update rules" not in unknown, "the certificate of the other contender does not contain its rule"
    canonical = replace(first, proof=replace(first.proof, details={"declared": ""}))
    caption = losses.figure(
        replace(comparison, contenders=(canonical, declared)), styles(recorded_view.comparisons)
    ).caption
    assert (
        f"{second.title}, as the framework's own rule does: epsilon is added elsewhere. With --optimizer-implementation reference"
        in caption
    )


def test_the_band_of_practical_equality_is_that_of_the_verdict(recorded_view):
    comparison = recorded_view.comparisons[0]
    figure = forest.figure(comparison, "cached", styles(recorded_view.comparisons))
    delta = comparison.rankings["cached"].delta_used
    assert figure.layout["shapes"][0]["x1"] == pytest.approx(1 + delta)
    assert figure.layout["shapes"][0]["x0"] == pytest.approx(1 / (1 + delta))


def test_an_unbounded_interval_is_clipped(tmp_path):
    scripts = {"fake": Script(rounds=1, passed=None), "dummy": Script(11.0, rounds=1, passed=None)}
    view = view_of(write_run(tmp_path, scripts))
    figure = forest.figure(view.comparisons[0], "cached", styles(view.comparisons))
    drawn = [x for trace in figure.data for x in trace["x"]]
    assert None not in drawn
    assert max(drawn) < 40 * min(drawn)
    assert {trace["mode"] for trace in figure.data} == {"markers"}, "one process has no interval, so no bar is drawn"
    assert figure.caption.startswith("Mean time per step of each contender; there are no intervals after one trial. ")


@pytest.mark.parametrize(("rounds", "interval"), [(1, False), (3, True)])
def test_ratios_have_intervals_after_several_trials(tmp_path, rounds, interval):
    scripts = {"fake": Script(rounds=rounds), "dummy": Script(12.0, rounds=rounds)}
    view = view_of(write_run(tmp_path, scripts))
    caption = forest.figure(view.comparisons[0], "cached", styles(view.comparisons)).caption
    assert ("divided by that of the fastest, with its interval. " in caption) == interval
    assert ("divided by that of the fastest; there are no intervals after one trial. " in caption) != interval
    assert ("An interval inside the band" in caption) == interval


def test_means_after_several_trials_have_intervals(tmp_path):
    view = view_of(write_run(tmp_path, {"fake": Script(passed=None), "dummy": Script(11.0, passed=None)}))
    figure = forest.figure(view.comparisons[0], "cached", styles(view.comparisons))
    assert figure.caption.startswith("Mean time per step of each contender, with its interval. ")


def test_a_logarithmic_axis_has_full_tick_labels(tmp_path):
    scripts = {"fake": Script(rounds=1, passed=None), "dummy": Script(41.0, rounds=1, passed=None)}
    view = view_of(write_run(tmp_path, scripts))
    axis = forest.figure(view.comparisons[0], "cached", styles(view.comparisons)).layout["xaxis"]
    assert axis["type"] == "log"
    assert {(0.002, "2.00 ms"), (0.05, "50.0 ms")} <= set(zip(axis["tickvals"], axis["ticktext"], strict=True))
    assert all(np.log10(axis["tickvals"]) >= axis["range"][0]) and all(np.log10(axis["tickvals"]) <= axis["range"][1])


def test_deviations_of_rounds_are_relative_to_their_own_mean(recorded_view):
    figure = stability.rounds(recorded_view.comparisons[0], "cached", styles(recorded_view.comparisons))
    for trace in figure.data:
        assert sum(trace["y"]) == pytest.approx(0, abs=1e-3)


def test_a_repeated_round_is_shown_next_to_the_counted_one(recorded_view):
    figure = stability.machine(recorded_view)
    assert "2 ×" in figure.data[0]["x"][1] and "2.1" in figure.data[0]["x"][1]


def test_text_in_a_plot_is_escaped():
    assert plain("<b>&</b>") == "&lt;b&gt;&amp;&lt;/b&gt;"


def test_contenders_differ_without_colour():
    looks = [style(place) for place in range(35)]
    assert len({(look.symbol, look.dash) for look in looks}) == 35


def test_colours_have_enough_contrast_in_both_themes():
    css = (page.TEMPLATES / "style.css").read_text(encoding="utf-8")
    papers = re.findall(r"--paper: (#\w{6})", css)[:2]
    for colour, paper in itertools.product(COLOURS, papers):
        assert _contrast(colour, paper) >= 3, (colour, paper)
    for background, theme in zip(papers, css.split("prefers-color-scheme"), strict=False):
        for text in re.findall(r"--(?:ink|soft|good|bad|mild|link): (#\w{6})", theme)[:6]:
            assert _contrast(text, background) >= 4.5, (text, background)


def _contrast(one, other):
    """Return the contrast ratio as defined by WCAG 2.2."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour):
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(share * value for share, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_a_loss_that_became_infinite_leaves_a_gap(recorded_view):
    (comparison,) = recorded_view.comparisons
    fake, dummy = comparison.contenders
    grown = [*dummy.losses[:5], 1e30, math.inf, math.nan, *dummy.losses[8:]]
    diverged = replace(comparison, contenders=(fake, replace(dummy, losses=grown)))
    figure = losses.figure(diverged, styles(recorded_view.comparisons))
    curve, distance = figure.data[1:]
    assert (curve["y"][5:7], distance["y"][5:7]) == ([1e30, None], [1e30, None])
    json.dumps(figure.as_dict(), allow_nan=False)
