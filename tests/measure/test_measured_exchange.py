"""Which variants have their exchange measured after the rounds, and when that is done again."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from measure.scripted_session import session, steady
from steelyard.host import links
from steelyard.inputs.case_inputs import CaseInputs
from steelyard.measure import communication, hosts, jobs
from steelyard.plan import spreading
from steelyard.results import communication as exchanged
from steelyard.results import trials
from steelyard.results.round_results import RoundResults
from steelyard.results.trials import Trial
from steelyard_worker import protocol
from steelyard_worker.protocol import Data

if TYPE_CHECKING:
    from steelyard_worker.protocol import Job

BLOCK = {
    "event": "all-reduce",
    "collective": "mean",
    "phase": "counted",
    "bytes": 1000,
    "processes": 2,
    "calls": 2,
    "elapsed_ns": 10,
}


STRATEGIES = ("single:1", "copies:2", "alone:2")


class Run:
    """A session with a single process, two ranks, and two ranks that exchange nothing; `asked`: the jobs of exchanges."""

    def __init__(self, folder: Path, failing: bool = False) -> None:
        self.session = session(folder, steady, frameworks=("fake",), strategies=STRATEGIES, threads=(1,))
        self.failing, self.asked = failing, list["Job"]()
        object.__setattr__(self.session, "run", self._write)

    def results(self, *strategies: str) -> RoundResults:
        """Return results in which the variants with these strategies have finished a round."""
        results = RoundResults()
        for variant in self.session.plan.variants:
            if variant.case.strategy in strategies:
                job = jobs.measuring(self.session.plan, variant, self.session.inputs_of(variant.case), 1, 0, Path("a"))
                results.latest[variant.case.id][1] = Trial(Path("a"), job, done=True)
        return results

    def _write(self, job: Job) -> Trial:
        self.asked.append(job)
        error = {"event": "error", "kind": "unsupported", "message": "It cannot."}
        events = [error] if self.failing else [BLOCK, {"event": "done"}]
        folder = Path(job.folder)
        folder.mkdir(parents=True)
        (folder / trials.JOB).write_text(protocol.to_line(job))
        lines = [json.dumps({"v": protocol.VERSION, "t_ns": 0, **each}) for each in events]
        (folder / protocol.EVENTS).write_text("\n".join(lines) + "\n")
        return trials.read(folder)


@pytest.fixture(autouse=True)
def cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spreading, "usable_cores", lambda: 8)


def test_ranks_that_exchange_are_measured_once(tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    results = run.results(*STRATEGIES)
    communication.measure(run.session, communication.missing(run.session, results))
    (job,) = run.asked
    assert (job.kind, job.case.strategy) == ("communication", "copies:2")
    assert job.spread and job.spread.kind == "processes"
    (variant,) = [each for each in run.session.plan.variants if each.case.strategy == "copies:2"]
    found = exchanged.read(run.session.folder, variant.file_name)
    assert found and found.all_reduce
    communication.measure(run.session, communication.missing(run.session, results))
    assert len(run.asked) == 1


def test_what_was_not_measured_itself_has_no_exchange_measured(tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    communication.measure(run.session, communication.missing(run.session, run.results("single:1")))
    results = run.results(*STRATEGIES)
    for rounds in results.latest.values():
        rounds[2] = replace(rounds[1], done=False, error=("crash", "It broke."))
    communication.measure(run.session, communication.missing(run.session, results))
    assert run.asked == []


def test_a_failure_is_said_and_tried_again(tmp_path: Path) -> None:
    run = Run(tmp_path / "run", failing=True)
    results = run.results(*STRATEGIES)
    communication.measure(run.session, communication.missing(run.session, results))
    assert any(message.endswith("was not measured: It cannot.") for message in run.session.messages)
    run.failing = False
    communication.measure(run.session, communication.missing(run.session, results))
    assert len(run.asked) == 2


def test_an_exchange_is_measured_on_the_hosts_of_its_strategy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "hosts", lambda link: nullcontext((f"first, {link}", f"second, {link}")))
    run = Run(tmp_path / "run").session
    (variant,) = [each for each in run.plan.variants if each.case.strategy == "copies:2"]
    variant = replace(variant, case=replace(variant.case, strategy="copies:2@1gbit"))
    job = jobs.communicating(run.plan, variant, CaseInputs(Path("weights"), Data("synthetic"), "", {}, ""), tmp_path)
    with hosts.of(job, None) as found:
        assert found.namespaces == ("first, 1gbit", "second, 1gbit")
        assert found.meeting.addresses == links.ADDRESSES
        assert not found.are_nodes
