"""Intervals of means and ratios, checked against hand calculations with a table of Student's t."""

from math import exp, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.statistics.intervals import (
    location_interval,
    ratio_interval,
    student_quantile,
)
from steelyard.statistics.unpaired import welch

rounds = st.dictionaries(st.integers(1, 12), st.floats(1e3, 1e9), max_size=12)


def test_the_quantiles_are_those_of_the_table() -> None:
    assert student_quantile(0.975, 2) == pytest.approx(4.303, abs=5e-4)
    assert student_quantile(0.975, 10) == pytest.approx(2.228, abs=5e-4)


def test_a_location_interval_is_the_t_interval_of_the_logs() -> None:
    # Logs 0 1 2: mean 1, sd 1, half width 4.303 / sqrt(3) = 2.484.
    found = location_interval([1.0, exp(1), exp(2)])
    assert found is not None
    assert found.processes == 3
    assert found.value_ns == pytest.approx(exp(1))
    assert found.low_ns == pytest.approx(exp(1 - 2.4843), rel=1e-3)
    assert found.high_ns == pytest.approx(exp(1 + 2.4843), rel=1e-3)


@pytest.mark.parametrize("few", [[], [5.0]])
def test_one_process_has_no_interval(few: list[float]) -> None:
    assert location_interval(few) is None


def test_a_ratio_interval_is_the_t_interval_of_the_log_ratios() -> None:
    # d = 0.04 0.06: sd 0.01414, over sqrt(2) is 0.01; t with one degree of freedom 12.706.
    found = ratio_interval({1: exp(0.04), 2: exp(0.06)}, {1: 1.0, 2: 1.0})
    assert found is not None
    assert found.high == pytest.approx(exp(0.05 + 0.12706), rel=1e-4)
    assert ratio_interval({1: 2.0}, {1: 1.0}) is None


def test_only_common_rounds_are_paired() -> None:
    found = ratio_interval({3: 4.0, 1: 2.0, 5: 9.0}, {1: 1.0, 2: 7.0, 3: 1.0})
    assert found is not None
    assert (found.rounds, found.value) == (2, pytest.approx(sqrt(8)))
    assert ratio_interval({1: 1.0}, {2: 1.0}) is None


def test_an_extremely_wide_interval_does_not_overflow() -> None:
    found = ratio_interval({1: 1.0, 2: 1e300}, {1: 1.0, 2: 1.0}, error=1e-6)
    assert found is not None
    assert 0 < found.low < found.high < float("inf")


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_a_value_that_is_not_positive_and_finite_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="above zero"):
        location_interval([1.0, value])


@given(rounds, rounds)
def test_the_ratio_of_b_to_a_is_the_inverse(a: dict[int, float], b: dict[int, float]) -> None:
    one, other = ratio_interval(a, b), ratio_interval(b, a)
    assert (one is None) == (other is None)
    if one and other:
        assert (other.value, other.low, other.high) == pytest.approx((1 / one.value, 1 / one.high, 1 / one.low))


@given(rounds)
def test_a_framework_against_itself_is_exactly_one(a: dict[int, float]) -> None:
    found = ratio_interval(a, a)
    assert found is None or found.value == 1


def test_two_runs_are_compared_by_welchs_interval() -> None:
    # Logs 0 1 2 (squared error 1/3, 2 degrees) and 0 2 (squared error 1, 1 degree): mean difference 0,
    # degrees of freedom (4/3)^2 / ((1/3)^2 / 2 + 1) = 1.684.
    found = welch([1.0, exp(1), exp(2)], [1.0, exp(2)])
    assert found is not None
    assert (found.mean, found.standard_error) == pytest.approx((0.0, sqrt(4 / 3)))
    assert (found.degrees_of_freedom, found.rounds) == (pytest.approx(16 / 9 / (1 / 18 + 1)), 2)
    assert welch([1.0, 2.0], [1.0]) is None
    assert welch([2.0, 2.0], [1.0, 1.0]).standard_error == 0
