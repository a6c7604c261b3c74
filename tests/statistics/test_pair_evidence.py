"""What the rounds say about a pair: its own scatter, that of the other contenders, and how the two are pooled."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from steelyard.statistics.intervals import student_quantile
from steelyard.statistics.pair_evidence import pair_evidence

NONE = float("nan")
tables = st.tuples(st.integers(2, 6), st.integers(2, 8)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.floats(-1, 1))
)


def residual_squares(logs):
    """Return the sum of squares that means of contenders and of rounds leave, and its degrees of freedom."""
    left = logs - logs.mean(0) - logs.mean(1, keepdims=True) + logs.mean()
    return (left**2).sum(), (logs.shape[0] - 1) * (logs.shape[1] - 1)


def test_two_contenders_have_their_own_scatter_only() -> None:
    found = pair_evidence(np.array([[0.04, 0.05, 0.09], [0.0, 0.0, 0.0]]))
    assert (found.mean[0], found.rounds[0], found.freedom[0]) == (pytest.approx(0.06), 3, 2)
    assert found.own_variance[0] == found.variance[0] == pytest.approx(0.0007)  # (4 + 1 + 9) e-4 / 2
    assert found.half_width(0.05)[0] == pytest.approx(student_quantile(0.975, 2) * sqrt(0.0007 / 3))
    assert found.p_value(found.half_width(0.05))[0] == pytest.approx(0.05)


@given(tables)
def test_own_and_other_scatter_are_parts_of_the_residual_of_all(logs) -> None:
    found = pair_evidence(logs)
    squares, freedom = residual_squares(logs)
    parts = (found.own_variance * found.own_freedom + found.others_variance * found.others_freedom) / 2
    assert parts == pytest.approx(squares, abs=1e-9)
    assert (found.own_freedom + found.others_freedom == freedom).all()


def test_the_others_count_as_three_degrees_of_freedom_at_most() -> None:
    logs = np.random.default_rng(0).normal(size=(5, 12))
    weights = [
        pair_evidence(logs[:contenders, :rounds]).others_weight[0]
        for contenders, rounds in ((2, 12), (3, 2), (5, 2), (3, 3), (4, 3), (5, 12))
    ]
    assert weights == [0, 1, 1.5, 2, 3, 3]


def test_a_contender_counts_up_to_its_first_missing_round() -> None:
    logs = np.random.default_rng(1).normal(size=(4, 6))
    logs[2, 3:] = NONE
    logs[3, 3] = NONE
    found = pair_evidence(logs)
    first_three, _ = residual_squares(logs[:, :3])
    assert (found.rounds[0], found.others_freedom[0]) == (6, 4)
    own_of_three = pair_evidence(logs[:2, :3]).own_variance[0]
    assert found.others_variance[0] == pytest.approx(2 * (first_three - own_of_three * 2 / 2) / 4)
    # The pair of the last two has three common rounds, in which both others ran.
    assert (found.rounds[5], found.others_freedom[5]) == (3, 4)


def test_a_very_noisy_contender_does_not_hide_a_difference_between_two_others_for_long() -> None:
    # The first two differ by 0.05 with a scatter of 0.01, the third scatters by a hundred times as much.
    around = np.array([1.0, -1.0, 0.5, -0.5, 0.0])
    logs = np.stack([0.05 + 0.007 * around, -0.007 * around, np.roll(around, 2)])
    early, late = pair_evidence(logs[:, :4]), pair_evidence(logs)
    assert early.half_width(0.01)[0] > 0.3
    assert late.half_width(0.01)[0] == pytest.approx(
        student_quantile(1 - 0.01 * 0.25 / 2, 4) * sqrt(late.own_variance[0] / 5)
    )


def test_unknown_scatter_gives_no_p_value_and_the_widest_interval() -> None:
    found = pair_evidence(np.array([[0.1, NONE], [0.2, NONE], [NONE, NONE]]))
    assert found.mean[0] == pytest.approx(-0.1)
    assert np.isnan(found.mean[1:]).all()
    assert (found.p_value(np.abs(found.mean)) == 1).all()
    assert (found.half_width(0.05) == 300).all()


@given(tables, st.floats(0.01, 100))
def test_noisier_rounds_with_larger_differences_are_the_same_evidence(logs, factor) -> None:
    """No noise is assumed: only the ratio of difference and scatter counts."""
    logs = np.round(logs, 3)
    one, other = pair_evidence(logs), pair_evidence(factor * logs)
    assert other.half_width(0.01) == pytest.approx(np.minimum(factor * one.half_width(0.01), 300), rel=1e-6, abs=1e-9)


@given(st.integers(2, 4), st.integers(1, 5), st.randoms(use_true_random=False))
def test_comparisons_judged_together_are_judged_as_alone(contenders, rounds, random) -> None:
    logs = np.array([random.uniform(-1, 1) for _ in range(6 * contenders * rounds)]).reshape(6, contenders, rounds)
    logs[logs > 0.7] = NONE
    together = pair_evidence(logs)
    for place, alone in enumerate(map(pair_evidence, logs)):
        for name in ("mean", "rounds", "variance", "freedom"):
            assert getattr(together, name)[place] == pytest.approx(getattr(alone, name), nan_ok=True)
