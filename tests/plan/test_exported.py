"""Runtimes of exported networks in a plan: where they are, and what they cannot run."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.catalog import frameworks
from steelyard.environments import EnvironmentName, EnvironmentSpec, plan_environments
from steelyard.errors import UserError
from steelyard.plan import resolve
from steelyard.plan.options import Options

WORKLOADS = str(Path(__file__).resolve().parent.parent / "workloads")
RUNTIME = "onnxruntime"
MODES = (f"{RUNTIME}=from-pytorch,from-mxnet",)


def options(**more: object) -> Options:
    given = {"workloads": ("resnet18:tiny",), "frameworks": ("pytorch", RUNTIME), "tasks": ("inference",)}
    return Options(**{**given, **more})  # type: ignore[arg-type]


def test_each_origin_of_a_network_is_a_variant_whose_title_names_it() -> None:
    plan = resolve.plan(options(modes=MODES))
    assert [each.title for each in plan.variants] == [
        "PyTorch",
        "ONNX Runtime, from-pytorch",
        "ONNX Runtime, from-mxnet",
    ]


def test_the_environments_that_export_are_made_as_well() -> None:
    plan = resolve.plan(options(modes=MODES))
    assert plan.environments == ["pytorch", RUNTIME, "pytorch@2.13.0+onnx", "mxnet@1.9.1+onnx"]


def test_without_an_exporter_only_its_networks_are_left_out() -> None:
    plan = resolve.plan(options(modes=MODES)).without({"mxnet@1.9.1+onnx": "No room."})
    assert [each.title for each in plan.variants] == ["PyTorch", "ONNX Runtime, from-pytorch"]
    assert [(each.title, each.reason) for each in plan.skipped] == [("ONNX Runtime, from-mxnet", "No room.")]


def test_a_runtime_is_not_among_all_frameworks() -> None:
    plan = resolve.plan(options(frameworks=("*",)))
    assert RUNTIME not in {each.case.framework for each in plan.variants}
    assert RUNTIME in frameworks.listed()


def test_a_runtime_does_not_train() -> None:
    with pytest.raises(UserError, match=r"does not train them\. Use --task inference"):
        resolve.plan(options(frameworks=(RUNTIME,), tasks=()))


def test_a_workload_that_the_exporting_framework_lacks_is_skipped_with_its_reason() -> None:
    plan = resolve.plan(options(workloads=("line",), workload_folders=(WORKLOADS,), frameworks=("fake", RUNTIME)))
    (skipped,) = plan.skipped
    assert skipped.title == "ONNX Runtime, from-pytorch"
    assert skipped.reason == "PyTorch has no implementation of line (there is no pytorch.py in its folder)."


def test_every_exporter_is_an_environment_with_a_lock_file() -> None:
    names = [EnvironmentName.parse(each.environment) for each in frameworks.framework(RUNTIME).exporters.values()]
    assert all(isinstance(each, EnvironmentSpec) for each in plan_environments(names).values())
