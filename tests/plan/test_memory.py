"""What does not fit this machine's memory is refused before anything is made, with the batch that would fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from steelyard.catalog import workloads
from steelyard.errors import UserError
from steelyard.plan import memory, resolve
from steelyard.plan.options import Options

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.plan.run_plan import RunPlan

LINE = str(Path(__file__).parents[1] / "workloads")


@pytest.fixture
def plan_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], RunPlan]:
    """Plans for a network that keeps a million scalars of every sample, by batch size."""
    described = workloads.described
    monkeypatch.setattr(workloads, "described", lambda *them: replace(described(*them), activations=10**6))
    return lambda batch: resolve.plan(
        Options(workloads=("line",), frameworks=("fake",), workload_folders=(LINE,), batch=batch)
    )


def test_the_largest_batch_that_fits_is_named_and_fits(plan_of: Callable[[int], RunPlan]) -> None:
    room = memory.PROCESS_BYTES + 50 * 10**6
    with pytest.raises(
        UserError, match=r"line:small needs about 0\.6 GiB of memory at a batch of 16.*--batch 8 would fit"
    ):
        memory.check(plan_of(16), room)
    memory.check(plan_of(8), room)
    with pytest.raises(UserError):
        memory.check(plan_of(9), room)


def test_where_not_even_one_sample_fits_another_preset_is_asked_for(plan_of: Callable[[int], RunPlan]) -> None:
    with pytest.raises(UserError, match="no batch would fit; choose another preset"):
        memory.check(plan_of(16), 10**6)
