"""The answer to who is the best: candidates, how close they are, and what is ruled out. Each holds at 95 %."""

from dataclasses import replace
from math import exp, inf, log

import numpy as np
import pytest

from steelyard.statistics.answer import answer, largest_factor
from steelyard.statistics.decision import DecisionPlan, Ranking, Verdict, decide
from steelyard.statistics.looks import look
from steelyard.statistics.verdicts import joint_half_width

NAMES = "abcdef"


def times(*logs: float) -> dict[int, float]:
    return {number: 1e6 * exp(value) for number, value in enumerate(logs, start=1)}


def verdict(a: str, b: str, kind: str, low: float, high: float) -> Verdict:
    return Verdict(kind, (low * high) ** 0.5, low, high, 3, 0, 0.02, a, b, 0.01, low, high)  # type: ignore[arg-type]


def ranking(order: str, *verdicts: Verdict) -> Ranking:
    return Ranking(tuple(order), order[0], verdicts, frozenset(), 3, 0.02, 0.01, DecisionPlan())


def test_a_candidate_is_one_that_no_other_is_shown_to_beat() -> None:
    """C is too close to the leader, but shown to be slower than B: it cannot be the fastest."""
    found = answer(
        ranking(
            "abc",
            verdict("a", "b", "undecided", 0.95, 1.02),
            verdict("a", "c", "undecided", 0.80, 1.01),
            verdict("b", "c", "better", 0.85, 0.97),
        )
    )
    assert found.candidates == found.compared == ("a", "b")
    assert found.within == pytest.approx(1 / 0.95)


def test_the_factor_of_the_others_is_the_largest_that_any_comparison_guarantees() -> None:
    """The best is at least as good as B, so C is worse than the best by 1.5 even if the best is A."""
    found = answer(
        ranking(
            "abc",
            verdict("a", "b", "undecided", 0.95, 1.02),
            verdict("a", "c", "better", 0.2, 1 / 1.3),
            verdict("b", "c", "better", 0.4, 1 / 1.5),
        )
    )
    assert found.worse == (("c", pytest.approx(1.5)),)


def test_a_joint_interval_that_reaches_one_gives_no_factor() -> None:
    found = answer(ranking("ab", replace(verdict("a", "b", "better", 0.8, 0.99), joint_high=1.01)))
    assert (found.candidates, found.worse) == (("a",), (("b", 1.0),))


def test_equal_ones_are_within_the_margin() -> None:
    equal = verdict("a", "b", "equal", 0.9, 1.1)
    assert largest_factor(equal) == 1.02
    assert largest_factor(replace(equal, joint_low=0.99, joint_high=1.0)) == pytest.approx(1 / 0.99)


def test_an_interval_wider_than_a_factor_of_three_is_left_out_of_the_distance() -> None:
    pairs = (
        verdict("a", "b", "undecided", 0.9, 1.1),
        verdict("a", "c", "undecided", 0.5, 1.51),
        verdict("b", "c", "undecided", 0.6, 1.7),
    )
    found = answer(ranking("abc", *pairs))
    assert (found.candidates, found.compared) == (("a", "b", "c"), ("a", "b"))
    assert found.within == pytest.approx(1 / 0.9)
    alone = answer(ranking("ac", pairs[1]))
    assert (alone.compared, alone.within) == (("a",), inf)


def test_pairs_without_a_common_round_are_not_said_to_be_close() -> None:
    pairs = (verdict("a", "b", "undecided", 0.9, 1.1), verdict("a", "c", "undecided", 0.9, 1.1))
    found = answer(ranking("abc", *pairs))
    assert (found.candidates, found.compared) == (("a", "b", "c"), ("a", "b"))


def test_one_that_was_not_measured_is_no_candidate() -> None:
    assert answer(decide({"a": times(0, 0, 0), "b": times(0.01, 0.0, 0.03), "c": {}})).candidates == ("a", "b")


def test_verdicts_that_contradict_each_other_leave_the_first() -> None:
    found = answer(
        ranking(
            "abc",
            verdict("a", "b", "better", 0.8, 0.9),
            verdict("b", "c", "better", 0.8, 0.9),
            verdict("a", "c", "worse", 1.1, 1.2),
        )
    )
    assert found.candidates == ("a",)


def test_among_some_the_others_count_for_nothing() -> None:
    rounds = {"a": times(0, 0, 0), "b": times(0.5, 0.501, 0.5), "c": times(0.9, 0.9, 0.901)}
    found = answer(decide(rounds), among={"b", "c"})
    assert found.candidates == ("b",)
    assert found.worse[0][0] == "c"
    assert 1.3 < found.worse[0][1] < exp(0.4)


def test_a_joint_interval_is_turned_with_its_verdict() -> None:
    turned = replace(verdict("a", "b", "better", 0.5, 0.8), joint_low=0.4, joint_high=0.9).flipped()
    assert (turned.joint_low, turned.joint_high) == (pytest.approx(1 / 0.9), pytest.approx(2.5))


@pytest.mark.parametrize("contenders", [2, 5])
def test_no_joint_interval_misses_the_truth_in_more_than_5_percent_of_families(contenders: int) -> None:
    """The intervals at the steps of Holm's procedure promise this only one by one."""
    families, plan = 4000, DecisionPlan()
    draw = np.random.default_rng(7)
    truth = np.linspace(0, 0.4, contenders)
    noise = draw.normal(0, 0.01, (families, contenders, plan.most_rounds))
    first, second = np.triu_indices(contenders, 1)
    missed = np.zeros(families, bool)
    for rounds in range(plan.least_rounds, plan.most_rounds + 1):
        state = look(truth[:, None] + noise[..., :rounds], plan)
        off = np.abs(state.evidence.mean - (truth[first] - truth[second]))
        missed |= (off > joint_half_width(state, plan)).any(-1)
    assert missed.mean() <= plan.error


def test_the_verdicts_have_the_joint_intervals() -> None:
    rounds = {"a": times(0, 0.01, 0), "b": times(0.01, 0.0, 0.03), "c": times(0.5, 0.52, 0.5)}
    plan = DecisionPlan()
    state = look(np.log([list(values.values()) for values in rounds.values()]), plan)
    halves = sorted(log(each.joint_high / each.joint_low) / 2 for each in decide(rounds, plan).verdicts)
    assert halves == pytest.approx(sorted(joint_half_width(state, plan)))
    for each in decide(rounds, plan).verdicts:
        assert each.joint_low <= each.low < each.high <= each.joint_high
