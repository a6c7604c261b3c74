"""Verdicts and rankings as sentences."""

import re
from dataclasses import replace
from itertools import combinations
from math import exp

import pytest

from steelyard.statistics.decision import DecisionPlan, Ranking, Verdict, decide
from steelyard.statistics.sentences import (
    Wording,
    factor_digits,
    headline,
    in_text,
    percent,
    ranking_sentence,
    verdict_sentence,
)

TITLES = {"jax": "JAX", "pytorch": "PyTorch", "tensorflow": "TensorFlow", "mxnet": "MXNet"}
BETTER = Verdict("better", 1 / 1.42, 1 / 1.47, 1 / 1.38, 3, 0, 0.02, "jax", "pytorch", 0.0125)


def times(*logs: float) -> dict[int, float]:
    return {number: 1e6 * exp(value) for number, value in enumerate(logs, start=1)}


def test_the_faster_one_comes_first_with_the_interval() -> None:
    sentence = "JAX is 1.42x [1.38, 1.47] faster than PyTorch"
    assert verdict_sentence(BETTER, TITLES) == sentence
    assert verdict_sentence(BETTER.flipped(), TITLES) == sentence


def test_equality_names_the_margin() -> None:
    equal = replace(BETTER, kind="equal", delta_used=0.028)
    assert verdict_sentence(equal, TITLES) == "JAX and PyTorch are practically the same (within 2.8 %)"


def test_beyond_the_margin_of_the_plan_nobody_is_called_the_same() -> None:
    jax, mxnet = (0, 0.1, -0.1, 0.1, -0.1, 0) * 2, (0, -0.1, 0.1, -0.1, 0.1, 0) * 2
    for rounds in range(2, 13):
        ranking = decide({"jax": times(*jax[:rounds]), "mxnet": times(*mxnet[:rounds])})
        assert "the same" not in f"{ranking_sentence(ranking, TITLES)} {headline(ranking, TITLES)}"
    (verdict,) = ranking.verdicts
    assert verdict.kind == "equal"
    assert (
        verdict_sentence(verdict, TITLES) == f"JAX and MXNet are not told apart (within {percent(verdict.delta_used)})"
    )
    assert (
        headline(ranking, TITLES)
        == f"JAX and MXNet are the fastest, not told apart (within {percent(verdict.delta_used)})."
    )


def test_undecided_names_the_better_one_and_how_close_they_are() -> None:
    undecided = replace(BETTER, kind="undecided", joint_low=1 / 1.6001, joint_high=1.1)
    sentence = "JAX and PyTorch: too close to call (JAX was faster on average), within 1.61x of each other"
    assert verdict_sentence(undecided, TITLES) == sentence
    assert verdict_sentence(undecided.flipped(), TITLES) == sentence


@pytest.mark.parametrize("ratio", [1.0, 1.0004, 1 / 1.0004])
def test_of_two_that_are_tied_none_is_called_ahead(ratio: float) -> None:
    tied = replace(BETTER, kind="undecided", ratio=ratio, joint_low=ratio / 1.1, joint_high=ratio * 1.1)
    names = "PyTorch and JAX" if ratio > 1 else "JAX and PyTorch"
    within = "1.10x" if ratio == 1 else "1.11x"
    assert verdict_sentence(tied, TITLES) == f"{names}: too close to call, within {within} of each other"


def test_an_undecided_interval_wider_than_a_factor_of_three_is_not_shown() -> None:
    undecided = replace(BETTER, kind="undecided", low=0.45, high=1.36)
    sentence = "JAX and PyTorch: too close to call (JAX was faster on average), not enough rounds"
    assert verdict_sentence(undecided, TITLES) == sentence


@pytest.mark.parametrize(
    ("low", "words"), [(5.239, "5.23x"), (1.0071, "1.007x"), (1.0007, "1.0007x"), (1.00096, "1.0009x")]
)
def test_the_lower_end_of_an_interval_wider_than_a_factor_of_three_is_rounded_down(low: float, words: str) -> None:
    wide = replace(BETTER, low=1 / 16.2, high=1 / low)
    sentence = f"JAX is more than {words} faster than PyTorch (not enough rounds to say how much)"
    assert verdict_sentence(wide, TITLES) == sentence


