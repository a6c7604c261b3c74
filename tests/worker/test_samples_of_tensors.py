"""Certificates compare large tensors at fixed positions, the same in every framework and spread over the whole tensor."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from steelyard_worker.certify import sampled


@given(size=st.integers(1, 5000), most=st.integers(1, 600))
def test_a_sample_has_the_requested_size_and_contains_elements_of_the_tensor(size: int, most: int) -> None:
    found = sampled(np.arange(size), most)
    assert len(found) == min(size, most)
    assert np.all(np.diff(found) > 0)


def test_without_a_limit_the_whole_tensor_is_returned() -> None:
    assert sampled(np.zeros((3, 4)), 0).shape == (3, 4)
    assert sampled(np.zeros((3, 4)), 12).shape == (3, 4)


def test_a_sample_covers_every_part_of_a_tensor() -> None:
    places = sampled(np.arange(10**7), 2**17)
    counts, _ = np.histogram(places, bins=1000, range=(0, 10**7))
    assert counts.min() > 0.9 * 131 and counts.max() < 1.1 * 132


def test_a_single_row_that_differs_is_detected() -> None:
    right, wrong = np.zeros((4096, 1024)), np.zeros((4096, 1024))
    wrong[77] = 1
    assert not np.array_equal(sampled(right, 2**17), sampled(wrong, 2**17))
