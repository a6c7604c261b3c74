"""Which strategies a plan has, and why it has no others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from steelyard.catalog import frameworks
from steelyard.errors import UserError
from steelyard.plan import resolve, spreading
from steelyard.plan.cells import Cells
from steelyard.plan.options import Options

if TYPE_CHECKING:
    from steelyard.catalog.frameworks import Framework
    from steelyard.plan.run_plan import RunPlan


WORKLOADS = Path(__file__).resolve().parent.parent / "workloads"


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steelyard.plan.spreading.usable_cores", lambda: 2)


@pytest.fixture
def fake() -> Framework:
    return frameworks.framework("fake")


def cells(*strategies: str, threads: tuple[int, ...] = ()) -> Cells:
    """Return a table with these strategies."""
    return Cells(("line",), strategies=strategies, threads=threads)


def planned(*strategies: str, **more: object) -> RunPlan:
    """Return a plan of the scripted framework with these strategies."""
    options = Options(
        workloads=("line",), frameworks=("fake",), strategies=strategies, workload_folders=(str(WORKLOADS),)
    )
    return resolve.plan(replace(options, **more))  # type: ignore[arg-type]


def test_without_a_strategy_there_is_one_process_with_all_cores(fake: Framework) -> None:
    assert spreading.strategies(cells(), fake) == (["single"], [])
    assert spreading.threads(cells()) == (2,)


def test_ranks_on_several_nodes_share_the_cores_of_their_own_node_alone() -> None:
    assert spreading.threads(cells("processes:2@2nodes")) == (2,)
    assert spreading.threads(cells("processes:2@2nodes", "processes:2")) == (1,)


@pytest.mark.parametrize("text", ["copies:2@1nodes", "copies:2@0nodes"])
def test_one_node_is_no_strategy_over_nodes(text: str) -> None:
    with pytest.raises(UserError, match=r"need at least two, such as copies:2@2nodes\.$"):
        spreading.check(cells(text))


@pytest.mark.parametrize(
    ("strategy", "nodes", "reason"),
    [
        ("copies:2@2nodes", 0, "copies:2@2nodes needs 2 nodes of a cluster: name one with --on."),
        ("copies:4@4nodes", 3, "copies:4@4nodes needs 4 equal nodes at the same time, and the cluster has 3."),
        ("copies:2@4nodes", 4, "copies:2@4nodes has 2 ranks, which 4 nodes cannot share equally."),
        ("copies:2@2nodes", 2, ""),
    ],
)
def test_a_strategy_over_nodes_needs_as_many(
    strategy: str, nodes: int, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spreading, "usable_nodes", lambda: nodes)
    plan = planned("single:1", strategy)
    found = " ".join(each.reason for each in plan.skipped)
    assert found.startswith(reason)
    assert bool(found) == bool(reason)


def test_a_launcher_that_needs_ssh_is_refused_on_nodes_but_not_on_hosts_of_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spreading, "usable_nodes", lambda: 2)
    monkeypatch.setattr(spreading.links, "obstacle", lambda: "")
    over = ("single:1", "horovod:2@1gbit", "horovod:2@2nodes")
    plan = resolve.plan(Options(strategies=over, workloads=("lstm-imdb:tiny",), frameworks=("mxnet",)))
    assert [variant.case.strategy for variant in plan.variants] == ["single:1", "horovod:2@1gbit"]
    assert [each.reason for each in plan.skipped] == [
        "The launcher of horovod starts ranks on other nodes by ssh, which steelyard does not set up."
    ]


def test_a_kind_stands_for_every_strategy_of_that_kind(fake: Framework) -> None:
    assert spreading.strategies(cells("processes:2", "copies:2", "alone:2"), fake) == (["copies:2", "alone:2"], [])


def test_a_kind_that_a_framework_lacks_is_skipped_with_its_reason(fake: Framework) -> None:
    found, missing = spreading.strategies(cells("pipeline:2", "single:1"), fake)
    assert (found, missing) == (["single:1"], ["Fake has no strategy of the kind 'pipeline'."])


def test_parts_share_the_cores(fake: Framework) -> None:
    assert spreading.threads(cells("copies:2", "single:1")) == (1,)
    assert spreading.threads(cells("copies:2", threads=(3,))) == (3,)
    plan = planned("copies:2", "single:1")
    assert {case.settings.threads for group in plan.groups for case in group.cases} == {1}


@pytest.mark.parametrize("text", ["copies", "copies:0", "copies:x", "single:2", ":2", "copies:9999"])
def test_a_strategy_needs_a_number_of_parts(text: str) -> None:
    with pytest.raises(UserError, match="write NAME:PARTS"):
        planned(text)


def test_an_unknown_strategy_suggests_the_nearest() -> None:
    with pytest.raises(UserError, match=r"No framework has a strategy 'copys'\. Did you mean 'copies'\?"):
        planned("copys:2")


@pytest.mark.parametrize(
    ("strategies", "more", "reason"),
    [
        (("copies:2",), {"batches": (5,)}, "A batch of 5 cannot be divided into 2 equal shares"),
        (("copies:2",), {"tasks": ("inference",)}, "Strategies spread a training"),
    ],
)
def test_a_case_that_cannot_be_spread_says_why(
    strategies: tuple[str, ...], more: dict[str, object], reason: str
) -> None:
    with pytest.raises(UserError, match=reason):
        planned(*strategies, **more)


def test_more_parts_than_cores_are_planned() -> None:
    (group,) = planned("copies:4", threads=(1,), batches=(8,)).groups
    assert [each.case.strategy for each in group.variants] == ["copies:4"]


def test_strategies_of_one_framework_are_compared_with_each_other() -> None:
    (group,) = planned("single:1", "copies:2", "alone:2").groups
    assert [each.case.strategy for each in group.variants] == ["single:1", "copies:2", "alone:2"]
    assert len({each.case.id for each in group.variants}) == 3


def test_a_strategy_may_need_an_environment_of_its_own() -> None:
    options = Options(workloads=("vgg16:tiny",), frameworks=("mxnet",), strategies=("single:1", "library:1"))
    (group,) = resolve.plan(options).groups
    assert [(case.environment, case.strategy) for case in group.cases] == [
        ("mxnet", "single:1"),
        ("mxnet@1.9.1+horovod", "horovod:1"),
    ]
    assert [variant.title for variant in group.variants] == ["MXNet, single:1", "MXNet, horovod:1"]


def test_an_interpreter_can_be_named_for_the_environment_of_a_strategy() -> None:
    options = Options(workloads=("vgg16:tiny",), frameworks=("mxnet",), strategies=("library:1",))
    resolve.plan(replace(options, external={"mxnet@1.9.1+horovod": "/usr/bin/python3"}))
    with pytest.raises(
        UserError, match=r"'mxnet@1\.9\.0\+horovod' is not in this run\. Did you mean 'mxnet@1\.9\.1\+horovod'"
    ):
        resolve.plan(replace(options, external={"mxnet@1.9.0+horovod": "/usr/bin/python3"}))


def test_a_strategy_that_needs_another_environment_is_skipped_with_the_reason() -> None:
    options = Options(
        workloads=("vgg16:tiny",), frameworks=("tensorflow@2.20.0",), strategies=("single:1", "horovod:1")
    )
    (skipped,) = resolve.plan(options).skipped
    assert (
        skipped.reason
        == "horovod of TensorFlow needs the environment tensorflow@2.21.0+horovod, not tensorflow@2.20.0."
    )
