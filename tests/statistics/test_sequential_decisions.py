"""The sequential rule: verdicts calculated by hand, and properties that hold for any rounds."""

from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.statistics.decision import DecisionPlan, Ranking, decide, rounds_needed, rounds_wanted
from steelyard.statistics.intervals import student_quantile
from steelyard.statistics.looks import holm_errors
from steelyard.statistics.verdicts import OPPOSITE

Rounds = dict[str, dict[int, float]]

some_rounds = st.dictionaries(st.integers(1, 12), st.floats(9e5, 1.2e6), max_size=12)
comparisons = st.dictionaries(st.sampled_from("abcde"), some_rounds, min_size=2)
tables = st.lists(st.lists(st.floats(9e5, 1.2e6), min_size=12, max_size=12), min_size=2, max_size=5)
UNDECIDABLE = {number: 1e6 * exp(0.2 * (number % 2)) for number in range(1, 13)}
"""Against a constant: too far for an equality, too scattered for a difference, after any number of rounds."""


def times(*logs: float) -> dict[int, float]:
    return {number: 1e6 * exp(value) for number, value in enumerate(logs, start=1)}


def kinds(ranking: Ranking) -> dict[tuple[str, str], str]:
    return {(v.a, v.b): v.kind for v in ranking.verdicts}


def test_a_clear_difference_is_decided_after_three_rounds() -> None:
    # d = 0.042 0.05 0.058: sd 0.008, two degrees of freedom, the error of round 3 is 15/16 %: t(1 - 0.0046875) = 10.255:
    # half width 10.255 * 0.008 / sqrt(3) = 0.0474.
    ranking = decide({"a": times(0, 0, 0), "b": times(0.042, 0.05, 0.058)})
    verdict = ranking.between("b", "a")
    assert verdict is not None
    assert (verdict.kind, verdict.rounds, verdict.rounds_still_needed) == ("worse", 3, 0)
    assert verdict.ratio == pytest.approx(exp(0.05))
    assert (log(verdict.low), log(verdict.high)) == pytest.approx((0.0026, 0.0974), abs=1e-4)
    assert (ranking.leader, ranking.order) == ("a", ("a", "b"))
    assert rounds_wanted(ranking) == frozenset()


def test_one_round_is_never_enough() -> None:
    ranking = decide({"a": times(0), "b": times(0.5), "c": times(0.9)})
    assert kinds(ranking) == {("a", "b"): "undecided", ("a", "c"): "undecided", ("b", "c"): "undecided"}
    assert rounds_wanted(ranking) == {"a", "b", "c"}


def test_two_rounds_are_enough_for_a_contender_that_is_far_behind() -> None:
    # Four contenders that scatter by a few percent, and one three times as slow.
    near = {"a": times(0, 0.02), "b": times(0.03, 0), "c": times(0.05, 0.06), "d": times(0.04, 0.02)}
    slow = {"slow": times(1.1, 1.13)}
    ranking = decide(near | slow)
    assert ranking.still_undecided == {"b", "c", "d"}
    against = ranking.between("a", "slow")
    assert against is not None
    assert (against.kind, against.rounds) == ("better", 2)
    assert rounds_wanted(ranking) == near.keys()


def test_two_rounds_of_fewer_contenders_decide_nothing() -> None:
    # Processes that are in one of two states agree by chance in two rounds. The others of five contenders would show the states.
    ranking = decide({"a": times(0, 0), "b": times(0.1, 0.1), "c": times(0.5, 0.5), "d": times(1, 1)})
    assert {verdict.kind for verdict in ranking.verdicts} == {"undecided"}
    assert rounds_wanted(ranking) == {"a", "b", "c", "d"}


def test_a_fixed_protocol_of_two_rounds_decides_after_them() -> None:
    ranking = decide({"a": times(0, 0), "b": times(1, 1.001)}, DecisionPlan.single_look(2))
    assert kinds(ranking) == {("a", "b"): "better"}


