"""Runs on a simulated cluster: the record equals a local one, and no node, driver or worker that dies takes a sample along."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from cluster.records import certificates, counted, finished, kept_nodes, only_run, verdicts
from cluster.simulated import LINE, ON_RAY, PATIENCE_S, Running, Simulated, until, used_by

from steelyard.cli.main import EXIT_LEFT_OUT
from steelyard.results import record, trials

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Start = Callable[..., Running]

pytestmark = pytest.mark.end_to_end

THREE = ("-f", "fake", "-f", "dummy", "--knob", "fake.step_us=10000", "--knob", "dummy.step_us=10000,12000")
UNGUARDED = (*LINE, "--no-guard", *THREE)


def test_a_run_whose_node_is_killed_has_the_record_of_a_local_run(
    cluster: Simulated, start: Start, data_folder: Path, steelyard: Any
) -> None:
    running = start("run", *UNGUARDED, "--rounds", "4", *ON_RAY)
    running.wait_for(", on b")
    before = finished(only_run(data_folder))
    cluster.kill("b")
    assert running.end()[0] == 0, running.stderr
    assert "Node b was given up: " in running.stderr
    run, local = only_run(data_folder), data_folder.parent / "local"
    assert before.items() <= finished(run).items()
    notes = record.read_rounds(run)[0]
    assert kept_nodes(run) == {"a", "c"}
    ran_on = [(each.job.round, each.job.attempt, each.job.node) for each in trials.read_all(run)[0]]
    known = {(note["round"], note["attempt"], note["node"]) for note in notes}
    assert {*ran_on} <= known, "a round never spans nodes"
    until(lambda: not cluster.workers(), f"end of {cluster.workers()}")

    assert steelyard("run", *UNGUARDED, "--rounds", "4", STEELYARD_RUNS=str(local)).returncode == 0
    assert counted(run) == counted(only_run(local))
    assert certificates(run) == certificates(only_run(local))
    assert verdicts(run) == verdicts(only_run(local))


def test_a_driver_that_is_killed_leaves_no_process_and_can_be_resumed(
    cluster: Simulated, start: Start, data_folder: Path
) -> None:
    running = start("run", *UNGUARDED, "--rounds", "4", *ON_RAY)
    until(
        lambda: any(data_folder.glob("runs/*/run.json")) and len(finished(only_run(data_folder))) > 1, "finished trials"
    )
    running.process.kill()
    running.process.wait()
    before = finished(only_run(data_folder))
    until(lambda: not cluster.workers(), f"end of {cluster.workers()}")
    again = start("run", "--resume", "latest", *ON_RAY, "--plain")
    code, _ = again.end()
    assert code == 0, again.stderr
    run = only_run(data_folder)
    after = finished(run)
    changed = {name: (text, after.get(name)) for name, text in before.items() if text != after.get(name)}
    assert not changed, "what was measured is kept, and not measured again"
    assert len(counted(run)) == 12
    assert record.read(run).state == "complete"
    assert not [path for name in "abc" for path in cluster.cache(name).glob(f"cluster/runs/*/{run.name}")]


def test_a_worker_that_is_killed_and_a_connection_that_breaks_for_seconds_end_no_run(
    cluster: Simulated, start: Start, data_folder: Path
) -> None:
    running = start("run", *UNGUARDED, "--rounds", "4", *ON_RAY, "--knob", "fake.fault=hang", "--silence", "60")
    until(lambda: bool(_works_in("r01.0-line_small_fake", cluster)), "the hanging worker")
    (worker,) = _works_in("r01.0-line_small_fake", cluster)
    agent = worker.parent()
    assert agent is not None
    os.kill(agent.pid, signal.SIGSTOP)
    worker.kill()
    others = len(running.lines)
    until(lambda: len(running.lines) > others, "the other nodes go on")
    os.kill(agent.pid, signal.SIGCONT)
    until(lambda: _kill_hanging(cluster) or running.process.poll() is not None, "the end of the run")
    code, _ = running.end()
    assert code == EXIT_LEFT_OUT, running.stderr
    assert "The worker was killed (signal 9)." in running.stderr
    assert "was given up" not in running.stderr


def _works_in(folder: str, cluster: Simulated) -> list[psutil.Process]:
    """Return the workers in a folder whose name contains this text; one that has ended meanwhile has none."""
    found = []
    for each in cluster.workers():
        with contextlib.suppress(psutil.NoSuchProcess):  # a zombie is one as well
            found += [each] if folder in each.cwd() else []
    return found


def _kill_hanging(cluster: Simulated) -> None:
    """Kill the processes of Fake, which hang in those rounds that had begun before the first failure was known."""
    for each in cluster.workers():
        with contextlib.suppress(psutil.Error):
            if "line_small_fake" in each.cwd() and "/trials/" in each.cwd():
                each.kill()


def test_a_node_that_another_run_uses_is_not_waited_for(cluster: Simulated, start: Start, data_folder: Path) -> None:
    with used_by(cluster.cache("b"), "another-study"):
        running = start("run", *LINE, *THREE, "--rounds", "2", *ON_RAY)
        running.wait_for(f"b: This machine is in use by process {os.getpid()} of user ")
        running.wait_for("(steelyard run another-study, since ")
        shown = start("nodes", "--json")
        code, out = shown.end()
        assert code == 0
        assert {each["name"]: each["facts"]["measuring"] for each in json.loads(out)}["b"] == "another-study"
        assert running.end()[0] == 0, running.stderr
    assert {note["node"] for note in record.read_rounds(only_run(data_folder))[0]} <= {"a", "c"}


def test_nodes_of_another_version_or_kind_are_left_out_with_the_reason(
    cluster: Simulated, start: Start, data_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "steelyard").mkdir()
    (tmp_path / "steelyard" / "__init__.py").write_text('__version__ = "0.0.1"\n')
    affinity = os.sched_getaffinity(0)
    if len(affinity) < 2:
        pytest.skip("a node of another kind has fewer cores than the others, and this machine has one")
    cluster.add("old", PYTHONPATH=str(tmp_path))
    try:
        os.sched_setaffinity(0, {min(affinity)})
        cluster.add("small")
    finally:
        os.sched_setaffinity(0, affinity)
    try:
        running = start("run", *UNGUARDED, *ON_RAY, "--dry-run")
        code, out = running.end()
        out = " ".join(out.split())
        assert code == 0, running.stderr
        assert "Nodes: 3 with the fingerprint" in out
        assert "Node old is left out: it has steelyard 0.0.1, and this machine has" in out
        assert "Node small of another kind" in out
    finally:
        cluster.kill("old")
        cluster.kill("small")
    asked = start("run", *UNGUARDED, *ON_RAY, "--nodes", "fingerprint=0000000000000000", "--dry-run")
    assert asked.end()[0] == 2
    assert "No node has a fingerprint that begins with 0000000000000000. The cluster has: " in asked.stderr


def test_another_version_of_ray_is_named(
    cluster: Simulated, command: list[str], environ_for: Any, data_folder: Path
) -> None:
    code = "import sys, ray; ray.__version__ = '1.0.0'; from steelyard.cli.main import main; sys.exit(main(['nodes']))"
    env = environ_for(data_folder, RAY_ADDRESS=cluster.cluster.address, PYTHONWARNINGS="")
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 2
    assert "has another version of Ray or Python than this machine, which has Ray 1.0.0 with Python" in done.stderr
