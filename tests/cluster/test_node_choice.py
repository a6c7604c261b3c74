"""Which nodes measure, and the sentences on those that do not."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from steelyard import __version__, host
from steelyard.cluster import engine
from steelyard.cluster.agreement import disagreement, standard
from steelyard.cluster.engine import Member
from steelyard.cluster.facts import NodeFacts
from steelyard.cluster.messages import Ready
from steelyard.cluster.nodes import Node, choose, judged
from steelyard.errors import UserError
from steelyard.measure.doctor import Finding

MACHINE = host.describe()


def node(name: str, fingerprint: str = "aaaa", why_not: str = "", free: int = 2**30) -> Node:
    return Node(Member(name, name, ""), NodeFacts(MACHINE, fingerprint, free, 0.0, "", ()), why_not)


def names(nodes: tuple[Node, ...]) -> list[str]:
    return [each.name for each in nodes]


def test_the_most_common_kind_of_machine_measures_and_the_others_are_named() -> None:
    found = choose([node("a"), node("b", "bbbb"), node("c", "bbbb"), node("d", why_not="it is on fire.")])
    assert names(found.nodes) == ["b", "c"]
    assert found.left_out[0] == "Node d is left out: it is on fire."
    assert found.left_out[1].startswith("Node a of another kind (aaaa) is left out")


def test_of_kinds_with_equally_many_nodes_the_first_by_name_measures() -> None:
    assert names(choose([node("a", "bbbb"), node("b", "aaaa")]).nodes) == ["a"]


def test_a_fingerprint_chooses_by_its_beginning() -> None:
    found = [node("a"), node("b", "abcd"), node("c", "bbbb")]
    assert names(choose(found, "b").nodes) == ["c"]
    for wrong, sentence in (("c", "No node has a fingerprint that begins with c"), ("a", "2 kinds of nodes have")):
        with pytest.raises(UserError, match=sentence) as error:
            choose(found, wrong)
        assert "The cluster has: aaaa (a), abcd (b), bbbb (c)." in str(error.value)


def test_a_cluster_without_a_usable_node_says_why() -> None:
    with pytest.raises(UserError, match=r"No node of the cluster can measure. Node a is left out: it is old\."):
        choose([node("a", why_not="it is old")])


def test_a_plan_is_made_for_what_every_chosen_node_offers() -> None:
    found = choose([node("a", free=10), node("b", free=5)])
    with host.of_another(replace(found.resources, cores=7)):
        assert (host.usable_cores(), host.available_memory_bytes()) == (7, 5)
    assert host.available_memory_bytes() > 5


@pytest.mark.parametrize(
    ("answer", "why_not"),
    [
        ({"steelyard": "0.0.1", "code": ""}, f"it has steelyard 0.0.1, and this machine has {__version__}"),
        ({"steelyard": __version__, "code": "1"}, f"its steelyard {__version__} has other measuring code"),
        ({"steelyard": "", "error": "ModuleNotFoundError: No module named 'steelyard'"}, "No module named 'steelyard'"),
        ({"error": "no answer within 120 s"}, "no answer within 120 s"),
    ],
)
def test_what_a_node_answers_decides_whether_it_can_be_used(answer: dict[str, str], why_not: str) -> None:
    assert why_not in judged(Member("1", "a", ""), answer).why_not


def test_a_node_that_is_not_fit_is_left_out_with_the_finding() -> None:
    facts = NodeFacts(MACHINE, "aaaa", 0, 0.0, "", (Finding("disk", "bad", "1 GB free.", "Free some."),))
    assert judged(Member("1", "a", ""), {"facts": facts}).why_not == "it is not fit to measure on: 1 GB free."


CERTIFIED = {"x": {"passed": True, "sentence": "Fine."}}
FACTS = {"fake": {"version": "1", "python_version": "3", "packages": {}, "contents": "c"}}


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (Ready(CERTIFIED, FACTS), ""),
        (Ready(CERTIFIED, {}, {"fake": "No network."}), "It has no environment fake: No network."),
        (
            Ready(CERTIFIED, {"fake": {**FACTS["fake"], "contents": "d"}}),
            "Its environment fake differs from that of the other",
        ),
        (Ready(CERTIFIED, {**FACTS, "more": {}}), "It has the environment more"),
        (Ready({"x": {"passed": False, "sentence": "Weight 1."}}, FACTS), "It does not certify the case. Weight 1."),
    ],
)
def test_a_node_that_would_not_measure_the_same_is_told_apart(other: Ready, reason: str) -> None:
    plan = SimpleNamespace(by_id={"x": SimpleNamespace(key="the case")})
    found = disagreement(Ready(CERTIFIED, FACTS), other, plan)  # type: ignore[arg-type]
    assert found.startswith(reason)
    assert bool(found) == bool(reason)


def test_the_node_with_most_environments_sets_the_standard() -> None:
    poor = Ready(CERTIFIED, {}, {"fake": "No network."})
    rich = Ready(CERTIFIED, FACTS)
    assert standard({"a": poor, "b": rich}) is rich


def test_where_nothing_listens_joining_fails_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"No Ray cluster answers at ray://127.0.0.1:9 .*Check host and port"):
        engine._check_port("ray://127.0.0.1:9")
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    with pytest.raises(UserError, match=r"No Ray cluster answers at 127.0.0.1:9"):
        engine._check_port("ray")


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(UserError, match=r"pip install 'steelyard\[cluster\]'"), engine.joined("ray"):
        pass