def test_two_rounds_are_not_enough_for_a_difference_like_the_noise() -> None:
    ranking = decide({"a": times(0, 0.02), "b": times(0.05, 0.03)})
    assert kinds(ranking) == {("a", "b"): "undecided"}


def test_close_frameworks_are_equal_within_delta() -> None:
    # d = -0.002 0.002 0: sd 0.002; two one-sided tests at 15/16 %, t = 7.200: half width 0.0083, inside ln 1.02 = 0.0198.
    ranking = decide({"a": times(-0.002, 0.002, 0), "b": times(0, 0, 0)})
    assert [verdict.kind for verdict in ranking.verdicts] == ["equal"]
    assert ranking.delta_used == 0.02


def test_a_difference_within_delta_is_called_equal() -> None:
    ranking = decide({"a": times(0, 0, 0), "b": times(0.009, 0.01, 0.011)})
    verdict = ranking.between("a", "b")
    assert verdict is not None
    assert verdict.kind == "equal"
    assert verdict.high < 1


def test_an_undecided_pair_has_an_estimate_of_the_rounds_still_needed() -> None:
    # dbar = 0.012, sd 0.008, distance max(0.0198 - 0.012, 0.012) = 0.012. The error of round 9 is 5/16 %.
    verdict = decide({"a": times(0, 0, 0), "b": times(0.004, 0.012, 0.02)}).between("a", "b")
    assert verdict is not None
    assert (verdict.kind, verdict.rounds_still_needed) == ("undecided", 6)
    assert verdict.low < 1 < verdict.high
    widths = [student_quantile(1 - 0.05 / 32, rounds - 1) * 0.008 / sqrt(rounds) for rounds in (8, 9)]
    assert widths[1] <= 0.012 < widths[0]


def test_scattered_rounds_get_a_larger_delta() -> None:
    # d = +-0.03 in turn: standard deviation 0.03 * sqrt(4 / 3), times 1.4.
    ranking = decide({"a": times(0, 0, 0, 0), "b": times(0.03, -0.03, 0.03, -0.03)})
    assert ranking.scatter == pytest.approx(0.03 * sqrt(4 / 3))
    assert ranking.delta_used == pytest.approx(1.4 * ranking.scatter)
    assert ranking.verdicts[0].delta_used == ranking.delta_used


def test_values_without_noise_are_decided_exactly() -> None:
    ranking = decide({"a": times(0, 0, 0), "b": times(0, 0, 0), "c": times(1, 1, 1)})
    assert kinds(ranking) == {("a", "b"): "equal", ("a", "c"): "better", ("b", "c"): "better"}


def test_after_the_last_round_no_contender_runs_again() -> None:
    ranking = decide({"a": dict.fromkeys(UNDECIDABLE, 1e6), "b": UNDECIDABLE})
    assert ranking.still_undecided
    assert ranking.rounds_run == 12
    assert rounds_wanted(ranking) == frozenset()


def test_only_contenders_undecided_against_the_leader_run_again() -> None:
    rounds = {"a": times(0, 0, 0), "b": times(0.004, 0.012, 0.02), "c": times(0.5, 0.51, 0.49)}
    ranking = decide(rounds)
    assert ranking.still_undecided == {"b"}
    assert rounds_wanted(ranking) == {"a", "b"}


def test_rounds_go_on_until_the_best_that_is_not_retired_is_decided_too() -> None:
    rounds = {
        "old": times(-0.5, -0.51, -0.49),
        "a": times(0, 0, 0),
        "b": times(0.004, 0.012, 0.02),
        "c": times(0.5, 0.51, 0.49),
    }
    everyone = decide(rounds)
    assert (everyone.leader, everyone.second, everyone.still_undecided) == ("old", None, frozenset())
    assert rounds_wanted(everyone) == frozenset()
    ranking = decide(rounds, DecisionPlan(retired=frozenset({"old"})))
    assert (ranking.leader, ranking.second, ranking.undecided_with_second) == ("old", "a", {"b"})
    assert rounds_wanted(ranking) == {"a", "b"}
    assert rounds_needed(ranking) > 0
    assert ranking.verdicts == everyone.verdicts


