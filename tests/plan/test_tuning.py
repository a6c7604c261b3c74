"""What a search tries, and in which order; the plan of the run that searches."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from steelyard.errors import UserError
from steelyard.plan import resolve, tuning
from steelyard.plan.options import Options

if TYPE_CHECKING:
    from steelyard.plan.run_plan import RunPlan
    from steelyard_worker.case import Case


def measured(workload: str, *frameworks: str, **more: Any) -> RunPlan:
    return resolve.plan(Options(workloads=(workload,), frameworks=frameworks, **more))


def tuned(known: RunPlan, environment: str, **more: Any) -> RunPlan:
    group = tuning.chosen_group(known, "", environment, "earlier")
    rival = next((each for each in group.variants if each.case.environment != environment), None)
    return tuning.plan(known, "earlier", group, environment, rival, 10.0, **more)


def tries(plan: RunPlan) -> list[dict[str, Any]]:
    """Return for each candidate what is not usual."""
    assert plan.search
    base = plan.groups[0].cases[0]
    return [differences(base, case) for case in tuning.candidates(plan.search, base, plan)]


def differences(base: Case, case: Case) -> dict[str, Any]:
    knobs = {name: value for name, value in case.settings.knobs.items() if value != base.settings.knobs[name]}
    return ({"mode": case.settings.mode} if case.settings.mode != base.settings.mode else {}) | knobs


def test_modes_and_the_knobs_that_matter_for_the_network_are_tried() -> None:
    convolutions = tuned(measured("resnet18:tiny", "pytorch"), "pytorch").search
    recurrent = tuned(measured("lstm-imdb:tiny", "pytorch"), "pytorch").search
    assert convolutions
    assert recurrent
    assert convolutions.axes == {
        "mode": ("eager", "compiled"),
        "layout": ("channels-last", "channels-first"),
        "onednn": (True, False),
        "cudnn_search": (False, True),
        "cuda_graphs": (False, True),
    }
    assert {"lstm", "embedding"} <= recurrent.axes.keys()
    assert "layout" not in recurrent.axes


def test_single_changes_come_before_combinations_and_nothing_comes_twice() -> None:
    found = tries(tuned(measured("resnet18:tiny", "pytorch"), "pytorch"))
    assert found[:4] == [{}, {"mode": "compiled"}, {"layout": "channels-first"}, {"onednn": False}]
    # Two modes, two layouts, with and without oneDNN; cuDNN's search cannot be turned on where there is no GPU.
    assert len(found) == 8
    assert len({repr(sorted(each.items())) for each in found}) == 8
    assert all("cudnn_search" not in each for each in found)


def test_settings_that_would_compute_something_else_are_not_tried() -> None:
    """A lazy embedding is another algorithm with Adam, and dropout sets a case apart."""
    found = tries(tuned(measured("lstm-imdb:tiny", "mxnet"), "mxnet"))
    assert all(each.get("embedding") != "lazy" for each in found)
    wrong = tuned(
        measured("lstm-imdb:tiny", "tensorflow"),
        "tensorflow",
        knobs=["loss=softmax-twice", "lstm=fused,cell", "dropout=on"],
    )
    assert all(not {"loss", "dropout"} & each.keys() for each in tries(wrong))
    assert {"lstm": "cell"} in tries(wrong)


def test_only_what_is_asked_is_tried_and_the_usual_value_is_among_it() -> None:
    plan = tuned(measured("resnet18:tiny", "pytorch"), "pytorch", modes=["compiled"], knobs=["pytorch.onednn=false"])
    assert plan.search
    assert plan.search.axes == {"mode": ("eager", "compiled"), "onednn": (True, False)}


def test_the_run_measures_the_usual_settings_and_one_rival() -> None:
    known = measured(
        "resnet18:tiny",
        "pytorch",
        "jax",
        "mxnet",
        modes=("pytorch=compiled",),
        knobs=("pytorch.layout=channels-first",),
    )
    plan = tuned(known, "pytorch")
    assert [each.title for each in plan.variants] == ["PyTorch", "JAX"]
    assert plan.variants[0].case.settings.knobs["layout"] == "channels-last"
    assert plan.study.name == "tune-pytorch"
    assert plan.search
    assert (plan.search.run, plan.search.ended, plan.search.minutes, plan.minutes) == ("earlier", False, 6.0, 4.0)


def test_the_rounds_are_not_limited_to_those_of_the_earlier_run() -> None:
    plan = tuned(measured("resnet18:tiny", "pytorch", rounds="2"), "pytorch")
    assert (plan.groups[0].protocol.rounds_min, plan.groups[0].protocol.rounds_max) == (3, 12)
    assert plan.options.rounds == ""


def test_what_was_faster_alone_is_tried_together() -> None:
    plan = tuned(measured("resnet18:tiny", "pytorch"), "pytorch")
    assert plan.search
    base = plan.groups[0].cases[0]

    def joined(**costs: float) -> dict[str, Any] | None:
        values = {"mode": "compiled", "layout": "channels-first", "onednn": False}
        found = {tuning.changed(base, {name: values[name]}).id: cost for name, cost in costs.items()}
        case = tuning.joined(plan.search, base, {base.id: 10.0, **found}, plan) if plan.search else None
        return differences(base, case) if case else None

    assert joined(mode=9.0, layout=8.0, onednn=12.0) == {"mode": "compiled", "layout": "channels-first"}
    assert joined(mode=9.0, layout=11.0) is None
    assert joined() is None


def test_every_combination_comes_once_even_of_many() -> None:
    axes = {"a": (1, 2, 3), "b": (True, False), "c": tuple(range(5))}
    found = list(tuning._combinations(axes, 1))
    assert len(found) == math.prod(map(len, axes.values())) == len({repr(each) for each in found})
    many = {name: tuple(range(10)) for name in "abcdef"}
    assert len(list(tuning._combinations(many, 1))) == tuning.MOST_COMBINATIONS
    assert list(tuning._combinations(many, 1)) != list(tuning._combinations(many, 2))


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"modes": ["compilde"]}, "PyTorch has no mode 'compilde'. Did you mean 'compiled'?"),
        ({"modes": ["jax=jit"]}, "--mode jax=jit: 'jax' is not tuned; this search is about PyTorch alone."),
        ({"knobs": ["jax.unroll=2"]}, "--knob jax.unroll=2: 'jax' is not tuned; this search is about PyTorch alone."),
        ({"knobs": ["layout"]}, "--knob layout: write KNOB=VALUE,VALUE."),
        ({"knobs": ["layout=x"]}, "PyTorch: knob layout must be one of channels-last, channels-first, not 'x'."),
        (
            {"modes": ["eager"]},
            "PyTorch has no other mode and no knob that could make resnet18:tiny faster. Name what to try with --mode or --knob.",
        ),
    ],
)
def test_what_cannot_be_tried_is_one_sentence(asked: dict[str, list[str]], sentence: str) -> None:
    with pytest.raises(UserError) as error:
        tuned(measured("resnet18:tiny", "pytorch"), "pytorch", **asked)
    assert str(error.value) == sentence


def test_a_protocol_that_fixes_the_steps_is_not_tuned() -> None:
    known = measured("resnet18:tiny", "pytorch", protocol="fixed:1+2")
    with pytest.raises(
        UserError, match=r"resnet18:tiny was measured with protocol fixed:1\+2, .* --protocol sequential"
    ):
        tuned(known, "pytorch")


def test_the_group_has_to_be_clear() -> None:
    known = measured("resnet18:tiny", "pytorch", "jax")
    two = replace(known, groups=(*known.groups, *measured("lstm-imdb:tiny", "pytorch").groups))
    assert tuning.chosen_group(two, "", "jax", "run").name == "resnet18:tiny"
    assert tuning.chosen_group(two, "lstm-imdb", "pytorch", "run").name == "lstm-imdb:tiny"
    with pytest.raises(UserError, match=r"several groups with pytorch: resnet18:tiny, lstm-imdb:tiny\. .*--workload"):
        tuning.chosen_group(two, "", "pytorch", "run")
    with pytest.raises(UserError, match=r"no result of 'mxnet' to start from\. Known: jax, pytorch\."):
        tuning.chosen_group(two, "", "mxnet", "run")
    with pytest.raises(UserError, match=r"Run run has no group 'bert'\."):
        tuning.chosen_group(two, "bert", "pytorch", "run")
