"""The sequential rule: verdicts calculated by hand, and properties that hold for any rounds."""

from math import exp, log, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.statistics.calibration import NoiseFloor
from steelyard.statistics.decision import DecisionPlan, Ranking, decide, rounds_wanted
from steelyard.statistics.intervals import student_quantile
from steelyard.statistics.verdicts import OPPOSITE, holm_levels

FLOOR = NoiseFloor(s_d0=0.008, degrees_of_freedom=8, rounds=9)
Rounds = dict[str, dict[int, float]]

some_rounds = st.dictionaries(st.integers(1, 12), st.floats(9e5, 1.2e6), max_size=12)
comparisons = st.dictionaries(st.sampled_from("abcde"), some_rounds, min_size=2)


def times(*logs: float) -> dict[int, float]:
    return {number: 1e6 * exp(value) for number, value in enumerate(logs, start=1)}


def kinds(ranking: Ranking) -> dict[tuple[str, str], str]:
    return {(v.a, v.b): v.kind for v in ranking.verdicts}


def test_a_clear_difference_is_decided_after_three_rounds() -> None:
    # d = 0.042 0.05 0.058: own sd 0.008 as the floor's, ten degrees of freedom, t(1 - 0.00625) = 3.04:
    # half width 3.04 * 0.008 / sqrt(3) = 0.0140.
    ranking = decide({"a": times(0, 0, 0), "b": times(0.042, 0.05, 0.058)}, FLOOR)
    verdict = ranking.between("b", "a")
    assert verdict is not None
    assert (verdict.kind, verdict.rounds, verdict.rounds_still_needed) == ("worse", 3, 0)
    assert verdict.ratio == pytest.approx(exp(0.05))
    assert (log(verdict.low), log(verdict.high)) == pytest.approx((0.036, 0.064), abs=1e-4)
    assert (ranking.leader, ranking.order) == ("a", ("a", "b"))
    assert rounds_wanted(ranking) == frozenset()


def test_two_rounds_are_never_enough() -> None:
    ranking = decide({"a": times(0, 0), "b": times(0.5, 0.5)}, FLOOR)
    assert kinds(ranking) == {("a", "b"): "undecided"}
    assert ranking.still_undecided == {"b"}
    assert rounds_wanted(ranking) == {"a", "b"}


def test_close_frameworks_are_equal_within_delta() -> None:
    # d = -0.002 0.002 0: half width at most 0.0140, well inside ln 1.02 = 0.0198.
    ranking = decide({"a": times(-0.002, 0.002, 0), "b": times(0, 0, 0)}, FLOOR)
    assert [verdict.kind for verdict in ranking.verdicts] == ["equal"]
    assert ranking.delta_used == 0.02


def test_a_difference_within_delta_is_called_equal() -> None:
    quiet = NoiseFloor(s_d0=0.001, degrees_of_freedom=8, rounds=9)
    ranking = decide({"a": times(0, 0, 0), "b": times(0.009, 0.01, 0.011)}, quiet)
    verdict = ranking.between("a", "b")
    assert verdict is not None
    assert verdict.kind == "equal"
    assert verdict.high < 1


def test_an_undecided_pair_has_an_estimate_of_the_rounds_still_needed() -> None:
    # dbar = 0.012, s about 0.008, distance max(0.0198 - 0.012, 0.012) = 0.012; with t near 2.9 after a few
    # more rounds, (2.9 * 0.008 / 0.012)^2 = 3.7 rounds, so one more.
    ranking = decide({"a": times(0, 0, 0), "b": times(0.004, 0.012, 0.02)}, FLOOR)
    verdict = ranking.between("a", "b")
    assert verdict is not None
    assert (verdict.kind, verdict.rounds_still_needed) == ("undecided", 1)
    assert verdict.low < 1 < verdict.high


def test_the_estimated_number_of_rounds_is_the_smallest_that_is_enough() -> None:
    # d = +-0.03 in turn: mean 0, own variance 9e-4 * 4/3 = 12e-4 against a floor of 0.64e-4, so the floor's
    # eight degrees of freedom count as 0.427; the half width must come down to ln 1.02.
    rounds = {"a": times(0, 0, 0, 0), "b": times(0.03, -0.03, 0.03, -0.03)}
    verdict = decide(rounds, FLOOR).verdicts[0]
    variance = (8 * (0.64e-4 / 12e-4) * 0.64e-4 + 3 * 12e-4) / (8 * (0.64e-4 / 12e-4) + 3)

    def half_width(more: int) -> float:
        return student_quantile(1 - 0.00625, 8 * 0.64 / 12 + 3 + more) * sqrt(variance / (4 + more))

    needed = verdict.rounds_still_needed
    assert half_width(needed) <= log(1.02) < half_width(needed - 1)


