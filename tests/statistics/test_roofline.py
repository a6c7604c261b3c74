"""The lower of a machine's two limits, and what caches change."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from steelyard.statistics import roofline
from steelyard.statistics.roofline import Limits

LIMITS = Limits(10**9, 10**8, 5 * 10**7, 2e11, 1e10, 2**20)


@pytest.mark.parametrize(
    ("changes", "bound", "roof"),
    [
        ({}, roofline.MEMORY, 1e11),
        ({"least_bytes": 5 * 10**7}, roofline.ARITHMETIC, 2e11),
        ({"held_bytes": 2**20}, roofline.CACHE, 2e11),
        ({"held_bytes": 2**20 + 1}, roofline.MEMORY, 1e11),
        ({"cache_bytes": 0}, roofline.MEMORY, 1e11),
    ],
)
def test_the_lower_limit_bounds(changes: dict[str, int], bound: str, roof: float) -> None:
    found = replace(LIMITS, **changes)
    assert found.bound == bound
    assert math.isclose(found.roof_flops, roof)
