"""Studies have the recipes of the networks' authors, every pass that can be switched, and data sets of different size."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from steelyard.catalog import frameworks, workloads
from steelyard.plan import resolve
from steelyard.plan.options import Options

if TYPE_CHECKING:
    from steelyard.plan.run_plan import Group, RunPlan


@cache
def plan(study: str, size: str) -> RunPlan:
    return resolve.plan(Options(study=study, size=size))


def groups(study: str, size: str, cell: str) -> list[Group]:
    return [group for group in plan(study, size).groups if f"{group.cases[0].workload}:{group.cases[0].preset}" == cell]


@pytest.mark.parametrize(
    ("study", "cell", "batch", "rate", "decay", "epochs", "falls"),
    [
        ("resnet18-convergence", "resnet18:cifar10-recipe", 128, 0.1, 1e-4, 164, (32000, 48000)),
        ("vgg16-convergence", "vgg16:imagenet-recipe", 256, 0.01, 5e-4, 74, (92500, 185000, 277500)),
        ("vgg16-convergence", "vgg16:cifar10-recipe", 128, 0.1, 5e-4, 200, ()),
    ],
)
def test_the_published_size_has_the_recipes_of_the_papers(
    study: str, cell: str, batch: int, rate: float, decay: float, epochs: int, falls: tuple[int, ...]
) -> None:
    (group,) = groups(study, "P", cell)
    for case in group.cases:
        rule = case.optimizer
        assert (case.batch, rule.learning_rate, rule.momentum, rule.weight_decay) == (batch, rate, 0.9, decay)
        assert rule.schedule.kind == "step"
        assert rule.schedule.at == falls
        assert (case.settings.knobs.get("dropout") == "on") == case.workload.startswith("vgg16")
    assert group.protocol.schedule.epochs == epochs


def test_the_steps_of_the_recipes_are_those_of_the_papers() -> None:
    """64,000 steps of 128 of 50,000 images, and 370,000 of 256 of 1,281,167."""
    assert pytest.approx(64_000, rel=0.01) == 164 * (50_000 // 128)
    assert pytest.approx(370_000, rel=0.01) == 74 * (1_281_167 // 256)


def test_vgg16_has_its_own_side_shifted_colours_and_dropout_after_convolutions() -> None:
    (large,), (small,) = (groups("vgg16-convergence", "P", f"vgg16:{each}-recipe") for each in ("imagenet", "cifar10"))
    assert (large.cases[0].sizes["image"], large.cases[0].data["crop"], large.cases[0].data["colour_shift"]) == (
        224,
        224,
        0.1,
    )
    assert small.cases[0].sizes["conv_dropout"]
    assert small.cases[0].sizes["batch_norm"]


@pytest.mark.parametrize("name", ["resnet18", "vgg16"])
def test_each_recipe_has_a_preset_for_its_certificate(name: str) -> None:
    """Its rate falls within the steps of a certificate."""
    known = workloads.find()[name]
    rule = known.optimizer(known.preset("tiny-recipe"))
    assert rule.weight_decay > 0
    assert rule.schedule.at == (2, 4)


@pytest.mark.parametrize("size", ["P", "C"])
def test_every_pass_that_can_be_switched_is_measured_by_itself(size: str) -> None:
    values = frameworks.framework("tensorflow").knobs["passes"].values
    wanted = {each for each in values if str(each).startswith(("without-", "with-"))} | {"all"}
    assert len(wanted) == 16
    found = [
        group
        for group in plan("graph-optimizations", size).groups
        if {case.settings.knobs.get("passes") for case in group.cases} == wanted
    ]
    assert len(found) == (2 if size == "P" else 1)
    assert all(group.graphs and group.protocol.rounds_min >= 3 for group in found)


@pytest.mark.parametrize("size", ["P", "C", "Q"])
def test_one_network_meets_data_of_different_size_side_and_classes(size: str) -> None:
    cases = [group.cases[0] for group in plan("data-size", size).groups]
    assert {case.workload for case in cases} == {"resnet18"}
    assert len({case.data.get("train_limit", 0) for case in cases if case.data}) >= 2
    assert len({case.sizes["image"] for case in cases}) >= 2
    assert len({case.sizes["classes"] for case in cases}) >= 2
    if size == "P":
        assert len({case.data["name"] for case in cases if case.data}) == 3