def test_a_noisy_machine_gets_a_larger_delta() -> None:
    ranking = decide({"a": times(0, 0, 0), "b": times(0, 0, 0)}, NoiseFloor(0.02, 8, 9))
    assert ranking.delta_used == pytest.approx(0.028)
    assert ranking.verdicts[0].delta_used == pytest.approx(0.028)


def test_values_without_noise_are_decided_exactly() -> None:
    still = NoiseFloor(0.0, 8, 9)
    ranking = decide({"a": times(0, 0, 0), "b": times(0, 0, 0), "c": times(1, 1, 1)}, still)
    assert kinds(ranking) == {("a", "b"): "equal", ("a", "c"): "better", ("b", "c"): "better"}


def test_after_the_last_round_no_contender_runs_again() -> None:
    wild = {number: 1e6 * exp(0.1 * (-1) ** number) for number in range(1, 13)}
    ranking = decide({"a": dict.fromkeys(wild, 1e6), "b": wild}, FLOOR)
    assert ranking.still_undecided
    assert ranking.rounds_run == 12
    assert rounds_wanted(ranking) == frozenset()


def test_only_contenders_undecided_against_the_leader_run_again() -> None:
    rounds = {"a": times(0, 0, 0), "b": times(0.004, 0.012, 0.02), "c": times(0.5, 0.51, 0.49)}
    ranking = decide(rounds, FLOOR)
    assert ranking.still_undecided == {"b"}
    assert rounds_wanted(ranking) == {"a", "b"}


def test_a_contender_with_a_failed_round_gets_another_round() -> None:
    rounds = {"a": times(0, 0, 0), "b": times(0.5, 0.51, 0.49), "c": {1: 2e6, 3: 2e6}}
    ranking = decide(rounds, FLOOR)
    against = ranking.between("c", "a")
    assert against is not None
    assert (against.rounds, against.kind) == (2, "undecided")
    assert rounds_wanted(ranking) == {"a", "c"}


def test_a_framework_without_a_round_is_undecided_and_last() -> None:
    ranking = decide({"a": {}, "b": times(0, 0, 0), "c": times(1, 1, 1)}, FLOOR)
    assert (ranking.leader, ranking.order) == ("b", ("b", "c", "a"))
    assert ranking.between("a", "b") is None
    assert rounds_wanted(ranking) == {"a", "b"}


def test_all_contenders_run_in_the_first_round() -> None:
    ranking = decide({"a": {}, "b": {}}, FLOOR)
    assert ranking.leader is None
    assert ranking.verdicts == ()
    assert rounds_wanted(ranking) == {"a", "b"}


def test_a_single_framework_runs_the_minimum_of_rounds() -> None:
    assert rounds_wanted(decide({"a": times(0, 0)}, FLOOR)) == {"a"}
    assert rounds_wanted(decide({"a": times(0, 0, 0)}, FLOOR)) == frozenset()


def test_the_leader_is_judged_on_common_rounds_only() -> None:
    # The machine slowed down after round 3; b ran only before. By mean time b is first, by pairs a is.
    rounds = {"a": times(0, 0, 0, 0.7, 0.7, 0.7), "b": times(0.1, 0.1, 0.1)}
    assert decide(rounds, FLOOR).leader == "a"


def test_holm_levels_agree_with_a_hand_calculation() -> None:
    # 0.0125 / 3 = 0.00417 > 0.001; 0.0125 / 2 = 0.00625 > 0.004; 0.0125 < 0.02.
    p, q, r = (frozenset(pair) for pair in ("ab", "ac", "bc"))
    assert holm_levels({r: 0.02, p: 0.001, q: 0.004}, 0.0125, 3) == pytest.approx({p: 0.0125 / 3, q: 0.00625})
    assert holm_levels({p: 0.005, q: 0.005, r: 0.005}, 0.0125, 3) == {}


def test_an_undecided_pair_gets_the_wider_interval_of_the_two_families() -> None:
    # Two differences (against c) are found and no equality. So the level of the pair a, b is 0.0125 / 1 among the
    # differences and 0.0125 / 3 among the equalities.
    rounds = {"a": times(0, 0, 0), "b": times(0.004, 0.012, 0.02), "c": times(0.5, 0.5, 0.5)}
    verdict = decide(rounds, FLOOR).between("a", "b")
    assert verdict is not None
    assert verdict.kind == "undecided"
    assert verdict.error == pytest.approx(0.0125 / 3)


