"""Knobs of pipelines, and of blocks that are computed again: where they have an effect, and why they cannot be used."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from steelyard.errors import UserError
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard_worker.strategy import divisor_of

if TYPE_CHECKING:
    from steelyard.plan.run_plan import Group


def planned(workload: str = "vgg16:tiny", **more: object) -> Group:
    """Return the only group of a plan of PyTorch."""
    options = Options(workloads=(workload,), frameworks=("pytorch",), threads=(1,))
    (group,) = resolve.plan(replace(options, **more)).groups  # type: ignore[arg-type]
    return group


def of_each(group: Group, knob: str) -> list[tuple[str, object]]:
    return [(each.case.strategy, each.case.settings.knobs[knob]) for each in group.variants]


def test_micro_batches_are_an_axis_of_pipelines_only() -> None:
    group = planned(strategies=("single:1", "gpipe:2"), knobs=("micro_batches=2,4,8",), batches=(16,))
    assert of_each(group, "micro_batches") == [("single:1", 4), ("gpipe:2", 2), ("gpipe:2", 4), ("gpipe:2", 8)]
    assert [each.title for each in group.variants][:2] == ["PyTorch, single:1", "PyTorch, micro_batches 2, gpipe:2"]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (
            {"strategies": ("ddp:2",), "knobs": ("micro_batches=2",)},
            "micro_batches has an effect in pipelines only, and ddp is none",
        ),
        ({"knobs": ("micro_batches=2",)}, "micro_batches has an effect in pipelines only, and single is none"),
        (
            {"strategies": ("gpipe:2",), "knobs": ("micro_batches=8",), "batches": (12,)},
            "A batch of 12 cannot be divided into 8 micro-batches",
        ),
        ({"strategies": ("gpipe:2",), "knobs": ("recomputation=blocks",)}, "the cut goes through blocks"),
        (
            {"workload": "lstm-imdb:tiny", "knobs": ("recomputation=blocks",)},
            "lstm-imdb:tiny has no blocks to compute again",
        ),
        (
            {"workload": "vgg16:cifar10-tl-frozen", "knobs": ("recomputation=blocks",), "synthetic": True},
            "has no blocks to compute again",
        ),
    ],
)
def test_a_knob_that_cannot_be_used_says_why(more: dict[str, object], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        planned(**more)  # type: ignore[arg-type]


def test_blocks_may_be_computed_again_by_ranks_that_share_a_batch() -> None:
    group = planned(strategies=("ddp:2",), knobs=("recomputation=none,blocks",), batches=(8,))
    assert of_each(group, "recomputation") == [("ddp:2", "none"), ("ddp:2", "blocks")]


def test_a_batch_of_a_pipeline_is_a_multiple_of_parts_and_micro_batches() -> None:
    knobs = {"micro_batches": 4}
    assert divisor_of("gpipe:3", knobs, "pipeline") == 12
    assert divisor_of("ddp:3", knobs, "processes") == 3
    assert divisor_of("single", {}, "single") == 1


def test_what_a_strategy_sets_is_not_named_beside_it() -> None:
    """JAX's `mesh` sets how recurrences run, in networks without any as well."""
    options = Options(workloads=("vgg16:tiny",), frameworks=("jax",), threads=(1,), strategies=("single:1", "mesh:2"))
    (group,) = resolve.plan(options).groups
    assert of_each(group, "recurrence") == [("single:1", "auto"), ("mesh:2", "deferred")]
    assert [each.title for each in group.variants] == ["JAX, single:1", "JAX, mesh:2"]
    assert [each.settings for each in group.variants] == ["", ""]
    assert not any("recurrence" in each.name for each in group.variants)


def test_what_a_strategy_sets_is_named_where_other_cases_differ_in_it() -> None:
    options = Options(
        workloads=("lstm-imdb:tiny",), frameworks=("jax",), threads=(1,), strategies=("single:1", "mesh:2")
    )
    (group,) = resolve.plan(replace(options, knobs=("recurrence=auto,scan",))).groups
    assert [each.title for each in group.variants] == [
        "JAX, recurrence auto, single:1",
        "JAX, mesh:2",
        "JAX, recurrence scan, single:1",
    ]
