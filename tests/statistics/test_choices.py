"""How likely a contender is the best one: exact for two, about one half for equals, right as often as it says; several goals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtr

from steelyard.statistics import choice
from steelyard.statistics.decision import Ranking, decide
from steelyard.statistics.looks import MARGIN_OVER_SCATTER

FAMILIES = 500
DRAWS = 4000


def rounds_of(logs) -> dict[str, dict[int, float]]:
    """Return costs from their logarithms, shape (contenders, rounds)."""
    return {f"c{place}": {n: math.exp(value) for n, value in enumerate(row)} for place, row in enumerate(logs)}


def said(logs, draws: int = DRAWS) -> dict[str, float]:
    return choice.probabilities(rounds_of(logs), f"c{logs.mean(axis=-1).argmin()}", draws)


def plain_bootstrap(logs) -> dict[str, float]:
    """Return what a bootstrap of whole rounds says: the share of resampled runs in which each contender is the best."""
    rounds = logs.shape[1]
    weights = np.random.default_rng(1).multinomial(rounds, np.full(rounds, 1 / rounds), 1000) / rounds
    best = (weights @ logs.T).argmin(axis=-1)
    return {f"c{place}": float(np.mean(best == place)) for place in range(len(logs))}


def confident(method, contenders, rounds, spread, scatter, least=0.9) -> tuple[float, float]:
    """Return how often a method gives a contender at least the probability `least`, and how often that one is the best."""
    draw = np.random.default_rng([contenders, rounds])
    right = []
    for _ in range(FAMILIES):
        truth = draw.normal(0, spread, contenders)
        # What a round has in common, such as a slower machine, is large and says nothing.
        drift, noise = draw.normal(0, 0.3, rounds), draw.normal(0, scatter / math.sqrt(2), (contenders, rounds))
        found = method(truth[:, None] + drift + noise)
        name, value = max(found.items(), key=lambda each: each[1])
        if value >= least:
            right.append(name == f"c{truth.argmin()}")
    return len(right) / FAMILIES, float(np.mean(right))


def test_for_two_contenders_it_is_that_of_students_t() -> None:
    logs = np.log([[10.0, 10.4, 10.1, 10.6], [10.3, 10.5, 10.6, 10.7]])
    found = said(logs, draws=100_000)
    gaps = logs[1] - logs[0]
    exact = stdtr(3, gaps.mean() / (gaps.std(ddof=1) / 2))
    assert found["c0"] == pytest.approx(exact, abs=0.005)
    assert found["c1"] == pytest.approx(1 - exact, abs=0.005)


@pytest.mark.parametrize("rounds", [2, 3, 5])
def test_of_two_equal_contenders_each_is_as_likely_and_no_value_is_favoured(rounds: int) -> None:
    draw = np.random.default_rng(rounds)
    values = np.array([said(draw.normal(0, 0.05, (2, rounds)))["c0"] for _ in range(FAMILIES)])
    assert values.mean() == pytest.approx(0.5, abs=0.05)
    # Evenly spread over 0 ... 1: each fifth of the range holds a fifth of the values.
    shares = np.histogram(values, bins=5, range=(0, 1))[0] / FAMILIES
    assert shares == pytest.approx(0.2, abs=0.06)


@pytest.mark.parametrize("contenders", [2, 5])
@pytest.mark.parametrize("rounds", [2, 3, 5])
@pytest.mark.parametrize(("spread", "scatter"), [(0.3, 0.08), (0.08, 0.08)])
def test_who_is_called_best_with_ninety_percent_is_the_best_at_least_as_often(
    contenders: int, rounds: int, spread: float, scatter: float
) -> None:
    share, right = confident(said, contenders, rounds, spread, scatter)
    assert share > 0.1
    assert right >= 0.9


def test_a_plain_bootstrap_of_few_rounds_is_surer_than_it_is_right() -> None:
    """Three rounds that agree leave a bootstrap no doubt: of equals, that happens to one pair in four."""
    draw = np.random.default_rng(5)
    equal = [draw.normal(0, 0.05, (2, 3)) for _ in range(FAMILIES)]
    certain = np.mean([max(plain_bootstrap(each).values()) >= 0.99 for each in equal])
    assert certain == pytest.approx(0.25, abs=0.04)
    assert np.mean([max(said(each).values()) >= 0.99 for each in equal]) < 0.04
    _, right = confident(plain_bootstrap, 5, 2, 0.08, 0.08)
    assert right < 0.88


def test_where_differences_are_far_below_the_noise_a_wrong_choice_costs_little() -> None:
    """No method can name the best of near equals; the one that is called the best is then within the margin of it."""
    draw, lost = np.random.default_rng(8), []
    for _ in range(FAMILIES):
        truth = draw.normal(0, 0.03, 3)
        found = said(truth[:, None] + draw.normal(0, 0.08 / math.sqrt(2), (3, 3)))
        name, value = max(found.items(), key=lambda each: each[1])
        if value >= 0.9:
            lost.append(truth[int(name[1:])] - truth.min())
    margin = math.log1p(MARGIN_OVER_SCATTER * 0.08)
    assert np.mean(np.array(lost) > 0) > 0.1
    assert np.mean(np.array(lost) < margin) > 0.99


def test_contenders_that_stopped_early_are_compared_on_the_rounds_they_share() -> None:
    """The machine became slower after two rounds, in which only one contender still ran."""
    costs = {
        "a": {0: 10.0, 1: 10.1, 2: 20.0, 3: 20.2},
        "b": {0: 10.2, 1: 10.4, 2: 20.5, 3: 20.6},
        "c": {0: 15.0, 1: 15.3},
    }
    found = choice.probabilities(costs, "a")
    assert found["c"] < 0.02
    assert sum(found.values()) == pytest.approx(1)


def test_one_round_gives_no_probability() -> None:
    assert choice.probabilities({"a": {0: 1.0}, "b": {0: 2.0}}, "a") == {}
    assert choice.probabilities({"a": {0: 1.0, 1: 1.1}, "b": {1: 2.0}}, "a") == {}


def test_values_without_scatter_leave_no_doubt() -> None:
    assert choice.probabilities({"a": {0: 1.0, 1: 1.0}, "b": {0: 2.0, 1: 2.0}}, "a") == {"a": 1.0, "b": 0.0}


def test_weights_are_exponents_of_a_geometric_mean() -> None:
    costs = {"speed": {1: 4.0, 2: 9.0, 3: 5.0}, "memory": {1: 1.0, 2: 4.0}}
    assert choice.combined(costs, {"speed": 1, "memory": 1}) == pytest.approx({1: 2.0, 2: 6.0})
    assert choice.combined(costs, {"speed": 2, "memory": 1}) == pytest.approx({1: 16 ** (1 / 3), 2: 324 ** (1 / 3)})
    assert choice.combined(costs, {"speed": 5}) == pytest.approx(costs["speed"])


@given(
    st.lists(st.tuples(st.floats(0.1, 1e3), st.floats(0.1, 1e3)), min_size=2, max_size=6),
    st.floats(0.1, 10),
    st.floats(1e-6, 1e9),
)
def test_the_unit_of_a_goal_does_not_change_who_costs_less(values, weight: float, unit: float) -> None:
    weights = {"speed": weight, "memory": 1.0}

    def ratio(scale: float) -> list[float]:
        found = [choice.combined({"speed": {1: a}, "memory": {1: b * scale}}, weights)[1] for a, b in values]
        return [each / found[0] for each in found]

    assert ratio(unit) == pytest.approx(ratio(1.0), rel=1e-9)


def ranking_of(**values) -> Ranking:
    steady = {key: {number: value * (1 + 0.001 * (number % 2)) for number in range(6)} for key, value in values.items()}
    return decide(steady)


def test_a_contender_that_is_worse_in_one_goal_and_no_better_in_the_other_is_beaten() -> None:
    speed = ranking_of(fast=10.0, lean=20.0, beaten=30.0, equal=10.0)
    memory = ranking_of(fast=300.0, lean=100.0, beaten=100.0, equal=200.0)
    assert choice.undominated(["fast", "lean", "beaten", "equal"], speed, memory) == ("lean", "equal")
    assert choice.undominated(["fast", "lean"], speed, memory) == ("fast", "lean")


def test_what_is_not_told_apart_is_not_beaten() -> None:
    noisy = decide({"a": {0: 10.0, 1: 14.0, 2: 9.0}, "b": {0: 12.0, 1: 11.0, 2: 13.0}})
    assert noisy.verdicts[0].kind == "undecided"
    assert choice.undominated(["a", "b"], noisy, ranking_of(a=1.0, b=2.0)) == ("a", "b")


def test_who_is_left_keeps_the_verdicts_of_all() -> None:
    full = ranking_of(a=10.0, b=12.0, c=14.0)
    left = choice.only(full, {"b", "c"})
    assert (left.order, left.leader) == (("b", "c"), "b")
    assert left.verdicts == tuple(each for each in full.verdicts if each.a != "a")
    assert left.still_undecided == frozenset()
    assert choice.only(full, set()).leader is None


def test_contenders_that_are_equal_to_the_last_digit_share_the_probability() -> None:
    costs = {"a": {0: 1.0, 1: 1.0}, "b": {0: 1.0, 1: 1.0}, "c": {0: 2.0, 1: 2.0}}
    assert choice.probabilities(costs, "a") == {"a": 0.5, "b": 0.5, "c": 0.0}
