"""The decision rule of a run knows which contenders have a retired framework, and rounds follow it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from steelyard.measure import rounds
from steelyard.plan import resolve
from steelyard.plan.options import Options

PLAN = resolve.plan(Options(workloads=("lstm-imdb:tiny",), frameworks=("mxnet", "pytorch", "jax")))
(GROUP,) = PLAN.groups
IDS = {case.framework: case.id for case in GROUP.cases}


def test_the_decision_rule_names_the_contenders_of_retired_frameworks() -> None:
    assert PLAN.decision(GROUP).retired == {IDS["mxnet"]}
    assert GROUP.decision(PLAN.options.delta).retired == frozenset()


def test_rounds_go_on_for_the_maintained_contenders_behind_a_retired_one() -> None:
    times = {"mxnet": (1.0, 1.001, 0.999), "pytorch": (2.0, 2.02, 2.0), "jax": (2.01, 2.05, 2.04)}
    costs = {IDS[name]: dict(enumerate(values, 1)) for name, values in times.items()}
    inputs = SimpleNamespace(data=SimpleNamespace(prepared=""))
    session: Any = SimpleNamespace(plan=PLAN, inputs_of=lambda case: inputs)
    results: Any = SimpleNamespace(
        costs=lambda *_: costs, certificates={case.id: {"passed": True} for case in GROUP.cases}
    )
    standing = rounds.rank(session, GROUP, results)
    assert standing.ranking.leader == IDS["mxnet"]
    assert not standing.ranking.still_undecided
    assert standing.wanted == {IDS["pytorch"], IDS["jax"]}
