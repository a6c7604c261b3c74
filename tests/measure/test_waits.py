"""The benchmark of waits: pairs of blocks, and what is pooled. The blocks themselves need real frameworks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks import waits
from benchmarks.waits import Waited, pairs, pooled, together


def test_a_steady_drift_cancels_in_a_pair() -> None:
    times = [1.02**place * (0.98 if place % 2 == 0 else 1.0) for place in range(9)]
    assert pairs(times) == pytest.approx([0.98] * 3)


def test_pooled_ratios_are_weighted_by_their_errors() -> None:
    found = pooled([(0.98, 0.01), (1.0, 0.02)])
    assert math.log(found.ratio) == pytest.approx(0.8 * math.log(0.98))
    assert found.error == pytest.approx(math.sqrt(1 / (1e4 + 2500)))
    assert found.count == 2


def _measured(step_s: float, shift: float, pairs: int = 40, scatter: float = 0.03) -> list[Waited]:
    """Return five frameworks that a wait shifts alike."""
    draw = np.random.default_rng(5)
    return [Waited(str(name), list(shift * np.exp(draw.normal(0, scatter, pairs))), step_s, 5) for name in range(5)]


def test_short_and_long_steps_are_pooled_by_themselves_and_half_a_percent_is_seen() -> None:
    short = _measured(0.05, 0.995, pairs=150)
    long = _measured(waits.FILLS_CACHES_S + 0.1, 1.01, pairs=150)
    shift, error, other, other_error = together([*short, *long])
    assert "up to 0.25 s" in shift.name
    assert "above 0.25 s" in other.name
    assert error.ok
    assert other_error.ok
    assert shift.value == pytest.approx(0.005, abs=2 * error.value)
    assert shift.value > 1.5 * error.value
    assert other.value == pytest.approx(0.01, abs=2 * other_error.value)


def test_too_few_pairs_are_said_to_see_too_little() -> None:
    _, error, *_ = together(_measured(0.05, 0.995, pairs=12, scatter=0.06))
    assert not error.ok


def test_a_kind_of_steps_that_nothing_measured_is_missed() -> None:
    *_, other, other_error = together(_measured(0.05, 1.0))
    assert not other.ok
    assert not other_error.ok


def test_a_shift_beyond_the_known_one_is_missed() -> None:
    shift, *_ = together(_measured(0.05, 0.96, pairs=150))
    assert not shift.ok
