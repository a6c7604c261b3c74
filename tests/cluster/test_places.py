"""Where a node has the workloads of a run whose home has steelyard in another folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from steelyard.catalog import workloads
from steelyard.cluster import agent
from steelyard.plan import resolve
from steelyard.plan.options import Options

WORKLOADS = Path(__file__).parents[1] / "workloads"


def test_a_node_has_its_own_workloads_of_steelyard_and_those_of_the_user_that_it_was_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEELYARD_CACHE", str(tmp_path))
    chosen = Options(
        workloads=("line", "resnet18:tiny"), frameworks=("fake", "pytorch"), workload_folders=(str(WORKLOADS),)
    )
    plan = resolve.plan(chosen)
    at_home = {"resnet18": "/home/user/venv/steelyard_worker/workloads/resnet18"}
    found = agent.workload_folders(replace(plan, workload_folders=plan.workload_folders | at_home))
    sent = tmp_path / "cluster" / "sources" / plan.workload_hashes["line"] / "line"
    assert found == {"resnet18": workloads.BUILT_IN / "resnet18", "line": sent}