def test_where_the_leader_is_not_retired_nothing_changes() -> None:
    rounds = {"a": times(0, 0, 0), "old": times(0.5, 0.51, 0.49), "older": times(0.504, 0.52, 0.5)}
    ranking = decide(rounds, DecisionPlan(retired=frozenset({"old", "older"})))
    assert (ranking.second, ranking.undecided_with_second) == (None, frozenset())
    assert rounds_wanted(ranking) == frozenset()


def test_a_retired_leader_alone_with_one_other_needs_no_second_decision() -> None:
    rounds = {"old": times(0, 0, 0), "a": times(0.5, 0.51, 0.49)}
    ranking = decide(rounds, DecisionPlan(retired=frozenset({"old"})))
    assert (ranking.second, ranking.undecided_with_second) == ("a", frozenset())
    assert rounds_wanted(ranking) == frozenset()


def test_a_contender_with_a_failed_round_gets_another_round() -> None:
    rounds = {"a": times(0, 0, 0), "b": times(0.5, 0.51, 0.49), "c": {3: 2e6}}
    ranking = decide(rounds)
    against = ranking.between("c", "a")
    assert against is not None
    assert (against.rounds, against.kind) == (1, "undecided")
    assert rounds_wanted(ranking) == {"a", "c"}


def test_a_framework_without_a_round_is_undecided_and_last() -> None:
    ranking = decide({"a": {}, "b": times(0, 0, 0), "c": times(1, 1, 1)})
    assert (ranking.leader, ranking.order) == ("b", ("b", "c", "a"))
    assert ranking.between("a", "b") is None
    assert rounds_wanted(ranking) == {"a", "b"}


def test_all_contenders_run_in_the_first_round() -> None:
    ranking = decide({"a": {}, "b": {}})
    assert ranking.leader is None
    assert ranking.verdicts == ()
    assert rounds_wanted(ranking) == {"a", "b"}


def test_a_single_framework_runs_the_minimum_of_rounds() -> None:
    assert rounds_wanted(decide({"a": times(0)})) == {"a"}
    assert rounds_wanted(decide({"a": times(0, 0)})) == frozenset()


def test_the_leader_is_judged_on_common_rounds_only() -> None:
    # The machine slowed down after round 3; b ran only before. By mean time b is first, by pairs a is.
    rounds = {"a": times(0, 0, 0, 0.7, 0.7, 0.7), "b": times(0.1, 0.1, 0.1)}
    assert decide(rounds).leader == "a"


def test_the_errors_of_holms_procedure_agree_with_a_hand_calculation() -> None:
    # 0.0125 / 3 = 0.00417 > 0.001; 0.0125 / 2 = 0.00625 > 0.004; 0.0125 < 0.02.
    equal = np.full(3, 1 / 3)
    found = holm_errors(np.array([0.02, 0.001, 0.004]), np.full(3, 0.0125), equal)
    assert found == pytest.approx([np.nan, 0.0125 / 3, 0.00625], nan_ok=True)
    assert np.isnan(holm_errors(np.full(3, 0.005), np.full(3, 0.0125), equal)).all()


def test_a_rejected_hypothesis_leaves_its_part_to_the_others_in_proportion() -> None:
    # The first has half of the error, the others 3/10 and 2/10. 0.005 <= 0.02 / 2; then 0.011 <= 0.02 * 3/5; then 0.02 is all left.
    weights = np.array([0.5, 0.3, 0.2])
    found = holm_errors(np.array([0.005, 0.011, 0.015]), np.full(3, 0.02), weights)
    assert found == pytest.approx([0.01, 0.012, 0.02])
    # 0.013 > 0.02 * 3/5, so neither the second nor the third, which would be tested after it, is rejected.
    found = holm_errors(np.array([0.005, 0.013, 0.009]), np.full(3, 0.02), weights)
    assert found == pytest.approx([0.01, np.nan, np.nan], nan_ok=True)


