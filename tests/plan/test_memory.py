"""Cases that do not fit this machine's memory are rejected in advance, with the largest batch that fits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from steelyard.catalog import workloads
from steelyard.errors import UserError
from steelyard.plan import memory, resolve
from steelyard.plan.options import Options
from steelyard_worker.case import NO_OPTIMIZER

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.plan.run_plan import RunPlan

LINE = str(Path(__file__).parents[1] / "workloads")


@pytest.fixture
def plan_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], RunPlan]:
    """Return plans by batch size, for a network that stores a million activations per sample."""
    described = workloads.described
    monkeypatch.setattr(workloads, "described", lambda *them: replace(described(*them), activations=10**6))
    return lambda batch: resolve.plan(
        Options(workloads=("line",), frameworks=("fake",), workload_folders=(LINE,), batches=(batch,))
    )


def test_the_message_gives_the_largest_batch_that_fits(plan_of: Callable[[int], RunPlan]) -> None:
    free_bytes = memory.PROCESS_BYTES + 50 * 10**6
    with pytest.raises(
        UserError, match=r"line:small needs about 0\.6 GiB of memory with a batch of 16.*Use --batch 8 or less"
    ):
        memory.check(plan_of(16), free_bytes)
    memory.check(plan_of(8), free_bytes)
    with pytest.raises(UserError):
        memory.check(plan_of(9), free_bytes)


def test_an_inference_needs_no_gradients_and_less_for_activations(plan_of: Callable[[int], RunPlan]) -> None:
    (trained,) = plan_of(16).variants
    network = workloads.described(Path(LINE) / "line", trained.case.sizes)
    training = memory.needed_bytes(network, trained.case.optimizer, 16) - memory.PROCESS_BYTES
    inference = memory.needed_bytes(network, NO_OPTIMIZER, 16) - memory.PROCESS_BYTES
    parameters, inputs = 4 * 27, 4 * (8 + 1) * 16
    assert inference == parameters + 16 * 10**6 + inputs
    assert training == 3 * parameters + 6 * 16 * 10**6 + inputs


def test_if_no_batch_fits_the_message_suggests_another_preset(plan_of: Callable[[int], RunPlan]) -> None:
    with pytest.raises(UserError, match="No batch fits; choose another preset"):
        memory.check(plan_of(16), 10**6)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> Callable[..., RunPlan]:
    """Return plans of a network with 3 * 10**12 weights, which does not count its activations."""
    described = workloads.described
    monkeypatch.setattr(workloads, "described", lambda folder, sizes: described(folder, {**sizes, "features": 10**12}))
    return lambda: resolve.plan(Options(workloads=("line",), frameworks=("fake",), workload_folders=(LINE,)))


def test_weights_that_fit_no_memory_are_refused_although_activations_are_not_counted(
    large: Callable[[], RunPlan],
) -> None:
    with pytest.raises(UserError, match=r"line:small needs about [\d.]+ GiB of memory .* No batch fits"):
        memory.check(large(), 10**12)


def test_on_another_device_only_the_batch_is_counted(large: Callable[[], RunPlan]) -> None:
    def on_device(plan: RunPlan) -> RunPlan:
        (group,) = plan.groups
        (variant,) = group.variants
        case = replace(variant.case, settings=replace(variant.case.settings, device="cuda"))
        return replace(plan, groups=(replace(group, variants=(replace(variant, case=case),)),))

    plan = on_device(large())
    memory.check(plan, memory.PROCESS_BYTES + 16 * 4 * (10**12 + 1))
    with pytest.raises(UserError, match="Use --batch 8 or less"):
        memory.check(plan, memory.PROCESS_BYTES + 8 * 4 * (10**12 + 1))


def limited(limit: str, protocol: str = "largest-batch:3") -> RunPlan:
    return resolve.plan(
        Options(
            workloads=("line",),
            frameworks=("fake",),
            workload_folders=(LINE,),
            protocol=protocol,
            memory_limits=(limit,),
        )
    )


def test_a_memory_limit_must_be_free(plan_of: Callable[[int], RunPlan]) -> None:
    memory.check(limited("1 GB"), 10**9)
    with pytest.raises(
        UserError, match=r"line:small may use 0\.9 GiB of memory, but only 0\.9 GiB are free\. Choose a lower"
    ):
        memory.check(limited("1 GB", "sequential"), 10**9 - 1)


def test_the_batch_that_fits_by_estimate_is_the_largest(plan_of: Callable[[int], RunPlan]) -> None:
    (variant,) = plan_of(16).variants
    network = workloads.described(Path(LINE) / "line", variant.case.sizes)
    for limit in (memory.PROCESS_BYTES + 50 * 10**6, 10**9, 10**10):
        batch = memory.fitting_batch(network, variant.case.optimizer, limit)
        assert memory.needed_bytes(network, variant.case.optimizer, batch) <= limit
        assert memory.needed_bytes(network, variant.case.optimizer, batch + 1) > limit
    assert memory.fitting_batch(network, variant.case.optimizer, 1) == 0
