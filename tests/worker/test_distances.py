"""How far the tensors of two runs are apart."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard_worker import distances


def test_a_state_is_compared_by_its_change_since_the_start_and_other_tensors_as_they_are() -> None:
    exact = {"after0/a": np.zeros(2), "after3/a": np.ones(2), "grad/a": np.ones(2), "loss3": np.array(1.0)}
    other = {
        "after0/a": np.ones(2),
        "after3/a": np.array([2.0, 5.0]),
        "grad/a": np.array([4.0, 5.0]),
        "loss3": np.array(3.0),
    }
    assert distances.of_run(other, exact) == {
        "after0/a": pytest.approx(2**0.5),
        "after3/a": 3.0,
        "grad/a": 5.0,
        "loss3": 2.0,
    }


def test_an_extra_step_starts_from_its_own_weights() -> None:
    run = {"after0/a": np.zeros(1), "adversarial/after0/a": np.full(1, 4.0), "adversarial/after1/a": np.full(1, 9.0)}
    assert distances.change(run, "adversarial/after1/a") == 5
    assert distances.start_of("isolated/after1/a.after2/b") == "isolated/after0/a.after2/b"


def test_distances_of_float32_are_computed_in_float64() -> None:
    large, small = np.array([1e8], np.float32), np.array([1], np.float32)
    assert distances.l2_distance(large, small) == 99_999_999
    assert distances.l2_norm(np.full(4, 3e38, np.float32)) == pytest.approx(6e38)
