"""What published percentages mean as ratios, and whether a measured interval agrees with them."""

from __future__ import annotations

from math import inf

import pytest
import simulated_words
from hypothesis import given
from hypothesis import strategies as st

from steelyard.statistics.claims import Claim, claim, judge, judge_level, level, of_claim, speed_ratio
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


@pytest.mark.parametrize("quantity", ["epoch time", "gpu utilisation", "kernel share", "first epoch longer by"])
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
        ("speed", "equal", False, None, Claim(1.0, 1.0, ordered=False)),
        ("epoch time", "equal", False, None, None),
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


SMALL, TWICE = Claim(1.0231, 1.0231, ordered=True), Claim(2.0, 2.0, ordered=True)
COMPATIBLE = "compatible, not precise"


@pytest.mark.parametrize(
    ("said", "measured", "judgement"),
    [
        (MINDSPORE, (1.15, 1.25), "same size"),
        (MINDSPORE, (0.95, 1.25), COMPATIBLE),  # neither the claim nor its opposite is ruled out
        (MINDSPORE.turned(), (0.8, 1.05), COMPATIBLE),
        (MINDSPORE.turned(), (0.8, 0.9), "same size"),
        (MINDSPORE.turned(), (0.8, 0.99), "same order"),
        (MINDSPORE.turned(), (1.1, 1.2), "opposite order"),
        (MINDSPORE, (1.30, 1.40), "same size"),
        (MINDSPORE, (1.30, 1.50), "same order"),  # 1.50 is more than twice of the difference
        (MINDSPORE, (1.01, 1.19), "same order"),  # 1.01 is less than half of it
        (MINDSPORE, (0.70, 0.80), "opposite order"),
        (MINDSPORE, (0.90, 1.08), "other size"),  # the difference is smaller, whoever is better
        (MINDSPORE, (0.90, 1.10), COMPATIBLE),
        (MINDSPORE, (0.50, 3.00), "open"),  # wide enough to hold anything
        (MINDSPORE, (1.10, 9.00), "same order"),
        (SMALL, (1.01, 3.00), "same order"),  # a wide interval holds 1.0231 as well as 2
        (TWICE, (1.01, 3.00), "same order"),
        (SMALL, (1.015, 1.04), "same size"),
        (SMALL, (0.99, 1.005), "other size"),
        (TWICE, (1.62, 2.48), "same size"),
        (TWICE, (1.55, 2.48), "same order"),
        (Claim(None, None, ordered=True), (1.15, 1.25), "same order"),
        (Claim(None, None, ordered=True), (0.8, 0.9), "opposite order"),
        (Claim(None, None, ordered=True), (0.9, 1.1), "open"),
        (Claim(1.0, 2.3, ordered=True), (1.4, 1.5), "same size"),
        (Claim(1.0, 2.3, ordered=True), (2.4, 2.5), "same order"),
        (Claim(1.0, 2.3, ordered=True), (0.8, 0.9), "opposite order"),
        (Claim(2.02, None, ordered=True), (2.5, 2.6), "same size"),
        (Claim(2.02, None, ordered=True), (1.5, 1.6), "same order"),
        (Claim(1.2, 1.6, ordered=True), (1.3, 1.5), "same size"),
        (Claim(1.2, 1.6, ordered=True), (1.5, 1.7), "same order"),
        (Claim(1 / 1.08, 1.08, ordered=False), (0.95, 0.97), "same size"),
        (Claim(1 / 1.08, 1.08, ordered=False), (1.2, 1.3), "other size"),
        (Claim(1.0, 1.05, ordered=True), (0.77, 1.37), COMPATIBLE),
        (Claim(1.0, 1.05, ordered=True), (0.985, 1.04), "same size"),
        (Claim(1.0, 1.05, ordered=True), (0.90, 1.04), COMPATIBLE),
        (Claim(1.0, 1.05, ordered=True), (0.99, 1.06), COMPATIBLE),
        (Claim(1.0, 1.05, ordered=True), (1.02, 1.20), "same order"),
        (Claim(1 / 1.08, 1.08, ordered=False), (1.02, 1.20), COMPATIBLE),  # the difference may be larger
        (Claim(1 / 1.08, 1.08, ordered=False), (0.80, 0.98), COMPATIBLE),
        (Claim(1.0, 1.0, ordered=True), (0.985, 1.015), "same size"),
        (Claim(1.0, 1.0, ordered=True), (0.97, 1.02), COMPATIBLE),
        (Claim(1.0, 1.0, ordered=True), (1.2, 1.3), "other size"),  # "no faster" has no order
    ],
)
def test_a_measured_interval_is_judged(said, measured, judgement):
    low, high = measured
    assert judge(said, Ratio((low * high) ** 0.5, low, high, 5)) == judgement


