"""The profile of every framework: what its profiler records belongs to the classes, and they add up to the step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import decides
import pytest
from decides import Sources

from steelyard import environments
from steelyard.catalog import frameworks
from steelyard.files import settings_files
from steelyard.inputs import case_inputs
from steelyard.measure import jobs
from steelyard.measure.launch import Guard, launch
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard.profiles import recorded
from steelyard.profiles.classes import BACKWARD, CONVOLUTION, FORWARD, OPERATIONS, TO_DATA, TO_WEIGHTS

if TYPE_CHECKING:
    from steelyard.profiles.recorded import Explained

pytestmark = pytest.mark.conformance

FRAMEWORKS = ["jax", "mindspore", "mxnet", "pytorch", "tensorflow"]
CONVOLUTIONAL = {FORWARD, TO_DATA, TO_WEIGHTS, "normalisation", "pooling", "optimizer", "reduction and loss"}


def decided(framework: str) -> Sources:
    """Return what decides a profile; the classes are computed by what this file imports."""
    return Sources(
        framework,
        (framework,),
        ("resnet18", "lstm-imdb", "bert"),
        modules=decides.LAUNCH,
        files=("tests/conformance/own",),
    )


def profiled(folder: Path, framework: str, workload: str, **more: tuple[str, ...]) -> Explained:
    plan = resolve.plan(Options(workloads=(workload,), frameworks=(framework,), threads=(1,), **more))
    (variant,) = plan.variants
    (inputs,) = case_inputs.prepare(plan, lambda progress: None).values()
    names = [environments.EnvironmentName(framework)]
    (created,) = environments.ensure_all(environments.plan_environments(names, "cpu")).values()
    place = recorded.folder_of(folder, variant.file_name)
    trial = launch(jobs.profiling(plan, variant, inputs, 1, place), created.python, lambda event: None, Guard(300))
    assert trial.error is None
    recorded.write_rules(place, settings_files.read(frameworks.framework(framework).folder / frameworks.OPERATIONS))
    found = recorded.read(folder, variant.file_name)
    assert found is not None
    return found


def check(found: Explained, folder: Path, classes: set[str]) -> None:
    parts = found.breakdown.classes
    assert sum(parts.values()) == pytest.approx(found.breakdown.step_ns, rel=1e-6)
    unknown = [each.name for each in found.breakdown.operations if each.kind == "unattributed"]
    assert found.breakdown.unattributed <= 0.01, unknown
    assert classes <= parts.keys(), classes - parts.keys()
    assert found.breakdown.dispatches >= 1
    assert found.files
    assert all((folder / name).stat().st_size for name in found.files)


def share(found: Explained, classes: set[str]) -> float:
    """Return the share of these classes in the time of all operations."""
    operations = {kind: value for kind, value in found.breakdown.classes.items() if kind in OPERATIONS}
    return sum(operations.get(kind, 0.0) for kind in classes) / sum(operations.values())


@pytest.mark.decided(by=decided)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_profile_of_a_convolutional_network(framework: str, tmp_path: Path) -> None:
    found = profiled(tmp_path, framework, "resnet18:tiny")
    check(found, tmp_path, CONVOLUTIONAL)
    # Half of a step of this small network lies between operations: 0.49 to 0.51 is covered in MindSpore on a slow machine.
    assert found.breakdown.covered > 1 / 3
    assert found.breakdown.dispatches >= 100
    assert 0.1 < share(found, {FORWARD, TO_DATA, TO_WEIGHTS}) < 0.95
    assert ({kernel[0] for kernel in found.kernels} >= {"convolution"}) == (framework in ("mxnet", "pytorch"))


@pytest.mark.decided(by=decided)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_nothing_is_differentiated_for_tensors_that_network_py_calls_frozen(framework: str, tmp_path: Path) -> None:
    folders = (str(Path(__file__).parent / "own"),)
    parts = profiled(tmp_path, framework, "frozen-body:tiny", workload_folders=folders).breakdown.classes
    assert FORWARD in parts
    assert not parts.keys() & {TO_DATA, TO_WEIGHTS, BACKWARD, CONVOLUTION}


@pytest.mark.slow
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_profile_of_a_recurrent_network(framework: str, tmp_path: Path) -> None:
    found = profiled(tmp_path, framework, "lstm-imdb:tiny")
    check(found, tmp_path, {"recurrent", "gather and scatter", "optimizer", "matrix product"})
    assert share(found, {"recurrent"}) > 0.2


@pytest.mark.slow
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_profile_of_a_transformer(framework: str, tmp_path: Path) -> None:
    found = profiled(tmp_path, framework, "bert:tiny")
    check(found, tmp_path, {"attention", "matrix product", "normalisation", "optimizer"})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("framework", "mode", "classes"),
    [
        ("jax", "no-jit", {"convolution", "elementwise", "host gap"}),
        ("mindspore", "pynative", CONVOLUTIONAL),
        ("mxnet", "imperative", CONVOLUTIONAL),
        ("pytorch", "compiled", CONVOLUTIONAL - {"pooling"}),  # fused with the normalisation before it
        ("tensorflow", "eager", CONVOLUTIONAL),
        ("tensorflow", "xla", {"fused"}),
    ],
)
def test_the_profile_of_another_mode(framework: str, mode: str, classes: set[str], tmp_path: Path) -> None:
    check(profiled(tmp_path, framework, "resnet18:tiny", modes=(f"{framework}={mode}",)), tmp_path, classes)


@pytest.mark.slow
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_profile_of_inference(framework: str, tmp_path: Path) -> None:
    found = profiled(tmp_path, framework, "resnet18:tiny", tasks=("inference",))
    check(found, tmp_path, {FORWARD})
    assert not found.breakdown.classes.keys() & {TO_DATA, TO_WEIGHTS, "optimizer"}
