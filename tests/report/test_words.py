"""Figures, names and groups of warnings in words."""

from __future__ import annotations

import pytest
from recorded import Script, view_of, write_run

from steelyard.report import notation, notices, words
from steelyard.report.warnings import Caution


@pytest.mark.parametrize(
    ("nanoseconds", "said"),
    [
        (8_214_000, "8.21 ms"),
        (1.4e9, "1.40 s"),
        (950, "950 ns"),
        (999_900, "1.00 ms"),
        (12_345, "12.3 µs"),
        (250e9, "250 s"),
    ],
)
def test_a_time_has_three_digits_and_a_unit(nanoseconds, said):
    assert notation.duration(nanoseconds) == said


@pytest.mark.parametrize(
    ("value", "low", "high", "said"),
    [
        (10.0123, 9.9912, 10.0334, "10.01 [9.99, 10.03]"),
        (10.0, 2.0, 50.0, "10.0 [2.0, 50.0]"),
        (10.0, 9.999999, 10.000001, "10.000 [10.000, 10.000]"),
        (10.0, 10.0, 10.0, "10.0 [10.0, 10.0]"),
        (10.0, 1e-9, float("inf"), "10.0 [0, ∞]"),
        (1601.6, 1597.9, 1605.4, "1,602 [1,598, 1,605]"),
    ],
)
def test_value_and_interval_have_equal_decimals(value, low, high, said):
    assert " ".join(notation.interval(value, low, high)) == said


def test_ratio_digits_are_those_of_the_sentence(recorded_view):
    comparison = recorded_view.comparisons[0]
    slower = next(c for c in comparison.contenders if c.title == "Dummy")
    for source in comparison.rankings:
        assert str(words.ratio(comparison, slower, source)) in comparison.sentences[source]


def test_the_machine_is_told_in_one_line():
    host = {
        "cpu_model": "CPU",
        "cores_usable": 1,
        "memory_bytes": 2 * 2**30,
        "gpus": ["GPU X"],
        "system": "Linux",
        "virtualised": "",
    }
    assert words.machine(host) == "CPU, 1 core, 2 GiB memory, GPU X, Linux"
    assert words.machine({}) == ""


def test_a_moment_is_written_out():
    assert words.moment("2026-11-21T03:58:07+00:00") == "21 November 2026, 03:58 UTC"


def test_equals_at_the_top_are_named_together(tmp_path):
    scripts = {"fake": Script(10.0), "dummy": Script(10.0)}
    comparison = view_of(
        write_run(tmp_path, scripts, noise={"s_d0": 0.004, "degrees_of_freedom": 8, "rounds": 9})
    ).comparisons[0]
    assert words.headline(comparison, "cached") == "Fake and Dummy are the fastest, practically level."


def test_an_open_race_has_no_winner(tmp_path):
    scripts = {"fake": Script(10.0, process_scatter=0.03), "dummy": Script(10.1, process_scatter=0.03)}
    comparison = view_of(write_run(tmp_path, scripts)).comparisons[0]
    assert words.headline(comparison, "cached") in (
        "No winner yet: Fake leads, undecided against Dummy.",
        "No winner yet: Dummy leads, undecided against Fake.",
    )


def test_equal_warnings_are_said_once():
    same = [Caution("NotCertified", "warning", who, "No certificate.", "Certify.") for who in ("A", "B")]
    slow = [Caution("SlowFirstStep", "note", who, f"{who} is slow.", "Wait.") for who in ("A", "B")]
    gathered = notices.gather([*same, *slow])
    assert [[finding.subjects for finding in notice.findings] for notice in gathered] == [
        [("A", "B")],
        [("A",), ("B",)],
    ]