def test_pairs_with_fewer_rounds_are_tested_at_the_error_of_these_rounds() -> None:
    # On the scale of its own error, the first is 0.4, the second 0.2: the second is rejected first, at half of its error.
    found = holm_errors(np.array([0.004, 0.0008]), np.array([0.01, 0.004]), np.full(2, 0.5))
    assert found == pytest.approx([0.01, 0.002])


def test_the_errors_of_all_looks_add_up_to_the_error_of_the_plan() -> None:
    for plan in (DecisionPlan(), DecisionPlan(least_rounds=3), DecisionPlan(error=0.1, most_rounds=30)):
        numbers = np.arange(plan.least_rounds, plan.most_rounds + 1)
        assert plan.error_at(numbers).sum() == pytest.approx(plan.error)
    assert DecisionPlan().error_at(np.array([1, 2, 3, 4, 6, 7, 12, 13])) * 320 == pytest.approx(
        [1, 1, 3, 2, 2, 1, 1, 1]
    )


def test_an_undecided_pair_gets_the_wider_interval_of_the_two_families() -> None:
    # Two differences (against c) are found and no equality. So the next difference would be tested at 15/16 %, and
    # the next equality by two one-sided tests at a third of that each, which is an interval with two thirds of it.
    rounds = {"a": times(0, 0, 0), "b": times(0.004, 0.012, 0.02), "c": times(0.5, 0.5, 0.5)}
    verdict = decide(rounds).between("a", "b")
    assert verdict is not None
    assert verdict.kind == "undecided"
    assert verdict.error == pytest.approx(0.05 * 3 / 16 * 2 / 3)


def test_exact_ties_are_ordered_by_name_whatever_the_order_of_the_rounds() -> None:
    # Sums of floats depend on their order; the order of frameworks must not.
    listed = {1: 900000.0000000001, 2: 900000.0000000001, 3: 900000.7365806564, 4: 900000.0}
    other = {1: 900000.0, 2: 900000.0, 3: 900000.0, 4: 900000.7365806564}
    one = decide({"a": listed, "b": other})
    assert decide({"b": dict(reversed(other.items())), "a": dict(reversed(listed.items()))}) == one


def test_a_fixed_protocol_decides_once_after_the_last_round() -> None:
    plan = DecisionPlan.single_look(5)
    assert rounds_wanted(decide({"a": times(0, 0, 0), "b": times(1, 1, 1)}, plan)) == {"a", "b"}
    done = decide({"a": times(*[0.0] * 5), "b": times(*[1.0] * 5)}, plan)
    assert kinds(done) == {("a", "b"): "better"}
    assert done.verdicts[0].error == 0.05
    assert rounds_wanted(done) == frozenset()


@pytest.mark.parametrize("wrong", [{"delta": 0.0}, {"error": 1.0}, {"least_rounds": 0}, {"most_rounds": 1}])
def test_a_plan_that_cannot_decide_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="plan"):
        DecisionPlan(**wrong)  # type: ignore[arg-type]


@given(comparisons)
def test_every_verdict_agrees_with_its_interval(rounds: Rounds) -> None:
    ranking = decide(rounds)
    for verdict in ranking.verdicts:
        assert verdict.low <= verdict.ratio <= verdict.high
        inside = 1 / (1 + verdict.delta_used) < verdict.low and verdict.high < 1 + verdict.delta_used
        if verdict.kind == "better":
            assert verdict.high < 1
        elif verdict.kind == "worse":
            assert verdict.low > 1
        elif verdict.kind == "equal":
            assert inside
        elif verdict.rounds >= 3:
            assert verdict.low <= 1 <= verdict.high
            assert not inside
        assert (verdict.rounds_still_needed > 0) == (verdict.kind == "undecided")


@given(comparisons)
def test_a_verdict_flips_when_the_pair_is_exchanged(rounds: Rounds) -> None:
    ranking = decide(rounds)
    for one in ranking.verdicts:
        other = ranking.between(one.b, one.a)
        assert other is not None
        assert other.kind == OPPOSITE[one.kind]
        assert other.ratio * one.ratio == pytest.approx(1)
        assert other.low * one.high == pytest.approx(1)


