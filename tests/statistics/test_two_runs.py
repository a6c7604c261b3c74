"""The comparison of two runs: Welch's interval on the log scale, checked against a hand calculation."""

from __future__ import annotations

from math import exp, log, sqrt

import pytest

from steelyard.statistics.unpaired import welch


def test_the_estimate_is_welchs() -> None:
    # Logs 0 1 2 (variance 1, over 3) and 4 8 (variance 8, over 2): 1/3 + 4 = 13/3.
    # Degrees of freedom (13/3)^2 / ((1/3)^2 / 2 + 4^2 / 1) = 18.778 / 16.056.
    found = welch([1.0, exp(1), exp(2)], [exp(4), exp(8)])
    assert found is not None
    assert found.mean == pytest.approx(1 - 6)
    assert found.standard_error == pytest.approx(sqrt(13 / 3))
    assert found.degrees_of_freedom == pytest.approx((13 / 3) ** 2 / ((1 / 3) ** 2 / 2 + 16))
    assert found.rounds == 2


def test_both_runs_count_alike() -> None:
    a, b = [1.0, 1.1, 1.3, 1.2], [2.0, 2.5, 2.1]
    one, other = welch(a, b), welch(b, a)
    assert one is not None
    assert other is not None
    assert one.mean == pytest.approx(-other.mean)
    assert one.standard_error == pytest.approx(other.standard_error)
    assert one.degrees_of_freedom == pytest.approx(other.degrees_of_freedom)
    assert one.rounds == other.rounds == 3


def test_runs_without_scatter_have_no_error() -> None:
    found = welch([2.0, 2.0], [5.0, 5.0, 5.0])
    assert found is not None
    assert (found.mean, found.standard_error) == (pytest.approx(log(2 / 5)), 0.0)
    assert found.rounds == 2


@pytest.mark.parametrize(("a", "b"), [([1.0], [1.0, 2.0]), ([1.0, 2.0], [1.0]), ([], [])])
def test_a_run_with_fewer_than_two_processes_has_no_interval(a: list[float], b: list[float]) -> None:
    assert welch(a, b) is None
    assert welch([1.0, 2.0], [1.0, 2.0]) is not None
