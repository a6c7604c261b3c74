"""How the place heeds its nodes, with agents that are called directly and a cluster that is not there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from cluster.simulated import WORKLOADS

from steelyard.cluster import engine, place
from steelyard.cluster.engine import Member, NodeLost
from steelyard.cluster.messages import Message, Order, Ready, Reply
from steelyard.cluster.nodes import Choice, Node
from steelyard.cluster.place import ClusterPlace
from steelyard.errors import UserError
from steelyard.measure.attempts import Attempt, Outcome
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard.results import record

if TYPE_CHECKING:
    from pathlib import Path


class Agent:
    """The agent of a node: `replies` are what it tells, one after the other; an exception is raised in place of one."""

    def __init__(self, node: Member, key: str, run: str) -> None:
        self.node, self.key = node, key
        self.replies: list[Any] = []
        self.asked: list[tuple[Any, ...]] = []

    def ask(self, method: str, *values: Any) -> Any:
        self.asked.append((method, *values))
        return self, len(self.asked)

    def call(self, method: str, *values: Any) -> Any:
        self.asked.append((method, *values))
        return {"missing": [], "lacks": [], "holds": {}}.get(method)

    def fetch(self, path: str, begin: int) -> Any:
        raise AssertionError("no file is missing at home")

    def take(self, ref: Any) -> Reply:
        found = self.replies.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def kill(self) -> None: ...


def told(number: int, kind: str, *values: Any) -> Reply:
    return Reply(number, (), (Message(kind, values),))


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[ClusterPlace, dict[str, Agent], list[str]]:
    """A place of two nodes that are prepared, its agents by name, and what is said."""
    monkeypatch.setattr(place, "Remote", Agent)
    monkeypatch.setattr(engine, "PAUSE_S", 0)
    monkeypatch.setattr(engine, "ready", lambda refs, limit_s: [ref for ref in refs if ref[0].replies])
    monkeypatch.setattr(engine, "end", lambda agents: None)
    plan = resolve.plan(Options(workloads=("line",), frameworks=("fake",), workload_folders=(str(WORKLOADS),)))
    record.write(tmp_path, record.new(plan, "", ""))
    said: list[str] = []
    screen = SimpleNamespace(say=said.append, progress=lambda *_: None)
    session = SimpleNamespace(plan=plan, folder=tmp_path, inputs={}, screen=screen)
    members = tuple(Node(Member(name, name, "")) for name in "ab")
    made = ClusterPlace(session, Choice(members, ()))  # type: ignore[arg-type]
    agents = {name: held.remote for name, held in made._nodes.items()}
    for number, agent in enumerate(agents.values(), 1):
        agent.replies.append(told(1, "done", number, Ready({}), {}))
    made.prepare()
    return made, agents, said  # type: ignore[return-value]


def test_nodes_that_share_a_cache_have_folders_of_their_own(nodes: Any) -> None:
    made, agents, _ = nodes
    assert made.idle() == {"a", "b"}
    assert agents["a"].key != agents["b"].key


def test_a_node_that_fails_in_a_round_is_given_up_and_its_round_is_lost(nodes: Any) -> None:
    made, agents, said = nodes
    attempt = Attempt("line:small", 1, 0, ())
    made.start(attempt, "a")
    agents["a"].replies.append(told(2, "failed", 3, "The disk that holds /x has 1 MiB left."))
    outcome = made.wait()
    assert (outcome.attempt, outcome.node) == (attempt, "a")
    assert outcome.lost == "node a was given up: The disk that holds /x has 1 MiB left"
    assert said == ["Node a was given up: The disk that holds /x has 1 MiB left."]
    assert made.idle() == {"b"}
    assert not made.has("a")


def test_a_failure_outside_the_rounds_reaches_who_asked_and_loses_no_node(nodes: Any) -> None:
    made, agents, _ = nodes
    agents["a"].replies.append(told(2, "failed", 3, "The memory is too small."))
    with pytest.raises(UserError, match="The memory is too small"):
        made.call(len, "x")
    assert made.idle() == {"a", "b"}


def test_work_outside_the_rounds_is_done_by_another_node_if_the_first_is_lost(nodes: Any) -> None:
    made, agents, _ = nodes
    agents["a"].replies.append(NodeLost("it left the cluster"))
    agents["b"].replies.append(told(2, "done", 4, 5, {}))
    assert made.call(len, "x") == 5
    assert Order(4, "call", (len, "x")) in [asked[-1] for asked in agents["b"].asked]


def test_a_connection_that_breaks_is_asked_again_for_what_was_not_taken(nodes: Any) -> None:
    made, agents, said = nodes
    agents["a"].replies += [TimeoutError(), told(2, "say", "Hello."), told(3, "done", 3, 1, {})]
    assert made.call(len, "x") == 1
    assert said == ["a: Hello."]
    assert agents["a"].asked.count(("changes", 1, Order(3, "call", (len, "x")))) == 2


def test_a_question_that_gets_no_answer_is_asked_again_with_its_order(
    nodes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, agents, _ = nodes
    made.start(Attempt("line:small", 1, 0, ()), "a")
    first = made._nodes["a"].ref
    monkeypatch.setattr(made._nodes["a"], "ask_s", 0.0)
    made._pump()
    again = made._nodes["a"].ref
    assert again != first
    assert agents["a"].asked[-1] == agents["a"].asked[-2] == ("changes", 1, made._nodes["a"].order)
    monkeypatch.setattr(engine, "ready", lambda refs, limit_s: [ref for ref in refs if ref == again])
    agents["a"].replies.append(told(2, "done", 3, Outcome(Attempt("line:small", 1, 0, ())), {}))
    assert made.wait().node == "a"
    assert made._nodes["a"].order is None


def test_a_reply_that_has_waited_here_is_taken_before_the_node_is_asked_again(
    nodes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, agents, _ = nodes
    made.start(Attempt("line:small", 1, 0, ()), "a")
    held = made._nodes["a"]
    first = held.ref
    monkeypatch.setattr(held, "ask_s", 0.0)
    monkeypatch.setattr(held, "heard_s", held.heard_s - 2 * engine.SILENT_S)
    monkeypatch.setattr(engine, "ready", lambda refs, limit_s: [ref for ref in refs if ref == first])
    agents["a"].replies.append(told(2, "done", 3, Outcome(Attempt("line:small", 1, 0, ())), {}))
    assert not made.wait().lost
    assert made.has("a")


def test_a_node_that_is_silent_for_too_long_is_given_up(nodes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made, _, _ = nodes
    monkeypatch.setattr(engine, "SILENT_S", -1.0)
    with pytest.raises(UserError, match=r"No node of the run is left. Node a was given up: .*steelyard run --resume"):
        made.call(len, "x")