@pytest.mark.parametrize(
    ("ratio", "low", "high", "words"),
    [
        (1.004, 1.002, 1.006, "1.004x [1.002, 1.006]"),
        (12.34, 12.01, 12.71, "12.3x [12.0, 12.7]"),
        (340.2, 333.3, 351.1, "340x [333, 351]"),
    ],
)
def test_a_factor_has_the_digits_it_needs(ratio: float, low: float, high: float, words: str) -> None:
    verdict = replace(BETTER, ratio=1 / ratio, low=1 / high, high=1 / low)
    assert verdict_sentence(verdict, TITLES) == f"JAX is {words} faster than PyTorch"


def test_a_ranking_goes_from_the_fastest_to_the_undecided() -> None:
    rounds = {
        "mxnet": times(0.004, 0.012, 0.02),
        "pytorch": times(0.5, 0.5, 0.5),
        "jax": times(0, 0, 0),
        "tensorflow": times(0.501, 0.5, 0.502),
    }
    sentence = ranking_sentence(decide(rounds), TITLES)
    first, same, still = sentence.split("; ")
    assert first.startswith("JAX is 1.65x [1.6")
    assert first.endswith("faster than PyTorch")
    assert same == "PyTorch and TensorFlow are practically the same (within 2 %)"
    assert re.fullmatch(
        r"JAX and MXNet: too close to call \(JAX was faster on average\), within 1\.\d\dx of each other", still
    )


def test_undecided_neighbours_are_compared_with_the_leader() -> None:
    rounds = {"jax": times(0, 0, 0), "pytorch": times(0.5, 0.5, 0.5), "mxnet": times(0.504, 0.512, 0.52)}
    first, second = ranking_sentence(decide(rounds), TITLES).split("; ")
    assert first.endswith("faster than PyTorch")
    assert second.startswith("JAX is 1.67x")
    assert second.endswith("faster than MXNet")


def test_two_undecided_frameworks_are_both_named() -> None:
    wild = {number: 1e6 * exp(0.2 * (number % 2)) for number in range(1, 13)}
    ranking = decide({"jax": dict.fromkeys(wild, 1e6), "mxnet": wild})
    sentence = "JAX and MXNet: too close to call (JAX was faster on average), within 1.24x of each other"
    assert ranking_sentence(ranking, TITLES) == sentence


def test_a_framework_without_a_finished_round_is_not_measured_yet() -> None:
    sentence = ranking_sentence(decide({"jax": times(0, 0, 0), "mxnet": {}}), TITLES)
    assert sentence == "MXNet: not measured yet"


@pytest.mark.parametrize(
    ("rounds", "sentence"),
    [
        ({"jax": times(0, 0, 0), "mxnet": times(0.5, 0.5, 0.5)}, "JAX is the fastest."),
        ({"jax": times(0, 0, 0), "mxnet": times(0, 0, 0)}, "JAX and MXNet are the fastest, practically the same."),
        (
            {"jax": times(0, 0, 0), "mxnet": times(0.004, 0.012, 0.02)},
            "The fastest is JAX or MXNet: they are within 1.07x of each other.",
        ),
        (
            {"jax": times(0, 0, 0), "mxnet": times(0.004, 0.012, 0.02), "pytorch": times(0.003, 0.0, 0.003)},
            "The fastest is JAX, PyTorch or MXNet: they are within 1.04x of each other.",
        ),
        (
            {"jax": times(0, 0, 0), "mxnet": times(0.004, 0.012, 0.02), "pytorch": times(0.5, 0.5, 0.5)},
            "The fastest is JAX or MXNet: they are within 1.04x of each other. PyTorch is at least 1.60x slower.",
        ),
        (
            {
                "jax": times(0, 0, 0),
                "mxnet": times(0.004, 0.012, 0.02),
                "pytorch": times(0.5, 0.5, 0.5),
                "tensorflow": times(0.95, 0.95, 0.95),
            },
            (
                "The fastest is JAX or MXNet: they are within 1.04x of each other. "
                "PyTorch is at least 1.61x and TensorFlow at least 2.53x slower."
            ),
        ),
        (
            {"jax": times(0, 0, 0), "mxnet": times(-0.03, 0, 0.03)},
            "The fastest is JAX or MXNet: they are within 1.20x of each other.",
        ),
        ({"jax": times(0, 0, 0), "mxnet": times(0.5, 0.5, 0.5), "pytorch": {}}, "So far: JAX is the fastest."),
    ],
)
def test_the_headline_names_all_that_may_be_the_fastest(rounds: dict[str, dict[int, float]], sentence: str) -> None:
    assert headline(decide(rounds), TITLES) == sentence


