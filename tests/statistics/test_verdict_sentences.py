"""Verdicts as words."""

from dataclasses import replace
from math import exp

import pytest

from steelyard.statistics.calibration import NoiseFloor
from steelyard.statistics.decision import Verdict, decide
from steelyard.statistics.sentences import percent, ranking_sentence, verdict_sentence

TITLES = {"jax": "JAX", "pytorch": "PyTorch", "tensorflow": "TensorFlow", "mxnet": "MXNet"}
FASTER = Verdict("faster", 1 / 1.42, 1 / 1.47, 1 / 1.38, 3, 0, 0.02, "jax", "pytorch", 0.0125)
FLOOR = NoiseFloor(s_d0=0.008, degrees_of_freedom=8, rounds=9)


def times(*logs: float) -> dict[int, float]:
    return {number: 1e6 * exp(value) for number, value in enumerate(logs, start=1)}


def test_faster_is_told_with_its_interval_from_either_side() -> None:
    sentence = "JAX is 1.42x [1.38, 1.47] faster than PyTorch"
    assert verdict_sentence(FASTER, TITLES) == sentence
    assert verdict_sentence(FASTER.flipped(), TITLES) == sentence


def test_equal_names_the_margin() -> None:
    equal = replace(FASTER, kind="equal", delta_used=0.028)
    assert verdict_sentence(equal, TITLES) == "JAX and PyTorch are practically the same (within 2.8 %)"


@pytest.mark.parametrize(("more", "words"), [(1, "about 1 more round"), (4, "about 4 more rounds")])
def test_undecided_says_for_how_long(more: int, words: str) -> None:
    open_one = replace(FASTER, kind="undecided", rounds_still_needed=more)
    assert verdict_sentence(open_one, TITLES) == f"JAX and PyTorch: undecided, {words}"


@pytest.mark.parametrize(
    ("ratio", "low", "high", "words"),
    [
        (1.004, 1.002, 1.006, "1.004x [1.002, 1.006]"),
        (12.34, 12.01, 12.71, "12.3x [12.0, 12.7]"),
        (340.2, 333.3, 351.1, "340x [333, 351]"),
    ],
)
def test_a_factor_has_the_digits_it_needs(ratio: float, low: float, high: float, words: str) -> None:
    verdict = replace(FASTER, ratio=1 / ratio, low=1 / high, high=1 / low)
    assert verdict_sentence(verdict, TITLES) == f"JAX is {words} faster than PyTorch"


def test_a_ranking_is_one_sentence_from_the_fastest_to_the_open() -> None:
    rounds = {
        "mxnet": times(0.004, 0.012, 0.02),
        "pytorch": times(0.5, 0.5, 0.5),
        "jax": times(0, 0, 0),
        "tensorflow": times(0.501, 0.5, 0.502),
    }
    sentence = ranking_sentence(decide(rounds, FLOOR), TITLES)
    first, same, still = sentence.split("; ")
    assert first.startswith("JAX is 1.65x [1.6")
    assert first.endswith("faster than PyTorch")
    assert same == "PyTorch and TensorFlow are practically the same (within 2 %)"
    assert still.startswith("MXNet: undecided, about ")


def test_undecided_neighbours_are_told_by_their_distance_from_the_leader() -> None:
    rounds = {"jax": times(0, 0, 0), "pytorch": times(0.5, 0.5, 0.5), "mxnet": times(0.504, 0.512, 0.52)}
    first, second = ranking_sentence(decide(rounds, FLOOR), TITLES).split("; ")
    assert first.endswith("faster than PyTorch")
    assert second.startswith("JAX is 1.67x")
    assert second.endswith("faster than MXNet")


def test_two_open_frameworks_are_both_named_and_a_spent_plan_is_said() -> None:
    wild = {number: 1e6 * exp(0.1 * (-1) ** number) for number in range(1, 13)}
    sentence = ranking_sentence(decide({"jax": dict.fromkeys(wild, 1e6), "mxnet": wild}, FLOOR), TITLES)
    assert sentence.startswith("JAX and MXNet: undecided after 12 rounds, about ")


def test_a_framework_that_never_finished_is_said_to_be_unmeasured() -> None:
    sentence = ranking_sentence(decide({"jax": times(0, 0, 0), "mxnet": {}}, FLOOR), TITLES)
    assert sentence == "MXNet: not measured yet"


def test_a_percentage_has_no_idle_digits() -> None:
    assert [percent(value) for value in (0.02, 0.028, 0.1, 0.125)] == ["2 %", "2.8 %", "10 %", "12 %"]
