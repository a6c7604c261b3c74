"""Three real frameworks on three nodes, of which one is killed: the record is that of a run on one machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from cluster.records import certificates, counted, finished, kept_nodes, only_run
from cluster.simulated import ON_RAY, Running, Simulated, until

from steelyard.results import record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Start = Callable[..., Running]

pytestmark = [pytest.mark.conformance, pytest.mark.slow]

STUDY = """
name = "three-on-nodes"
title = "Three frameworks"
question = "Do nodes change what is recorded?"
version = 1

[[cells]]
workloads = ["resnet18:tiny", "lstm-imdb:tiny"]
frameworks = ["pytorch", "jax", "mxnet"]
threads = [1]
protocol = "fixed:10+20"
rounds = "3"
"""


def test_a_study_of_three_frameworks_has_the_record_of_a_local_run(
    cluster: Simulated, start: Start, data_folder: Path, tmp_path: Path, steelyard: Any
) -> None:
    study = tmp_path / "three-on-nodes.toml"
    study.write_text(STUDY, encoding="utf-8")
    options = ("run", str(study), "--no-guard", "--plain")
    running = start(*options, *ON_RAY)
    running.wait_for(", on b")
    before = finished(only_run(data_folder))
    cluster.kill("b")
    assert running.end()[0] == 0, running.stderr
    assert "Node b was given up: " in running.stderr
    run, local = only_run(data_folder), data_folder.parent / "local"
    assert before.items() <= finished(run).items()
    assert kept_nodes(run) == {"a", "c"}
    until(lambda: not cluster.workers(), f"end of {cluster.workers()}")

    done = steelyard(*options, STEELYARD_RUNS=str(local), STEELYARD_CACHE=str(cluster.cache("a")))
    assert done.returncode == 0, done.stderr
    here = only_run(local)
    assert len(counted(run)) == 2 * 3 * 3
    assert counted(run) == counted(here)
    assert [each["passed"] for each in certificates(run).values()] == [True] * 6
    assert certificates(run) == certificates(here)
    assert record.read(run).plan == record.read(here).plan
