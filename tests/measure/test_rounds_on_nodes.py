"""Tests of rounds on several nodes: what runs at the same time, what waits for a decision, and what becomes of lost rounds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from measure.scripted_session import QUIET, ScriptedSession, measure, session, steady, write_trial
from steelyard.measure import jobs, rounds
from steelyard.measure.attempts import Attempt, Outcome
from steelyard.results import round_results, trials
from steelyard.results.round_results import RoundResults

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest


class Nodes:
    """A place of scripted nodes. `loses`: attempts whose node is lost; `order` chooses which running attempt ends next."""

    def __init__(
        self,
        run: ScriptedSession,
        names: str,
        loses: tuple[tuple[str, int], ...] = (),
        order: Callable[[list[str]], str] = min,
    ) -> None:
        self.run, self.names, self.loses, self.order = run, set(names), set(loses), order
        self.running: dict[str, Attempt] = {}
        self.most = self.at_first = 0
        self.ran: list[tuple[str, int, int, int]] = []

    def idle(self) -> frozenset[str]:
        return frozenset(self.names - self.running.keys())

    def has(self, node: str) -> bool:
        return node in self.names

    def start(self, attempt: Attempt, node: str) -> None:
        assert node in self.idle()
        self.running[node] = attempt
        self.most = max(self.most, len(self.running))
        self.ran.append((node, attempt.round, attempt.attempt, len(attempt.cases)))

    def wait(self) -> Outcome:
        self.at_first = self.at_first or len(self.running)
        node = self.order(list(self.running))
        attempt = self.running.pop(node)
        if (node, attempt.round) in self.loses:
            self.names.remove(node)
            return Outcome(attempt, node=node, lost=f"node {node} was given up: it left the cluster")
        return Outcome(
            attempt,
            tuple(self._trial(attempt, case, node) for case in attempt.cases),
            host_noise=QUIET.to_dict(),
            node=node,
        )

    def _trial(self, attempt: Attempt, case_id: str, node: str) -> trials.Trial:
        variant = self.run.plan.by_id[case_id]
        folder = jobs.trial_folder(self.run.folder, attempt.round, attempt.attempt, variant)
        inputs = self.run.inputs_of(variant.case)
        job = jobs.measuring(self.run.plan, variant, inputs, attempt.round, attempt.attempt, folder)
        return write_trial(replace(job, node=node), self.run.times)


def measured(run: ScriptedSession, place: Nodes) -> RoundResults:
    results = RoundResults()
    rounds.measure(run, results, place)
    return results


def numbers(results: RoundResults) -> list[list[int]]:
    """Return the rounds that each case has finished."""
    return [sorted(found) for found in results.finished.values()]


def test_rounds_without_a_decision_between_them_run_at_the_same_time(tmp_path: Path) -> None:
    run = session(tmp_path / "run", steady, rounds="4-4")
    place = Nodes(run, "abc")
    results = measured(run, place)
    assert place.most == 3
    assert [(node, number) for node, number, *_ in place.ran[:3]] == [("a", 1), ("b", 2), ("c", 3)]
    assert numbers(results) == [[1, 2, 3, 4]] * 2
    assert {note["node"] for note in run.noted_rounds()} <= {"a", "b", "c"}


def test_what_is_decided_runs_no_further_round_on_any_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local = measure(session(tmp_path / "local", steady), monkeypatch)
    run = session(tmp_path / "run", steady)
    place = Nodes(run, "abcdefgh")
    assert numbers(measured(run, place)) == numbers(local)
    assert place.at_first == run.plan.groups[0].protocol.drops_from - 1, "a decision lies before the next round"


def test_undecided_rounds_fill_the_nodes_and_end_with_the_protocol(tmp_path: Path) -> None:
    def open_question(framework: str, number: int, attempt: int, source: str) -> float:
        return 10.0 * (1 + (0.2 if framework == "fake" else -0.2) * (-1) ** number)

    run = session(tmp_path / "run", open_question)
    place = Nodes(run, "abcd")
    assert numbers(measured(run, place)) == [list(range(1, 13))] * 2
    assert place.most == 4


def test_a_lost_round_is_repeated_as_a_whole_elsewhere_under_a_new_number(tmp_path: Path) -> None:
    run = session(tmp_path / "run", steady, rounds="3-3")
    place = Nodes(run, "ab", loses=(("a", 1),))
    results = measured(run, place)
    assert [(number, attempt) for node, number, attempt, _ in place.ran if node == "a"] == [(1, 0)]
    assert numbers(results) == [[1, 2, 3]] * 2
    (lost,) = [note for note in run.noted_rounds() if not note["kept"]]
    assert (lost["node"], lost["round"], lost["reasons"]) == ("a", 1, ["node a was given up: it left the cluster"])
    assert any("Round 1 of line:small is repeated because node a was given up" in each for each in run.messages)


def test_the_rest_of_a_round_runs_where_it_began_or_all_of_it_runs_again(tmp_path: Path) -> None:
    for names, expected in (("ab", ("b", 1, 0, 1)), ("ac", ("a", 1, 1, 2))):
        run = session(tmp_path / names, steady, rounds="1-1")
        begun = Nodes(run, "b")
        case_id = run.plan.groups[0].cases[0].id
        trial = begun._trial(Attempt("line:small", 1, 0, (case_id,)), case_id, "b")
        results = round_results.collect([trial], {})
        place = Nodes(run, names)
        rounds.measure(run, results, place)
        assert place.ran == [expected]
        assert {each.job.node for found in results.finished.values() for each in found.values()} == {expected[0]}


def test_if_the_node_of_a_begun_round_is_lost_all_of_the_round_runs_again(tmp_path: Path) -> None:
    run = session(tmp_path / "run", steady, rounds="1-1")
    case_id = run.plan.groups[0].cases[0].id
    place = Nodes(run, "ab", loses=(("b", 1),))
    results = round_results.collect([place._trial(Attempt("line:small", 1, 0, (case_id,)), case_id, "b")], {})
    rounds.measure(run, results, place)
    assert place.ran == [("b", 1, 0, 1), ("a", 1, 1, 2)]
    assert {each.job.node for found in results.finished.values() for each in found.values()} == {"a"}


def test_only_disturbances_of_the_same_node_make_a_disturbance_usual(tmp_path: Path) -> None:
    run = session(tmp_path / "run", steady, rounds="1-1")
    for number in (7, 8, 9):
        run.note_round(
            group="x", round=number, attempt=0, kept=True, reasons=["x"], severity=50.0, host_noise={}, node="b"
        )

    class Disturbed(Nodes):
        def wait(self) -> Outcome:
            return replace(super().wait(), severity=10.0, reasons=("noise",))

    place = Disturbed(run, "a")
    measured(run, place)
    assert [(number, attempt) for _, number, attempt, _ in place.ran] == [(1, 0), (1, 1)]
