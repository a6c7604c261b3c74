"""On which hosts the ranks of a job are, and what those on nodes of a cluster are told."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from measure.scripted_session import session
from steelyard.errors import UserError
from steelyard.inputs.case_inputs import CaseInputs
from steelyard.measure import hosts, jobs, part, spread_process
from steelyard.measure.hosts import Meeting
from steelyard.plan import spreading
from steelyard_worker.launcher import ranks_of_host
from steelyard_worker.protocol import Data, Job
from steelyard_worker.strategy import Spread, link_of, nodes_of, parts_of, without_hosts

TWO = SimpleNamespace(addresses=("127.0.0.1", "10.0.0.2"))


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """A job of four ranks on two nodes."""
    monkeypatch.setattr(spreading, "usable_cores", lambda: 8)
    run = session(tmp_path / "run", lambda *_: 10.0, frameworks=("fake",), strategies=("copies:2",), threads=(1,))
    (variant,) = run.plan.variants
    variant = replace(variant, case=replace(variant.case, strategy="copies:4@2nodes"))
    made = jobs.communicating(run.plan, variant, CaseInputs(Path("weights"), Data("synthetic"), "", {}, ""), tmp_path)
    return replace(made, kind="measure")


def test_the_name_of_a_strategy_says_how_many_nodes_it_has() -> None:
    found = [(nodes_of(each), parts_of(each), link_of(each)) for each in ("ddp:4@2nodes", "ddp:2@1gbit", "ddp:2")]
    assert found == [(2, 4, ""), (1, 2, "1gbit"), (1, 2, "")]
    assert without_hosts("ddp:4@2nodes") == "ddp:4"


def test_only_timed_jobs_are_spread_over_nodes(job: Job) -> None:
    with hosts.of(job, TWO) as found:  # type: ignore[arg-type]
        assert (found.count, found.are_nodes, found.number) == (2, True, 0)
        assert found.interface == "lo"
        assert [found.address(rank, 4) for rank in range(4)] == ["127.0.0.1", "127.0.0.1", "10.0.0.2", "10.0.0.2"]
    with hosts.of(replace(job, kind="certify"), None) as found:
        assert (found.count, found.are_nodes) == (1, False)


@pytest.mark.parametrize("partners", [None, SimpleNamespace(addresses=("127.0.0.1",))])
def test_too_few_nodes_are_a_sentence(job: Job, partners: SimpleNamespace | None) -> None:
    with (
        pytest.raises(UserError, match=r"^copies:4@2nodes needs 2 nodes, and 1 of this run can measure\.$"),
        hosts.of(job, partners),  # type: ignore[arg-type]
    ):
        pass


def test_every_node_starts_its_own_ranks_and_the_first_the_processes_beside_them(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    meeting = Meeting((1, 2, 3, 4, 5, 6), TWO.addresses, "key")
    own = Spread("processes", "", "run --nodes={hosts} --node={host} --each={per_host} --at={address}:{port}")
    line = Path("job.json")
    for number in range(2):
        seen = hosts.on_node(meeting, number)
        command, environ = spread_process.started(job, own, Path("python"), Path("worker"), {}, seen, line)
        assert command[command.index("become") + 1 :][:5] == [
            "run",
            "--nodes=2",
            f"--node={number}",
            "--each=2",
            "--at=127.0.0.1:2",
        ]
        assert command[-1] == "job.json"
        monkeypatch.setenv("STEELYARD_HOST", environ["STEELYARD_HOST"])
        assert list(ranks_of_host(4)) == [2 * number, 2 * number + 1]
        assert environ["STEELYARD_ADDRESSES"] == "127.0.0.1,127.0.0.1,10.0.0.2,10.0.0.2"


def test_a_launcher_that_reaches_other_hosts_by_ssh_is_started_on_the_first_of_them_alone(job: Job) -> None:
    own = Spread("library", "", "run -np {ranks}", across_hosts="-H {slots} -i {interface}")
    seen = hosts.Hosts(Meeting((1, 2, 3, 4, 5, 6), ("198.18.0.1", "198.18.0.2")), ("one", "two"), interface="host0")
    command, environ = spread_process.started(job, own, Path("python"), Path("worker"), {}, seen, Path("job.json"))
    start = command.index("ssh")
    assert command[start + 1] == "2"
    begun = command.index("become") + 1
    assert command[begun : begun + 7] == ["run", "-np", "4", "-H", "one:2,two:2", "-i", "host0"]
    assert environ["STEELYARD_HOSTS"] == "one two"
    on_one, _ = spread_process.started(
        job, own, Path("python"), Path("worker"), {}, hosts.Hosts(Meeting((1, 2))), Path("job.json")
    )
    assert "ssh" not in on_one
    assert "-H" not in on_one


def test_ranks_that_are_told_to_end_may_write_their_last_event_and_those_that_do_not_end_are_killed(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part, "GRACE_S", 1.0)
    last = tmp_path / "last"
    script = f"import pathlib, time; time.sleep(0.3); pathlib.Path({str(last)!r}).touch(); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", script], start_new_session=True)
    monkeypatch.setattr(part.processes, "_start", lambda *_: process)
    found = part.run(job, Path("python"), hosts.on_node(Meeting((), TWO.addresses), 1), lambda: True, tmp_path / "line")
    assert last.exists()
    assert process.poll() is not None
    assert found.error is None
    assert not found.done


@pytest.mark.parametrize("refused", ["192.0.2.1", "unreachable"])
def test_ranks_that_cannot_reach_each_other_are_refused_at_once(
    refused: str, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a loopback device a framework waits for half a minute, and then does not say why."""
    monkeypatch.setattr(hosts, "LOOPBACK", refused if refused[0].isdigit() else hosts.LOOPBACK)
    if not refused[0].isdigit():

        def unreachable(*_: object) -> None:
            raise OSError(101, "Network is unreachable")

        monkeypatch.setattr(hosts.socket, "create_connection", unreachable)
    local = replace(job, kind="certify")
    with (
        pytest.raises(UserError, match=r"^The ranks of a strategy find each other at ") as raised,
        hosts.of(local, None),
    ):
        pass
    assert str(raised.value).endswith("Start its loopback device: ip link set lo up")
    alone = replace(local, spread=None)
    with hosts.of(alone, None):
        pass
