"""Verdicts and rankings as sentences."""

import re
from dataclasses import replace
from math import exp

import pytest

from steelyard.statistics.decision import Verdict, decide
from steelyard.statistics.sentences import Wording, factor_digits, headline, percent, ranking_sentence, verdict_sentence

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


@pytest.mark.parametrize(("more", "words"), [(1, "about 1 more round"), (4, "about 4 more rounds")])
def test_undecided_names_the_better_one_and_the_rounds_still_needed(more: int, words: str) -> None:
    undecided = replace(BETTER, kind="undecided", rounds_still_needed=more)
    sentence = f"JAX and PyTorch: too close to call (JAX was faster on average), {words} needed"
    assert verdict_sentence(undecided, TITLES) == sentence
    assert verdict_sentence(undecided.flipped(), TITLES) == sentence


@pytest.mark.parametrize("ratio", [1.0, 1.0004, 1 / 1.0004])
def test_of_two_that_are_tied_none_is_called_ahead(ratio: float) -> None:
    tied = replace(BETTER, kind="undecided", ratio=ratio, low=ratio / 1.1, high=ratio * 1.1, rounds_still_needed=2)
    names = "PyTorch and JAX" if ratio > 1 else "JAX and PyTorch"
    assert verdict_sentence(tied, TITLES) == f"{names}: too close to call, about 2 more rounds needed"


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
    assert re.fullmatch(r"JAX and MXNet: undecided, about (1 more round|\d+ more rounds) needed", still)


def test_undecided_neighbours_are_compared_with_the_leader() -> None:
    rounds = {"jax": times(0, 0, 0), "pytorch": times(0.5, 0.5, 0.5), "mxnet": times(0.504, 0.512, 0.52)}
    first, second = ranking_sentence(decide(rounds), TITLES).split("; ")
    assert first.endswith("faster than PyTorch")
    assert second.startswith("JAX is 1.67x")
    assert second.endswith("faster than MXNet")


def test_two_undecided_frameworks_are_both_named_and_the_last_round_is_mentioned() -> None:
    wild = {number: 1e6 * exp(0.2 * (number % 2)) for number in range(1, 13)}
    ranking = decide({"jax": dict.fromkeys(wild, 1e6), "mxnet": wild})
    assert ranking_sentence(ranking, TITLES) == "JAX and MXNet: undecided after 12 rounds"


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
            "Too close to call: JAX and MXNet. JAX was faster on average.",
        ),
        (
            {"jax": times(0, 0, 0), "mxnet": times(0.004, 0.012, 0.02), "pytorch": times(0.003, 0.0, 0.003)},
            "Too close to call: JAX, PyTorch and MXNet. JAX was fastest on average.",
        ),
        (
            {"jax": times(0, 0, 0), "mxnet": times(0.004, 0.012, 0.02), "pytorch": times(0.5, 0.5, 0.5)},
            "Too close to call: JAX and MXNet. JAX was faster on average.",
        ),
        ({"jax": times(0, 0, 0), "mxnet": times(-0.03, 0, 0.03)}, "Too close to call: JAX and MXNet."),
        ({"jax": times(0, 0, 0), "mxnet": times(0.5, 0.5, 0.5), "pytorch": {}}, "So far: JAX is the fastest."),
    ],
)
def test_the_headline_names_all_that_may_be_the_fastest(rounds: dict[str, dict[int, float]], sentence: str) -> None:
    assert headline(decide(rounds), TITLES) == sentence


def test_a_headline_needs_a_comparison() -> None:
    with pytest.raises(ValueError, match="compared with the leader"):
        headline(decide({"jax": times(0, 0, 0)}), TITLES)


def test_another_quantity_brings_its_own_words() -> None:
    memory = Wording(
        better="{a} uses {factor} less memory than {b}",
        ahead="{who} used less memory on average",
        ahead_of_all="{who} used the least memory on average",
        best="{who} uses the least memory",
        best_together="{who} use the least memory, practically the same",
    )
    assert verdict_sentence(BETTER, TITLES, memory) == "JAX uses 1.42x [1.38, 1.47] less memory than PyTorch"
    ranking = decide({"jax": times(0, 0, 0), "mxnet": times(0.5, 0.5, 0.5)})
    assert headline(ranking, TITLES, memory) == "JAX uses the least memory."
    assert ranking_sentence(ranking, TITLES, memory).endswith("less memory than MXNet")


def test_percentages_have_at_most_two_digits() -> None:
    assert [percent(value) for value in (0.02, 0.028, 0.1, 0.125)] == ["2 %", "2.8 %", "10 %", "12 %"]


@pytest.mark.parametrize(("low", "digits"), [
    (1.0, 5), (1.000001, 5), (1.00001, 5), (1.0001, 4), (1.004, 3), (1.01, 2), (9.99, 2), (10, 1), (99, 1), (100, 0)
])  # fmt: skip
def test_a_factor_has_two_decimals_fewer_if_large_and_more_if_close_to_one(low: float, digits: int) -> None:
    assert factor_digits(low) == digits


@pytest.mark.parametrize(
    ("fraction", "words"),
    [(0.994, "99 %"), (0.995, "100 %"), (1.0, "100 %"), (1.8, "180 %"), (-1.8, "-180 %"), (0.001, "0.1 %")],
)
def test_percentages_of_a_hundred_and_more_have_no_decimals(fraction: float, words: str) -> None:
    assert percent(fraction) == words