@given(published=st.floats(1.001, 20), ends=st.tuples(st.floats(0.05, 20), st.floats(0.05, 20)))
def test_a_claim_and_the_same_claim_of_the_exchanged_sides_get_the_same_word(published, ends):
    low, high = min(ends), max(ends)
    said, one = Claim(published, published, ordered=True), Ratio(1.0, low, high, 5)
    assert judge(said, one) == judge(said.turned(), Ratio(1.0, 1 / high, 1 / low, 5))


@given(published=st.floats(1.001, 20), ends=st.tuples(st.floats(0.05, 20), st.floats(0.05, 20)), wider=st.floats(1, 3))
def test_a_wider_interval_never_gets_a_stronger_word(published, ends, wider):
    """What was true of an interval may be lost when it grows, but nothing is won: no word rewards noise."""
    low, high = min(ends), max(ends)
    said = Claim(published, published, ordered=True)
    narrow = judge(said, Ratio(1.0, low, high, 5))
    wide = judge(said, Ratio(1.0, low / wider, high * wider, 5))
    weaker = {
        "same size": {"same size", "same order", COMPATIBLE, "open"},
        "same order": {"same order", COMPATIBLE, "other size", "open"},
        "opposite order": {"opposite order", COMPATIBLE, "other size", "open"},
        "other size": {"other size", COMPATIBLE, "open"},
        COMPATIBLE: {COMPATIBLE, "open"},
        "open": {"open"},
    }
    assert wide in weaker[narrow]


@pytest.mark.parametrize("published", [1.0231, 1.05, 1.3, 2.0])
@pytest.mark.parametrize("scatter", [0.01, 0.05, 0.15])
@pytest.mark.parametrize("rounds", [3, 12])
def test_the_probability_of_a_wrong_word_does_not_grow_with_the_noise(published, scatter, rounds):
    for true in (1.0, 1.02, 1.1, 1.5, 3.0):
        found = simulated_words.shares(published, true, scatter, rounds, count=400)
        wrong = sum(share for word, share in found.items() if simulated_words.is_wrong(word, published, true))
        assert wrong <= 0.05 + 0.04  # the error of 400 runs is 1.1 %


@pytest.mark.parametrize(
    ("relation", "value", "measured", "expected"),
    [
        ("", 54.3, (54, 50, 58), "same size"),
        ("", 54.3, (50, 45, 55), COMPATIBLE),
        ("", 54.3, (48, 47, 49), "other size"),
        ("<", 3, (1, 0.1, 2), "same size"),  # a wide interval, but all of it below the bound
        ("<", 3, (5, 1, 9), "open"),
        ("<", 3, (5, 4, 6), "other size"),
        (">", 96, (98, 97, 99), "same size"),
        (">", 96, (97, 95, 99), COMPATIBLE),
        (">", 96, (90, 85, 95), "other size"),
        ("about", 86, (86, 85, 87), "same size"),
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


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["same size"], "same size"),
        (["same size", "same order"], "same order"),
        (["same size", "open", "compatible, not precise"], "open"),
        (["opposite order", "opposite order"], "opposite order"),
        (["opposite order", "other size"], "other size"),
        (["same size", "opposite order"], None),
        (["open", "opposite order"], None),
    ],
)
def test_a_claim_of_several_rows_gets_their_weakest_word_or_none(words, expected):
    assert of_claim(words) == of_claim(words[::-1]) == expected
