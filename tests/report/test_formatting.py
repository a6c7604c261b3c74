"""Numbers, titles, headlines and grouped warnings as text."""

from __future__ import annotations

from dataclasses import replace

import pytest
from recorded import Script, options, view_of, write_run

from steelyard.analysis import formatting, headlines
from steelyard.analysis.notices import ResultWarning, gather
from steelyard.wording import formatted, notation


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (8_214_000, "8.21 ms"),
        (1.4e9, "1.40 s"),
        (950, "950 ns"),
        (999_900, "1.00 ms"),
        (12_345, "12.3 µs"),
        (250e9, "250 s"),
    ],
)
def test_a_time_has_three_digits_and_a_unit(nanoseconds, text):
    assert notation.duration(nanoseconds) == text


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (10.0123, 9.9912, 10.0334, "10.01 [9.99, 10.03]"),
        (10.0, 2.0, 50.0, "10.0 [2.0, 50.0]"),
        (10.0, 9.999999, 10.000001, "10.000 [10.000, 10.000]"),
        (10.0, 10.0, 10.0, "10.0 [10.0, 10.0]"),
        (1601.6, 1597.9, 1605.4, "1,602 [1,598, 1,605]"),
    ],
)
def test_value_and_interval_have_equal_decimals(value, low, high, text):
    assert " ".join(notation.interval(value, low, high)) == text


def test_a_ratio_has_the_same_digits_as_in_the_sentence(recorded_view):
    comparison = recorded_view.comparisons[0]
    slower = next(c for c in comparison.contenders if c.title == "Dummy")
    for source in comparison.rankings:
        assert str(formatting.ratio(comparison, slower, source)) in comparison.sentences[source]


def test_the_machine_is_described_in_one_line():
    host = {
        "cpu_model": "CPU",
        "cores_usable": 1,
        "memory_bytes": 2 * 2**30,
        "gpus": ["GPU X"],
        "system": "Linux",
        "virtualised": "",
    }
    assert formatted.machine(host) == "CPU, 1 core, 2 GiB memory, GPU X, Linux"
    assert formatted.machine({}) == ""


def test_a_time_stamp_is_written_out():
    assert formatted.moment("2026-11-21T03:58:07+00:00") == "21 November 2026, 03:58 UTC"


def test_contenders_equal_to_the_fastest_are_named_together(tmp_path):
    scripts = {"fake": Script(10.0), "dummy": Script(10.0)}
    comparison = view_of(write_run(tmp_path, scripts)).comparisons[0]
    assert headlines.headline(comparison, "cached") == "Fake and Dummy are the fastest, practically the same."


def test_the_candidates_of_an_undecided_comparison_are_named(tmp_path):
    scripts = {"fake": Script(10.0, process_scatter=0.03), "dummy": Script(10.1, process_scatter=0.03)}
    comparison = view_of(write_run(tmp_path, scripts)).comparisons[0]
    assert headlines.headline(comparison, "cached") in (
        "The fastest is Fake or Dummy: they are within 1.05x of each other.",
        "The fastest is Dummy or Fake: they are within 1.05x of each other.",
    )


def test_equal_warnings_appear_once():
    same = [ResultWarning("NotCertified", "warning", who, "No certificate.", "Certify.") for who in ("A", "B")]
    slow = [ResultWarning("SlowFirstStep", "note", who, f"{who} is slow.", "Wait.") for who in ("A", "B")]
    gathered = gather([*same, *slow])
    assert [[subjects for _, subjects in notice.findings] for notice in gathered] == [
        [("A", "B")],
        [("A",), ("B",)],
    ]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "8 features, 3 classes; 27 parameters, batch 16. Data:"),
        ({"batches": (4,)}, "8 features, 3 classes; 27 parameters, batch 4 instead of 16. Data:"),
        (
            {"set": ("features=10,classes=4",), "synthetic": True},
            "8 features, 3 classes; here features 10 instead of 8 and classes 4 instead of 3; 44 parameters, batch 16. Data:",
        ),
    ],
)
def test_a_group_says_which_sizes_are_not_those_of_its_preset(given, sentence, tmp_path):
    scripts = {"fake": Script(), "dummy": Script(12.0)}
    (comparison,) = view_of(write_run(tmp_path, scripts, options(**given))).comparisons
    assert headlines.describe(comparison).startswith(sentence)


def test_a_size_that_a_damaged_record_lacks_is_not_named(tmp_path):
    (comparison,) = view_of(write_run(tmp_path, {"fake": Script(), "dummy": Script(12.0)}, options())).comparisons
    damaged = replace(comparison, replaced={"lost": 8, "features": 4})
    assert headlines.describe(damaged).startswith("8 features, 3 classes; here features 8 instead of 4; 27 parameters")
