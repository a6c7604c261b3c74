"""Nodes that run one attempt together, with nodes that are scripted: who is held when, and what becomes of a failure."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from steelyard.analysis import nodes
from steelyard.cluster import gangs
from steelyard.cluster.followers import Followers
from steelyard.cluster.gangs import Gang
from steelyard.cluster.leased_node import Held
from steelyard.cluster.messages import Hold, Outgoing, PartEnded
from steelyard.measure.attempts import Attempt, Outcome
from steelyard.measure.hosts import Meeting

ATTEMPT = Attempt("line:small", 3, 0, (), nodes=2)


@dataclass
class Scripted:
    """Two nodes a and b, and everything that they were asked for."""

    nodes: dict[str, Held] = field(default_factory=dict)
    asked: list[tuple[str, ...]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in "ab":
            node = SimpleNamespace(name=name, address=f"10.0.0.{ord(name)}")
            ask = lambda *values, name=name: self.asked.append((name, *values))  # noqa: E731 - of one node
            self.nodes[name] = Held(SimpleNamespace(node=node, ask=ask))  # type: ignore[arg-type]

    def gang(self) -> Gang:
        return Gang(ATTEMPT, list(self.nodes.values()), self._do, self.said.append)

    def _do(self, held: Held, work: str, *values: Any) -> None:
        held.work = 1
        self.asked.append((held.name, work, *values))

    def end(self, gang: Gang, **found: Any) -> None:
        """Let nodes end their work with these results."""
        for name, result in found.items():
            self.nodes[name].work = 0
            gang.heed(self.nodes[name], result)
        gang.advance()

    def new(self) -> list[tuple[str, ...]]:
        """Return what was asked since the last call."""
        found, self.asked[:] = list(self.asked), []
        return found


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    monkeypatch.setattr(gangs, "AGAIN_S", (0.0, 0.0))
    return Scripted()


def test_an_attempt_begins_when_all_nodes_are_held_and_they_are_released_after_it(cluster: Scripted) -> None:
    gang = cluster.gang()
    assert cluster.new() == [("a", "hold"), ("b", "hold")]
    cluster.end(gang, a=Hold(True))
    assert cluster.new() == []
    cluster.end(gang, b=Hold(True))
    assert cluster.new() == [("a", "attempt", ATTEMPT, ("10.0.0.97", "10.0.0.98"))]
    gang.begin_part(1, "order", "meeting")
    assert cluster.new() == [("b", "part", "order", "meeting", 1)]
    cluster.end(gang, a=Outcome(ATTEMPT, severity=1.0))
    assert gang.outcome() is None, "the record of the other node is not home yet"
    cluster.end(gang, b=PartEnded(reasons=("on node b it was loud",), severity=2.0))
    assert cluster.new() == [("a", "release"), ("b", "release")]
    cluster.end(gang, a=None, b=None)
    assert gang.outcome() == Outcome(ATTEMPT, reasons=("on node b it was loud",), severity=2.0, node="a", beside=("b",))
    assert all(held.gang is None for held in cluster.nodes.values())


def test_none_is_kept_while_one_cannot_be_had(cluster: Scripted) -> None:
    gang = cluster.gang()
    cluster.end(gang, a=Hold(True), b=Hold(False, "other-study"))
    assert cluster.new()[2:] == [("a", "release")]
    assert cluster.said == ["Round 3 needs a and b at the same time and waits for b (other-study)."]
    cluster.end(gang, a=None)
    assert cluster.new() == [("a", "hold"), ("b", "hold")]
    cluster.end(gang, a=Hold(False, "other-study"), b=Hold(True))
    assert len(cluster.said) == 1, "it is said once"


def test_a_failure_of_a_part_reaches_the_node_that_leads_with_the_name_of_the_other(cluster: Scripted) -> None:
    gang = cluster.gang()
    cluster.end(gang, a=Hold(True), b=Hold(True))
    gang.begin_part(1, "order", "meeting")
    cluster.new()
    cluster.end(gang, b=PartEnded(("killed", "Rank 1 of 2 ended without a record.")))
    assert cluster.new() == [("a", "partner_ended", "killed", "Rank 1 of 2 ended without a record (node b).")]
    gang.end_parts("key")
    assert cluster.new() == [("b", "end_part", "key")]


def test_an_attempt_whose_node_leaves_is_lost_when_the_one_that_leads_has_ended_it(cluster: Scripted) -> None:
    gang = cluster.gang()
    cluster.end(gang, a=Hold(True), b=Hold(True))
    gang.begin_part(1, "order", "meeting")
    cluster.new()
    gang.lose(cluster.nodes["b"], "node b was given up: it left the cluster")
    assert cluster.new() == [("a", "partner_ended", "killed", "node b was given up: it left the cluster.")]
    gang.begin_part(1, "order", "meeting")
    assert cluster.new() == [("a", "partner_ended", "killed", "node b was given up: it left the cluster.")]
    cluster.end(gang, a=Outcome(ATTEMPT))
    cluster.end(gang, a=None)
    found = gang.outcome()
    assert found is not None
    assert (found.node, found.lost) == ("a", "node b was given up: it left the cluster")


def test_an_attempt_whose_leading_node_leaves_ends_the_parts_of_the_others(cluster: Scripted) -> None:
    gang = cluster.gang()
    cluster.end(gang, a=Hold(True), b=Hold(True))
    gang.begin_part(1, "order", "meeting")
    cluster.new()
    gang.lose(cluster.nodes["a"], "node a was given up: it left the cluster")
    assert cluster.new() == [("b", "end_part", "")]
    cluster.end(gang, b=PartEnded())
    cluster.end(gang, b=None)
    found = gang.outcome()
    assert found is not None
    assert found.lost == "node a was given up: it left the cluster"


def test_a_node_that_leaves_before_all_are_held_loses_the_attempt(cluster: Scripted) -> None:
    gang = cluster.gang()
    cluster.end(gang, a=Hold(True))
    gang.lose(cluster.nodes["b"], "node b was given up: it left the cluster")
    cluster.new()
    gang.advance()
    assert cluster.new() == [("a", "release")]
    cluster.end(gang, a=None)
    assert gang.outcome() is not None


def test_only_a_failure_during_a_trial_is_told_to_it() -> None:
    followers = Followers(Outgoing(), ("10.0.0.1", "10.0.0.2"))
    followers.ended("killed", "late")
    assert followers.failure() is None
    job = SimpleNamespace(
        case=SimpleNamespace(id="case", strategy="copies:2@2nodes"), round=1, attempt=0, schedule=SimpleNamespace()
    )
    followers.begin(job, Meeting((1,), key="key"))  # type: ignore[arg-type]
    followers.ended("killed", "first")
    followers.ended("crash", "second")
    assert followers.failure() == ("killed", "first")
    followers.end()
    reply = followers._outgoing.reply(0, lambda: ((), True))
    assert [(each.kind, each.values[0]) for each in reply.messages] == [("part", 1), ("parts end", "key")]


def test_the_page_says_which_nodes_had_ranks_of_the_others() -> None:
    notes = [
        {"group": "line:small", "round": number, "kept": True, "node": "a", "beside": beside}
        for number, beside in ((1, ["b"]), (2, []))
    ]
    assert nodes.rounds(notes) == {"a": ["line:small 1, 2"], "b": ["ranks of line:small 1"]}