def test_exact_ties_are_ordered_by_name_whatever_the_order_of_the_rounds() -> None:
    # Sums of floats depend on their order; the order of frameworks must not.
    listed = {1: 900000.0000000001, 2: 900000.0000000001, 3: 900000.7365806564, 4: 900000.0}
    other = {1: 900000.0, 2: 900000.0, 3: 900000.0, 4: 900000.7365806564}
    one = decide({"a": listed, "b": other}, FLOOR)
    assert decide({"b": dict(reversed(other.items())), "a": dict(reversed(listed.items()))}, FLOOR) == one


def test_a_fixed_protocol_decides_once_after_the_last_round() -> None:
    plan = DecisionPlan.single_look(5)
    assert plan == DecisionPlan(delta=0.02, error=0.05, least_rounds=5, most_rounds=5)
    assert rounds_wanted(decide({"a": times(0, 0, 0), "b": times(1, 1, 1)}, FLOOR, plan)) == {"a", "b"}
    done = decide({"a": times(*[0.0] * 5), "b": times(*[1.0] * 5)}, FLOOR, plan)
    assert kinds(done) == {("a", "b"): "better"}
    assert done.verdicts[0].error == 0.05
    assert rounds_wanted(done) == frozenset()


@pytest.mark.parametrize("wrong", [{"delta": 0.0}, {"error": 1.0}, {"least_rounds": 0}, {"most_rounds": 2}])
def test_a_plan_that_cannot_decide_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="plan"):
        DecisionPlan(**wrong)  # type: ignore[arg-type]


@given(comparisons)
def test_every_verdict_agrees_with_its_interval(rounds: Rounds) -> None:
    ranking = decide(rounds, FLOOR)
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
    ranking = decide(rounds, FLOOR)
    for one in ranking.verdicts:
        other = ranking.between(one.b, one.a)
        assert other is not None
        assert other.kind == OPPOSITE[one.kind]
        assert other.ratio * one.ratio == pytest.approx(1)
        assert other.low * one.high == pytest.approx(1)


@given(some_rounds, some_rounds)
def test_swapping_the_names_swaps_the_verdict(x: dict[int, float], y: dict[int, float]) -> None:
    one = decide({"a": x, "b": y}, FLOOR).between("a", "b")
    other = decide({"a": y, "b": x}, FLOOR).between("a", "b")
    assert (one is None) == (other is None)
    if one and other:
        assert other.kind == OPPOSITE[one.kind]
        assert other.ratio == pytest.approx(1 / one.ratio)


@given(comparisons, st.integers(-20, 20))
def test_a_change_of_unit_changes_no_verdict(rounds: Rounds, power: int) -> None:
    scaled = {key: {r: t * 2.0**power for r, t in run.items()} for key, run in rounds.items()}
    one, other = decide(rounds, FLOOR), decide(scaled, FLOOR)
    for verdict in one.verdicts:
        again = other.between(verdict.a, verdict.b)
        assert again is not None
        assert (again.kind, again.rounds) == (verdict.kind, verdict.rounds)
        assert again.ratio == pytest.approx(verdict.ratio)


@given(comparisons, some_rounds)
def test_another_framework_never_changes_the_data_of_a_pair(rounds: Rounds, more: dict[int, float]) -> None:
    one, other = decide(rounds, FLOOR), decide({**rounds, "z": more}, FLOOR)
    for verdict in one.verdicts:
        again = other.between(verdict.a, verdict.b)
        assert again is not None
        assert again.rounds == verdict.rounds
        assert again.ratio == pytest.approx(verdict.ratio)


@given(comparisons, st.permutations(range(1, 13)))
def test_the_order_of_rounds_and_of_names_is_irrelevant(rounds: Rounds, numbers: list[int]) -> None:
    listed = {key: dict(reversed(rounds[key].items())) for key in reversed(rounds)}
    assert decide(listed, FLOOR) == decide(rounds, FLOOR)
    renumbered = {key: {numbers[r - 1]: t for r, t in run.items()} for key, run in rounds.items()}
    one, other = decide(rounds, FLOOR), decide(renumbered, FLOOR)
    for verdict in one.verdicts:
        again = other.between(verdict.a, verdict.b)
        assert again is not None
        assert (again.ratio, again.low) == pytest.approx((verdict.ratio, verdict.low))