def test_what_is_not_measured_well_enough_is_said_in_the_headline() -> None:
    wild = {"jax": times(0, 0, 0), "mxnet": times(-0.5, 0.1, 0.6)}
    sentence = "The fastest is JAX or MXNet: not enough rounds to say how much they differ."
    assert headline(decide(wild), TITLES) == sentence
    three = wild | {"pytorch": times(0.003, 0.0, 0.03, 0.01, 0.02, 0.0)}
    three["jax"] = times(0, 0, 0, 0, 0, 0)
    assert re.fullmatch(
        r"The fastest is JAX, PyTorch or MXNet: JAX and PyTorch are within 1\.\d\dx of each other, not enough rounds for MXNet\.",
        headline(decide(three), TITLES),
    )


@pytest.mark.parametrize(("others", "said"), [(4, "D is at least 1."), (5, "The 5 others are ruled out.")])
def test_a_headline_names_a_few_that_are_ruled_out_and_counts_many(others: int, said: str) -> None:
    noise = [0.01, -0.02, 0.02, 0.0, -0.01, 0.01]
    rounds = {"a": times(*noise), "b": times(*[-each for each in noise])}
    rounds |= {f"{'defgh'[i]}": times(*[0.5 + 0.2 * i + each for each in noise]) for i in range(others)}
    found = headline(decide(rounds), {name: name.upper() for name in rounds})
    assert found.startswith("The fastest is B or A: ")
    assert said in found
    assert ("E at least" in found) == (others == 4)


def undecided(count: int, unclear: str = "") -> Ranking:
    """Return a ranking of a, b, ... in which no pair is decided; nothing narrow is known of `unclear`."""
    names = "abcdefg"[:count]
    pairs = (
        Verdict("undecided", 0.95, low, 1.1, 5, 3, 0.02, a, b, 0.01, low, 1.1)
        for a, b in combinations(names, 2)
        for low in (0.2 if unclear in (a, b) else 0.8,)
    )
    return Ranking(tuple(names), "a", tuple(pairs), frozenset(names[1:]), 5, 0.02, 0.1, DecisionPlan())


LETTERS = {name: name.upper() for name in "abcdefg"}


@pytest.mark.parametrize(
    ("count", "unclear", "sentence"),
    [
        (4, "", "The fastest is A, B, C or D: they are within 1.25x of each other."),
        (4, "d", "The fastest is A, B, C or D: A, B and C are within 1.25x of each other, not enough rounds for D."),
        (
            5,
            "",
            "The fastest is one of 5 contenders, of which A was best on average: they are within 1.25x of each other.",
        ),
        (
            5,
            "d",
            (
                "The fastest is one of 5 contenders, of which A was best on average: 4 of them are within 1.25x of each other, not "
                "enough rounds for the others."
            ),
        ),
    ],
)
def test_of_many_that_may_be_the_best_the_headline_names_the_first(count: int, unclear: str, sentence: str) -> None:
    assert headline(undecided(count, unclear), LETTERS) == sentence


@pytest.mark.parametrize(
    ("count", "unclear", "clauses"),
    [
        (
            5,
            "",
            ["A is too close to call with B (within 1.25x), C (within 1.25x), D (within 1.25x) and E (within 1.25x)"],
        ),
        (6, "", ["A is too close to call with 5 others (within 1.25x)"]),
        (
            6,
            "f",
            [
                "A is too close to call with B (within 1.25x), C (within 1.25x), D (within 1.25x) and E (within 1.25x)",
                "A cannot be compared with F yet (not enough rounds)",
            ],
        ),
        (6, "a", ["A cannot be compared with 5 others yet (not enough rounds)"]),
    ],
)
def test_many_that_are_not_decided_are_counted_in_the_verdict(count: int, unclear: str, clauses: list[str]) -> None:
    assert ranking_sentence(undecided(count, unclear), LETTERS) == "; ".join(clauses)


