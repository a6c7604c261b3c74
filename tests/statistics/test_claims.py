"""What published percentages mean as ratios, and whether a measured interval agrees with them."""

from __future__ import annotations

from math import inf

import pytest

from steelyard.statistics.claims import Claim, claim, judge, judge_level, level, speed_ratio
from steelyard.statistics.intervals import Level, Ratio, level_interval

# Numbers that the documents print, with the two values from which each follows.
PRINTED = [
    ("difference", 4.85, 216.14 / 206.15, 5e-5),
    ("difference", 14.28, 150.32 / 131.54, 5e-5),
    ("less time by", 23.69, 2816.39 / 2149.15, 1e-4),
    ("less time by", 37.04, 3081.88 / 1940.25, 2e-4),
    ("ratio", 1.1981, 152 / 126.87, 5e-5),
    ("performance loss", 12.67, 3.896510 / 3.402820, 1e-4),
    ("communication overhead", 2.638, 2 * 243.6 / 474.35, 1e-4),
]


@pytest.mark.parametrize(("quantity", "printed", "ratio", "rounding"), PRINTED)
def test_a_printed_number_means_the_ratio_of_the_values_beside_it(quantity, printed, ratio, rounding):
    assert speed_ratio(quantity, printed) == pytest.approx(ratio, abs=rounding)


@pytest.mark.parametrize(
    "quantity", ["epoch time", "gpu utilisation", "accuracy", "kernel share", "first epoch longer by"]
)
def test_what_is_no_ratio_of_speeds_is_not_held_against_one(quantity):
    assert speed_ratio(quantity, 48.6) is None
    assert claim(quantity, "order", ordered=True, value=None) is None


@pytest.mark.parametrize(
    ("quantity", "relation", "ordered", "value", "said"),
    [
        ("ratio", "", True, 2.69, Claim(2.69, 2.69, ordered=True)),
        ("faster by", "about", True, 10, Claim(1.1, 1.1, ordered=True)),
        ("faster by", "<=", True, 130, Claim(1.0, 2.3, ordered=True)),
        ("faster by", ">", True, 102, Claim(2.02, None, ordered=True)),
        ("difference", "<", False, 8, Claim(1 / 1.08, 1.08, ordered=False)),
        ("difference", "", False, 3.7, None),
        ("difference", ">", False, 3.7, None),
        ("speed", "order", True, None, Claim(None, None, ordered=True)),
        ("faster by", "ambiguous", True, 7.3, Claim(None, None, ordered=True)),
        ("difference", "ambiguous", False, 7.3, None),
        ("faster by", "not given", True, None, None),
        ("faster by", "missing", True, None, None),
        ("less time by", "", True, 100, None),
    ],
)
def test_relations_of_the_documents_become_claims(quantity, relation, ordered, value, said):
    found = claim(quantity, relation, ordered, value)
    assert (found is None) == (said is None)
    if found and said:
        assert (found.low, found.high) == pytest.approx((said.low, said.high))
        assert found.ordered == said.ordered


def test_a_range_has_both_ends():
    assert claim("faster by", "range", True, None, 20, 60) == Claim(1.2, 1.6, ordered=True)
    assert claim("faster by", "range", True, None, 20) is None


def test_a_ratio_below_one_is_that_of_the_exchanged_sides():
    said = claim("ratio", "", ordered=True, value=0.8)
    assert said and said.is_reversed
    assert (said.turned().low, said.turned().high) == pytest.approx((1.25, 1.25))
    assert not said.turned().is_reversed
    assert Claim(1.2, 1.6, ordered=True).turned().turned() == Claim(1.2, 1.6, ordered=True)
    assert not Claim(None, None, ordered=True).is_reversed
    assert not Claim(1 / 1.08, 1.08, ordered=False).is_reversed


MINDSPORE = Claim(1.1981, 1.1981, ordered=True)


