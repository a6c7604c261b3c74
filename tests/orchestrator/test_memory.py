"""What does not fit this machine's memory is refused before anything is made, with the batch that would fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from steelyard.catalog import workloads
from steelyard.errors import UserError
from steelyard.plan import memory
from steelyard.plan import resolve as plan
from steelyard.plan.options import Options

LINE = str(Path(__file__).parents[1] / "workloads")


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> plan.RunPlan:
    """A network that keeps a million scalars of every sample, at a batch of 16."""
    described = workloads.Workload.network
    monkeypatch.setattr(workloads.Workload, "network", lambda *them: replace(described(*them), activations=10**6))
    return plan.plan(Options(workloads=("line",), frameworks=("fake",), workload_folders=(LINE,)))


def test_the_largest_batch_that_fits_is_named_and_fits(planned: plan.RunPlan) -> None:
    room = memory.PROCESS_BYTES + 50 * 10**6
    with pytest.raises(
        UserError, match=r"line:small needs about 0\.6 GiB of memory at a batch of 16.*--batch 8 would fit"
    ):
        memory.check(planned, room)
    memory.check(replace(planned, options=replace(planned.options, batch=8)), room)
    with pytest.raises(UserError):
        memory.check(replace(planned, options=replace(planned.options, batch=9)), room)


def test_where_not_even_one_sample_fits_another_preset_is_asked_for(planned: plan.RunPlan) -> None:
    with pytest.raises(UserError, match="no batch would fit; choose another preset"):
        memory.check(planned, 10**6)


def test_a_machine_that_does_not_tell_is_not_judged(planned: plan.RunPlan) -> None:
    memory.check(planned, 0)