def test_if_the_best_is_retired_the_best_maintained_one_is_named_too() -> None:
    rounds = {"mxnet": times(0, 0, 0), "jax": times(0.5, 0.5, 0.5), "pytorch": times(0.7, 0.7, 0.7)}
    maintained = {"jax", "pytorch"}
    sentence = "MXNet is the fastest. Of the maintained ones, JAX is the fastest."
    assert headline(decide(rounds), TITLES, maintained=maintained) == sentence
    assert headline(decide(rounds), TITLES, maintained=rounds) == "MXNet is the fastest."
    assert headline(decide(rounds), TITLES, maintained=()) == "MXNet is the fastest."
    close = rounds | {"pytorch": times(0.504, 0.512, 0.52)}
    assert headline(decide(close), TITLES, maintained=maintained).startswith(
        "MXNet is the fastest. Of the maintained ones, the fastest is JAX or PyTorch: they are within 1.0"
    )


def test_a_maintained_candidate_is_not_named_twice() -> None:
    rounds = {"mxnet": times(0, 0, 0), "jax": times(0.004, 0.012, 0.02)}
    sentence = "The fastest is MXNet or JAX: they are within 1.07x of each other."
    assert headline(decide(rounds), TITLES, maintained={"jax"}) == sentence


def test_a_headline_needs_a_comparison() -> None:
    with pytest.raises(ValueError, match="compared with the leader"):
        headline(decide({"jax": times(0, 0, 0)}), TITLES)


def test_another_quantity_brings_its_own_words() -> None:
    memory = Wording(
        better="{a} uses {factor} less memory than {b}",
        ahead="{who} used less memory on average",
        best="{who} uses the least memory",
        best_together="{who} use the least memory",
    )
    assert verdict_sentence(BETTER, TITLES, memory) == "JAX uses 1.42x [1.38, 1.47] less memory than PyTorch"
    ranking = decide({"jax": times(0, 0, 0), "mxnet": times(0.5, 0.5, 0.5)})
    assert headline(ranking, TITLES, memory) == "JAX uses the least memory."
    assert ranking_sentence(ranking, TITLES, memory).endswith("less memory than MXNet")


def test_percentages_have_at_most_two_digits() -> None:
    assert [percent(value) for value in (0.02, 0.028, 0.1, 0.125)] == ["2 %", "2.8 %", "10 %", "12 %"]


@pytest.mark.parametrize(
    ("low", "digits"),
    [(1.0, 5), (1.000001, 5), (1.00001, 5), (1.0001, 4), (1.004, 3), (1.01, 2), (9.99, 2), (10, 1), (99, 1), (100, 0)],
)
def test_a_factor_has_two_decimals_fewer_if_large_and_more_if_close_to_one(low: float, digits: int) -> None:
    assert factor_digits(low) == digits


@pytest.mark.parametrize(
    ("fraction", "words"),
    [(0.994, "99 %"), (0.995, "100 %"), (1.0, "100 %"), (1.8, "180 %"), (-1.8, "-180 %"), (0.001, "0.1 %")],
)
def test_percentages_of_a_hundred_and_more_have_no_decimals(fraction: float, words: str) -> None:
    assert percent(fraction) == words


@pytest.mark.parametrize(
    ("title", "mark", "expected"),
    [
        ("PyTorch", "", "PyTorch"),
        ("PyTorch, layout channels-first, onednn True", "", "PyTorch (layout channels-first, onednn True)"),
        ("MXNet", "retired", "MXNet (retired)"),
        ("MXNet, lstm fused", "retired", "MXNet (lstm fused, retired)"),
    ],
)
def test_a_title_in_a_sentence_has_no_commas_of_its_own(title: str, mark: str, expected: str) -> None:
    assert in_text(title, mark) == expected