@given(some_rounds, some_rounds)
def test_swapping_the_names_swaps_the_verdict(x: dict[int, float], y: dict[int, float]) -> None:
    one = decide({"a": x, "b": y}).between("a", "b")
    other = decide({"a": y, "b": x}).between("a", "b")
    assert (one is None) == (other is None)
    if one and other:
        assert other.kind == OPPOSITE[one.kind]
        assert other.ratio == pytest.approx(1 / one.ratio)


@given(comparisons, st.integers(-20, 20))
def test_a_change_of_unit_changes_no_verdict(rounds: Rounds, power: int) -> None:
    scaled = {key: {r: t * 2.0**power for r, t in run.items()} for key, run in rounds.items()}
    one, other = decide(rounds), decide(scaled)
    for verdict in one.verdicts:
        again = other.between(verdict.a, verdict.b)
        assert again is not None
        assert (again.kind, again.rounds) == (verdict.kind, verdict.rounds)
        assert again.ratio == pytest.approx(verdict.ratio)


@given(comparisons, some_rounds)
def test_another_framework_never_changes_the_data_of_a_pair(rounds: Rounds, more: dict[int, float]) -> None:
    one, other = decide(rounds), decide({**rounds, "z": more})
    for verdict in one.verdicts:
        again = other.between(verdict.a, verdict.b)
        assert again is not None
        assert again.rounds == verdict.rounds
        assert again.ratio == pytest.approx(verdict.ratio)


@given(comparisons)
def test_the_order_in_which_rounds_and_contenders_are_listed_is_irrelevant(rounds: Rounds) -> None:
    listed = {key: dict(reversed(rounds[key].items())) for key in reversed(rounds)}
    assert decide(listed) == decide(rounds)


@given(tables, st.permutations(range(12)))
def test_the_order_of_rounds_that_all_finished_is_irrelevant(table: list[list[float]], numbers: list[int]) -> None:
    def listed(places: list[int]) -> Rounds:
        return {key: {place: row[place] for place in places} for key, row in zip("abcde", table, strict=False)}

    shuffled = {
        key: {r: row[place] for r, place in enumerate(numbers)} for key, row in zip("abcde", table, strict=False)
    }
    one, other = decide(listed(list(range(12)))), decide(shuffled)
    for verdict in one.verdicts:
        again = other.between(verdict.a, verdict.b)
        assert again is not None
        assert (again.ratio, again.low, again.high) == pytest.approx((verdict.ratio, verdict.low, verdict.high))


@given(tables, st.lists(st.floats(0.5, 2.0), min_size=12, max_size=12))
def test_a_machine_that_is_slower_in_some_rounds_changes_no_interval(
    table: list[list[float]], slower: list[float]
) -> None:
    def decided(factors: list[float]) -> Ranking:
        named = zip("abcde", table, strict=False)
        return decide({key: {r: row[r] * factor for r, factor in enumerate(factors)} for key, row in named})

    one, other = decided([1.0] * 12), decided(slower)
    for verdict in one.verdicts:
        again = other.between(verdict.a, verdict.b)
        assert again is not None
        assert (again.ratio, again.low, again.high) == pytest.approx(
            (verdict.ratio, verdict.low, verdict.high), abs=1e-7
        )


def test_a_pair_is_found_in_both_orders_and_nothing_else_is() -> None:
    found = decide({"a": {1: 1.0, 2: 1.1}, "b": {1: 2.0, 2: 2.1}, "c": {3: 1.0}})
    (pair,) = found.verdicts
    assert (pair.a, pair.b) == ("a", "b")
    assert found.between("a", "b") is pair
    assert found.between("b", "a") == pair.flipped()
    assert [found.between(*names) for names in (("a", "a"), ("a", "c"), ("c", "b"), ("a", "unknown"))] == [None] * 4
