"""The noise of a certificate's runs: seeded, relative, and in the array's own precision."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard_worker.certify import _perturbation, _varied


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_perturbed_array_has_the_same_precision(dtype: str) -> None:
    assert _perturbation(4, 1e-3)("weights/a", np.ones(5, dtype)).dtype == dtype


def test_noise_has_the_requested_size_and_differs_for_every_number_and_name() -> None:
    array = np.full(10_000, 3.0)
    changed = [_perturbation(number, 1e-3)(name, array) for number, name in ((1, "a"), (2, "a"), (1, "b"))]
    for each in changed:
        assert np.std(each / array - 1) == pytest.approx(1e-3, rel=0.05)
    assert not np.array_equal(changed[0], changed[1])
    assert not np.array_equal(changed[0], changed[2])
    np.testing.assert_array_equal(changed[0], _perturbation(1, 1e-3)("a", array))


@pytest.mark.parametrize(("number", "array"), [(0, np.ones(3)), (1, np.arange(3))])
def test_the_unperturbed_run_and_integers_do_not_change(number: int, array: np.ndarray) -> None:
    np.testing.assert_array_equal(_perturbation(number, 1e-3)("a", array), array)


@pytest.mark.parametrize(("distinct", "rows"), [(0, [0, 1, 2, 3, 4]), (2, [0, 1, 0, 1, 0]), (7, [0, 1, 2, 3, 4])])
def test_the_first_samples_fill_a_batch_with_the_same_noise_in_every_copy(distinct: int, rows: list[int]) -> None:
    batch = {"point": np.arange(5.0)[:, None] + np.ones((5, 3)), "label": np.arange(5)}
    found = _varied(batch, "input0", _perturbation(4, 1e-3), distinct)
    few = _varied({name: array[: distinct or 5] for name, array in batch.items()}, "input0", _perturbation(4, 1e-3), 0)
    assert found["label"].tolist() == rows
    np.testing.assert_array_equal(found["point"], few["point"][rows])
    assert not np.array_equal(found["point"], batch["point"][rows])