@pytest.mark.parametrize(
    ("said", "measured", "judgement"),
    [
        (MINDSPORE, (1.15, 1.25), "confirmed"),
        (MINDSPORE, (0.95, 1.25), "open"),  # neither the claim nor its opposite is ruled out
        (MINDSPORE.turned(), (0.8, 1.05), "open"),
        (MINDSPORE.turned(), (0.8, 0.99), "confirmed"),
        (MINDSPORE, (1.30, 1.40), "same order"),
        (MINDSPORE, (1.01, 1.19), "same order"),
        (MINDSPORE, (0.70, 0.80), "reversed"),
        (MINDSPORE, (0.90, 1.10), "open"),
        (MINDSPORE, (0.50, 3.00), "open"),  # wide enough to hold anything
        (MINDSPORE, (1.10, 9.00), "same order"),
        (Claim(None, None, ordered=True), (1.15, 1.25), "same order"),
        (Claim(None, None, ordered=True), (0.8, 0.9), "reversed"),
        (Claim(None, None, ordered=True), (0.9, 1.1), "open"),
        (Claim(1.0, 2.3, ordered=True), (1.4, 1.5), "confirmed"),
        (Claim(1.0, 2.3, ordered=True), (2.4, 2.5), "same order"),
        (Claim(1.0, 2.3, ordered=True), (0.8, 0.9), "reversed"),
        (Claim(2.02, None, ordered=True), (2.5, 2.6), "confirmed"),
        (Claim(2.02, None, ordered=True), (1.5, 1.6), "same order"),
        (Claim(1.2, 1.6, ordered=True), (1.5, 1.7), "confirmed"),
        (Claim(1 / 1.08, 1.08, ordered=False), (0.95, 0.97), "confirmed"),
        (Claim(1 / 1.08, 1.08, ordered=False), (1.2, 1.3), "open"),  # no order was said that could agree
        (
            Claim(1.0, 1.05, ordered=True),
            (0.77, 1.37),
            "open",
        ),  # neither who is better nor a larger difference is ruled out
        (Claim(1.0, 1.05, ordered=True), (0.97, 1.04), "confirmed"),
        (Claim(1.0, 1.05, ordered=True), (0.90, 1.04), "open"),
        (Claim(1.0, 1.05, ordered=True), (0.97, 1.06), "open"),
        (Claim(1.0, 1.05, ordered=True), (1.02, 1.20), "confirmed"),
        (Claim(1 / 1.05, 1.0, ordered=True), (0.85, 0.99), "confirmed"),
        (Claim(1 / 1.05, 1.0, ordered=True), (0.85, 1.01), "open"),
        (Claim(1 / 1.05, 1.0, ordered=True), (0.96, 1.04), "confirmed"),
        (Claim(0.5, 0.8, ordered=True), (0.6, 1.01), "open"),
        (Claim(1 / 1.08, 1.08, ordered=False), (1.02, 1.20), "open"),  # the difference may be larger
        (Claim(1 / 1.08, 1.08, ordered=False), (0.80, 0.98), "open"),
        (Claim(1.0, 1.0, ordered=True), (0.985, 1.02), "confirmed"),
        (Claim(1.0, 1.0, ordered=True), (0.97, 1.02), "open"),
        (Claim(1.0, 1.0, ordered=True), (1.2, 1.3), "open"),  # "no faster" has no order either
    ],
)
def test_a_measured_interval_is_judged(said, measured, judgement):
    low, high = measured
    assert judge(said, Ratio((low * high) ** 0.5, low, high, 5)) == judgement


@pytest.mark.parametrize(
    ("relation", "value", "measured", "expected"),
    [
        ("", 54.3, (50, 45, 55), "confirmed"),
        ("", 54.3, (50, 49, 51), "different"),
        ("<", 3, (1, 0.1, 2), "confirmed"),  # a wide interval, but all of it below the bound
        ("<", 3, (5, 1, 9), "open"),
        ("<", 3, (5, 4, 6), "different"),
        (">", 96, (97, 95, 99), "confirmed"),
        (">", 96, (90, 85, 95), "different"),
        ("about", 86, (86, 85, 87), "confirmed"),
        ("", 54.3, (54.3, -inf, inf), "open"),  # one process
    ],
)
def test_a_value_is_held_against_the_interval_of_the_same_value(relation, value, measured, expected):
    assert judge_level(level(relation, value), Level(*measured, 3)) == expected


def test_a_value_that_says_nothing_is_held_against_nothing():
    assert level("not given", None) is None
    assert level("order", 3) is None
    assert level("range", None, 2, 4) == Claim(2, 4, ordered=False)


def test_the_mean_of_processes_has_an_interval_from_two_on():
    assert level_interval([]) is None
    assert level_interval([4.0]) == Level(4, -inf, inf, 1)
    found = level_interval([0.0, 2.0])
    assert (found.value, found.processes) == (1, 2)
    assert found.high - found.value == pytest.approx(12.706, abs=1e-3)  # Student's t with one degree of freedom
