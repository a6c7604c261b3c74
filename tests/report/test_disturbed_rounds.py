"""The warning about disturbed rounds: reasons that differ in one figure alone are one reason with a range."""

from __future__ import annotations

import pytest

from steelyard.report import warnings


@pytest.mark.parametrize(
    ("reasons", "said"),
    [
        ({"other processes used 0.05 cores", "other processes used 0.6 cores", "other processes used 0.07 cores"},
         ["other processes used 0.05 to 0.6 cores"]),
        ({"the hypervisor withheld 9.2% of the CPU time", "the hypervisor withheld 11.2% of the CPU time"},
         ["the hypervisor withheld 9.2% to 11.2% of the CPU time"]),
        ({"0.5 MiB of memory were swapped", "12.5 MiB of memory were swapped"}, ["0.5 to 12.5 MiB of memory were swapped"]),
        ({"on node b2 other processes used 0.1 cores", "on node b3 other processes used 0.1 cores"},
         ["on node b2 other processes used 0.1 cores", "on node b3 other processes used 0.1 cores"]),
        ({"the GPU was throttled: heat"}, ["the GPU was throttled: heat"]),
    ],
)  # fmt: skip
def test_figures_of_equal_reasons_are_a_range(reasons: set[str], said: list[str]) -> None:
    assert warnings._in_ranges(reasons) == said
