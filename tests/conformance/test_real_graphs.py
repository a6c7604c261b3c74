"""The graph of a step in every framework: what is counted are the layers that the network has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import decides
import pytest
from decides import Sources

from steelyard import environments
from steelyard.inputs import case_inputs
from steelyard.measure import jobs
from steelyard.measure.launch import Guard, launch
from steelyard.plan import resolve
from steelyard.plan.options import Options

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.results.trials import Trial

pytestmark = pytest.mark.conformance

LAYERS = 20
"""The convolutions of ResNet-18; all but the first have a gradient for their input as well."""


def decided(framework: str) -> Sources:
    """Return what decides what a framework's graph has."""
    return Sources(framework, (framework,), ("resnet18",), modules=(*decides.LAUNCH, "steelyard.profiles.graphs"))


def counted(folder: Path, framework: str, mode: str) -> Trial:
    modes = (f"{framework}={mode}",)
    plan = resolve.plan(Options(workloads=("resnet18:tiny",), frameworks=(framework,), modes=modes, threads=(1,)))
    (variant,) = plan.variants
    (inputs,) = case_inputs.prepare(plan, lambda progress: None).values()
    names = [environments.EnvironmentName(framework)]
    (created,) = environments.ensure_all(environments.plan_environments(names, "cpu")).values()
    return launch(jobs.counting(plan, variant, inputs, folder), created.python, lambda event: None, Guard(300))


BOTH = {"Conv2D": LAYERS, "Conv2DBackpropFilter": LAYERS}


@pytest.mark.decided(by=decided)
@pytest.mark.parametrize(
    ("framework", "mode", "traced", "run"),
    [
        # Some convolutions are matrix products of patches here; those of the last layer count with them.
        ("jax", "jit", {"convolution dot_general": 3 * LAYERS - 1 + 3}, {}),
        ("mindspore", "graph", {"Conv2D": LAYERS}, BOTH | {"Conv2DBackpropInput": LAYERS - 1}),
        ("mxnet", "hybridized", {"Convolution": LAYERS}, {"Convolution": LAYERS}),
        # It compiles for a minute.
        pytest.param(
            "pytorch",
            "compiled",
            *2 * ({"convolution": LAYERS, "convolution_backward": LAYERS},),
            marks=pytest.mark.slow,
        ),
        # The gradient for the images is traced, and then removed, because nothing uses it.
        ("tensorflow", "graph", BOTH | {"Conv2DBackpropInput": LAYERS}, BOTH | {"Conv2DBackpropInput": LAYERS - 1}),
    ],
)
def test_every_convolution_of_the_network_is_in_the_graph(
    framework: str, mode: str, traced: dict[str, int], run: dict[str, int], tmp_path: Path
) -> None:
    trial = counted(tmp_path, framework, mode)
    assert trial.error is None
    first, *_, last = [stage for stage in trial.graphs if not stage.passes]
    for stage, expected in ((first, traced), (last, run)):
        found = {kinds: sum(stage.kinds.get(kind, 0) for kind in kinds.split()) for kinds in expected}
        assert found == expected
    assert 0 < last.total < first.total


@pytest.mark.decided(by=decided)
@pytest.mark.parametrize(
    ("framework", "mode"),
    [
        ("jax", "no-jit"),
        ("mindspore", "pynative"),
        ("mxnet", "imperative"),
        ("pytorch", "eager"),
        ("tensorflow", "xla"),
    ],
)
def test_a_mode_without_a_graph_of_its_own_says_so(framework: str, mode: str, tmp_path: Path) -> None:
    trial = counted(tmp_path, framework, mode)
    assert trial.error is not None
    assert trial.error[0] == "unsupported"
    assert "graph" in trial.error[1] or "program" in trial.error[1]
