"""Which pairs of a group are planned: each way to spread a training, and the single process beside it."""

from __future__ import annotations

from typing import Any

import pytest

from steelyard.plan import focus_pairs, resolve
from steelyard.plan.options import Options
from steelyard.plan.run_plan import Group


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steelyard.plan.spreading.usable_cores", lambda: 2)


def group(*strategies: str, **more: Any) -> Group:
    """Return the group of a plan of two frameworks with these strategies."""
    options = {"workloads": ("vgg16:tiny",), "frameworks": ("pytorch", "mxnet"), "threads": (1,)} | more
    (found,) = resolve.plan(Options(strategies=strategies, **options)).groups
    return found


def pairs(found: Group) -> set[frozenset[str]]:
    """Return the planned pairs, by the names of the variants."""
    names = {each.case.id: each.name for each in found.variants}
    return {frozenset(names[key] for key in pair) for pair in focus_pairs.pairs(found.cases)}


def named(*pairs_of_names: tuple[str, str]) -> set[frozenset[str]]:
    return {frozenset(each) for each in pairs_of_names}


def test_every_strategy_is_planned_against_the_single_process_of_its_framework() -> None:
    assert pairs(group("single:1", "processes:2", "server:2", "processes:2@1gbit", "server:2@1gbit")) == named(
        ("pytorch/eager,strategy=single:1", "pytorch/eager,strategy=ddp:2"),
        ("pytorch/eager,strategy=single:1", "pytorch/eager,strategy=ddp:2@1gbit"),
        ("mxnet/hybridized,strategy=single:1", "mxnet/hybridized,strategy=dist-sync:2"),
        ("mxnet/hybridized,strategy=single:1", "mxnet/hybridized,strategy=dist-sync:2@1gbit"),
    )


def test_of_two_single_processes_it_is_the_one_on_as_many_cores_as_threads() -> None:
    found = pairs(group("single", "single:1", "server:2", frameworks=("mxnet",)))
    assert found == named(("mxnet/hybridized,strategy=single:1", "mxnet/hybridized,strategy=dist-sync:2"))
    alone = pairs(group("single", "server:2", frameworks=("mxnet",)))
    assert alone == named(("mxnet/hybridized,strategy=single", "mxnet/hybridized,strategy=dist-sync:2"))


def test_a_mode_is_planned_against_the_single_process_of_this_mode() -> None:
    found = pairs(group("single:1", "server:2", frameworks=("mxnet",), modes=("mxnet=hybridized,imperative",)))
    assert found == named(
        ("mxnet/hybridized,strategy=single:1", "mxnet/hybridized,strategy=dist-sync:2"),
        ("mxnet/imperative,strategy=single:1", "mxnet/imperative,strategy=dist-sync:2"),
    )


@pytest.mark.parametrize(
    "more",
    [
        {"frameworks": ("tensorflow", "mindspore")},
        {"frameworks": ("mxnet",), "modes": ("mxnet=hybridized,imperative",)},
    ],
    ids=["another framework with a mode of the same name", "another mode"],
)
def test_without_a_single_process_of_its_framework_and_mode_a_strategy_is_planned_against_nothing(
    more: dict[str, Any],
) -> None:
    cases = group("single:1", "server:2" if "modes" in more else "processes:2", **more).cases
    removed = next(case for case in cases if case.strategy == "single:1")
    found = focus_pairs.pairs([case for case in cases if case != removed])
    assert len(focus_pairs.pairs(cases)) == 2
    assert len(found) == 1


def test_a_value_of_a_knob_is_planned_against_the_single_process_with_this_value() -> None:
    found = group("single:1", "processes:2", frameworks=("pytorch",), knobs=("recomputation=none,blocks",))
    by_id = {case.id: case for case in found.cases}
    pairs_of_cases = [[by_id[key] for key in pair] for pair in focus_pairs.pairs(found.cases)]
    assert len(pairs_of_cases) == 2
    assert {one.settings.knobs["recomputation"] for one, _ in pairs_of_cases} == {"none", "blocks"}
    assert all(
        one.settings.knobs["recomputation"] == other.settings.knobs["recomputation"] for one, other in pairs_of_cases
    )


@pytest.mark.parametrize("strategies", [(), ("single:1",), ("processes:2",)])
def test_without_a_strategy_or_a_single_process_nothing_is_planned(strategies: tuple[str, ...]) -> None:
    assert focus_pairs.pairs(group(*strategies).cases) == frozenset()


def test_the_decision_rule_of_a_group_has_its_planned_pairs() -> None:
    found = group("single:1", "processes:2", "server:2")
    rule = found.decision(0.05)
    assert rule.planned == focus_pairs.pairs(found.cases)
    assert len(rule.planned) == 2
    assert (rule.delta, rule.most_rounds) == (0.05, found.protocol.decision(0.05).most_rounds)
