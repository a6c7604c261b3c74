"""Strategies whose ranks are on several nodes of a simulated cluster: all nodes are held, or none, and any may fail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from cluster.records import only_run
from cluster.simulated import LINE, ON_RAY, Running, Simulated, host_lock, until, used_by
from filelock import FileLock

from steelyard.cli.main import EXIT_LEFT_OUT
from steelyard.results import record, trials
from steelyard_worker.protocol import EVENTS, LOG

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.results.trials import Trial

    Start = Callable[..., Running]

pytestmark = pytest.mark.end_to_end

SPREAD = ("-f", "fake", "--threads", "1", "--knob", "fake.step_us=20000", "--no-guard")
LOCAL, OVER = "copies:2", "copies:2@2nodes"
BOTH = ("--strategy", "single:1", "--strategy", LOCAL, "--strategy", OVER)


def counted(run: Any) -> dict[str, list[Trial]]:
    """Return the finished trials of a run, by strategy."""
    found, damaged = trials.read_all(run)
    assert damaged == []
    by_strategy: dict[str, list[Trial]] = {}
    for trial in found:
        by_strategy.setdefault(trial.job.case.strategy, []).append(trial)
    return by_strategy


def test_ranks_on_two_nodes_compute_what_two_ranks_on_one_node_do(
    cluster: Simulated, start: Start, data_folder: Any
) -> None:
    running = start("run", *LINE, *SPREAD, *BOTH, *ON_RAY, "--rounds", "2")
    code, out = running.end()
    assert code == 0, running.stderr
    found = counted(only_run(data_folder))
    assert [len(found[each]) for each in ("single:1", LOCAL, OVER)] == [2, 2, 2]
    for trial in found[OVER]:
        assert trial.done
        assert trial.others is not None
        assert [other.done for other in trial.others] == [True]
        assert trial.first_losses(20) == found[LOCAL][0].first_losses(20)
        assert (trial.folder / "rank1" / LOG).exists(), "the second rank was started by a node of its own"
    assert all(not (trial.folder / "rank1" / LOG).exists() for trial in found[LOCAL])
    certificates = record.read_certificates(only_run(data_folder))
    assert all(each["passed"] for each in certificates.values())
    assert "2nodes" in out
    until(lambda: not cluster.workers(), f"end of {cluster.workers()}")


def test_a_rank_that_dies_on_another_node_is_named_with_its_node(
    cluster: Simulated, start: Start, data_folder: Any
) -> None:
    faults = ("--knob", "fake.fault=die", "--knob", "fake.fault_rank=1", "--no-certify", "--rounds", "1")
    running = start(
        "run", *LINE, *SPREAD, "--strategy", OVER, "--strategy", "single:1", *faults, *ON_RAY, "--silence", "30"
    )
    code, _ = running.end()
    assert code == EXIT_LEFT_OUT, running.stderr
    (failed,) = counted(only_run(data_folder))[OVER]
    assert failed.error is not None
    kind, message = failed.error
    assert kind == "killed"
    assert message.startswith("Rank 1 of 2 ended without a record.")
    assert message.endswith(("(node a).", "(node b).", "(node c)."))
    assert counted(only_run(data_folder))["single:1"][0].done
    until(lambda: not cluster.workers(), f"end of {cluster.workers()}")


def test_a_node_that_leaves_is_replaced_by_another_and_the_round_repeated(
    cluster: Simulated, start: Start, data_folder: Any
) -> None:
    running = start("run", *LINE, *SPREAD, "--strategy", OVER, *ON_RAY, "--rounds", "4", "--no-certify")
    parts = data_folder / "runs"
    until(lambda: any(parts.glob(f"*/trials/*/rank1/{EVENTS}")) or running.process.poll() is not None, "a second rank")
    cluster.kill("b")
    code, _ = running.end()
    assert code == 0, running.stderr
    assert "Node b was given up" in running.stderr
    notes = record.read_rounds(only_run(data_folder))[0]
    (lost,) = [note for note in notes if not note["kept"]]
    assert len(notes) == 5
    assert "node b was given up" in lost["reasons"][0]
    until(lambda: not cluster.workers(), f"end of {cluster.workers()}")


def test_nodes_are_left_to_another_run_until_all_of_them_can_be_had(
    cluster: Simulated, start: Start, data_folder: Any
) -> None:
    running = start("run", *LINE, *SPREAD[:-1], "--strategy", OVER, *ON_RAY, "--rounds", "12", "--no-certify")
    until(lambda: any((data_folder / "runs").glob(f"*/trials/*/{EVENTS}")), "the first round")
    # Between two rounds a node is free for some hundredths of a second.
    with used_by(cluster.cache("b"), "another-study"):
        running.wait_for("needs a and b at the same time and waits for b (another-study).")
        with FileLock(host_lock(cluster.cache("a"))).acquire(timeout=60):
            pass  # the other node is not kept while this one cannot be had
    assert running.end()[0] == 0, running.stderr
    assert all(trial.done for trial in counted(only_run(data_folder))[OVER])


def test_more_nodes_than_there_are_is_a_row_with_its_reason(start: Start, data_folder: Any) -> None:
    over = ("--strategy", "copies:4@4nodes", "--strategy", "single:1")
    running = start("run", *LINE, *SPREAD, *over, *ON_RAY, "--rounds", "1", "--no-certify")
    code, out = running.end()
    assert code == 0, running.stderr
    assert "copies:4@4nodes needs 4 equal nodes at the same time, and the cluster has 3." in " ".join(
        (out + running.stderr).split()
    )
    assert counted(only_run(data_folder)).keys() == {"single:1"}
