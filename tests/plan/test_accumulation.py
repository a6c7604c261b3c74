"""Batches that are computed in parts: an axis of one group, cases with their old ids, and why a number of parts cannot be used."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from steelyard.catalog import frameworks, workloads
from steelyard.certificates import certification
from steelyard.cli import values
from steelyard.errors import UserError
from steelyard.plan import memory, resolve
from steelyard.plan.options import Options
from steelyard_worker import accumulation
from steelyard_worker.case import Case, Optimizer, Settings
from steelyard_worker.network import Network, Parameter

if TYPE_CHECKING:
    from steelyard.plan.run_plan import RunPlan

ALL = ("pytorch", "tensorflow", "jax", "mxnet", "mindspore")
LINE = str(Path(__file__).parents[1] / "workloads")


def planned(workload: str = "vgg16:tiny", names: tuple[str, ...] = ("pytorch",), **more: object) -> RunPlan:
    options = Options(workloads=(workload,), frameworks=names, threads=(1,), workload_folders=(LINE,))
    return resolve.plan(replace(options, **more))  # type: ignore[arg-type]


def cases(plan: RunPlan) -> list[Case]:
    (group,) = plan.groups
    return list(group.cases)


def test_parts_of_a_batch_are_an_axis_within_a_framework() -> None:
    (group,) = planned(knobs=("accumulate=1,4",), batches=(8,)).groups
    assert [each.title for each in group.variants] == ["PyTorch", "PyTorch, accumulate 4"]
    assert [each.name for each in group.variants] == ["pytorch/eager", "pytorch/eager,accumulate=4"]
    assert [accumulation.parts_of(each) for each in (case.settings for case in group.cases)] == [1, 4]


def test_the_option_is_the_knob() -> None:
    assert values.parts("1,4") == "accumulate=1,4"
    for text in ("0", "1.5", "-2", "four", "1,", ""):
        with pytest.raises(UserError, match="--accumulate must be a number of parts of a batch from 1 to"):
            values.parts(text)


@pytest.mark.parametrize("name", [*ALL, "fake"])
def test_a_case_that_does_not_divide_its_batch_does_not_have_the_knob(name: str) -> None:
    workload = "line:small" if name == "fake" else "vgg16:tiny"
    usual, asked = (cases(planned(workload, (name,), knobs=each)) for each in ((), ("accumulate=1",)))
    assert [each.id for each in usual] == [each.id for each in asked]
    assert all("accumulate" not in each.settings.knobs for each in usual)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"knobs": ("accumulate=3",), "batches": (8,)}, "A batch of 8 cannot be divided into 3 equal parts"),
        ({"knobs": ("accumulate=16",), "batches": (8,)}, "A batch of 8 cannot be divided into 16 equal parts"),
        ({"knobs": ("accumulate=0",)}, "A batch cannot be computed in 0 parts. Choose a whole number from 1"),
        ({"knobs": ("accumulate=-2",)}, "A batch cannot be computed in -2 parts."),
        ({"knobs": ("accumulate=2.5",)}, "Knob accumulate must be a whole number"),
        ({"knobs": ("accumulate=2",), "tasks": ("inference",)}, "accumulate = 2: inference has no gradients"),
        (
            {"knobs": ("accumulate=2",), "strategies": ("ddp:2",), "batches": (8,)},
            "Gradients of parts of a batch are added in one process, not with ddp",
        ),
        (
            {"knobs": ("accumulate=2",), "protocol": "largest-batch:3", "memory_limits": ("2 GB",)},
            "The largest batch is searched for among whole batches. Remove --accumulate",
        ),
        (
            {"workload": "bert:tiny", "names": ("mxnet",), "knobs": ("accumulate=2",)},
            "MXNet cannot compute bert in parts of a batch: ",
        ),
    ],
)
def test_a_number_of_parts_that_cannot_be_used_says_why(more: dict[str, object], reason: str) -> None:
    with pytest.raises(UserError) as raised:
        planned(**more)  # type: ignore[arg-type]
    assert reason in str(raised.value)


@pytest.mark.parametrize(
    ("name", "mode", "knobs", "reason"),
    [
        ("pytorch", "eager", {"embedding": "sparse"}, "sparse gradients of several parts are not added here"),
        ("tensorflow", "graph", {"embedding": "sparse"}, "sparse gradients of several parts are not added here"),
        ("mxnet", "hybridized", {"embedding": "sparse"}, "sparse gradients of several parts are not added here"),
        ("tensorflow", "fit", {"update": "keras"}, "Model.fit adds gradients over several batches only"),
    ],
)
def test_what_a_framework_cannot_compute_in_parts_has_its_reason(
    name: str, mode: str, knobs: dict[str, object], reason: str
) -> None:
    known, rule = frameworks.framework(name), Optimizer("sgd", 0.1)
    assert reason in known.obstacle(known.complete(Settings(mode, knobs={**knobs, "accumulate": 2})), rule)
    assert known.obstacle(known.complete(Settings(mode, knobs=knobs)), rule) == ""


@pytest.mark.parametrize("name", ALL)
def test_networks_that_depend_on_the_batch_as_a_whole_compute_another_algorithm(name: str) -> None:
    for workload, expected in (
        ("resnet18:tiny", "batch normalisation computes with the statistics of each part of the batch"),
        ("tacotron2:tiny", "statistics of each part"),
        ("gnmt:tiny", ""),
        ("vgg16:tiny", ""),
    ):
        plan = planned(workload, (name,), knobs=("accumulate=2",))
        (case,) = cases(plan)
        label, reason = certification._otherwise(case, plan.workload_folders)
        assert (label, expected in reason) == ("another algorithm" if expected else "", True), workload
        single = replace(case, settings=replace(case.settings, knobs={}))
        assert certification._otherwise(single, plan.workload_folders) == ("", "")


def test_a_loss_that_is_a_mean_over_words_is_another_one_in_parts() -> None:
    network = Network((Parameter("w", (2,), "vector", "constant:0"),), (), 1, mean_over="words")
    assert "the loss is a mean over words" in accumulation.otherwise(2, network)
    assert accumulation.otherwise(1, network) == ""
    assert accumulation.otherwise(2, replace(network, mean_over="samples")) == ""


def test_a_batch_of_a_certificate_with_fewer_samples_is_divided_as_far_as_it_can_be() -> None:
    assert [accumulation.parts_for(4, samples) for samples in (8, 4, 2, 6, 3)] == [4, 4, 2, 2, 1]


def test_the_activations_of_one_part_are_in_memory_at_a_time() -> None:
    plan = planned("vgg16:tiny", knobs=("accumulate=1,4",), batches=(64,))
    whole, parts = (memory.of_variant(plan, variant) for variant in plan.variants)
    network = workloads.find()["vgg16"].network(workloads.find()["vgg16"].presets["tiny"])
    least = memory.needed_bytes(replace(network, activations=0), cases(plan)[0].optimizer, 64)
    assert least < parts < whole
    assert (parts - least) == pytest.approx((whole - least) / 4, rel=0.01)


def test_an_adapter_reports_the_number_where_it_divides_batches() -> None:
    known = frameworks.framework("pytorch")
    assert accumulation.applied(known.complete(Settings("eager", knobs={"accumulate": 4}))) == {"accumulate": 4}
    assert accumulation.applied(known.complete(Settings("eager"))) == {}


def test_the_plan_records_the_number_of_parts() -> None:
    recorded = json.loads(json.dumps(planned(knobs=("accumulate=4",), batches=(8,)).to_dict()))
    assert recorded["groups"][0]["variants"][0]["case"]["settings"]["knobs"]["accumulate"] == 4
