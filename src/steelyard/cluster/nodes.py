"""The nodes of a cluster, and the choice of those that measure: one fingerprint, because only equal machines are pooled."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steelyard.cluster import engine
from steelyard.cluster.engine import Member
from steelyard.cluster.facts import NodeFacts
from steelyard.cluster.shipping import names_of
from steelyard.errors import UserError
from steelyard.host import Resources
from steelyard.measure.launch import worker_hash
from steelyard.version import VERSION


@dataclass(frozen=True)
class Node:
    """A node of the cluster. `facts`: None where it cannot be used; `why_not` says why then."""

    member: Member
    facts: NodeFacts | None = None
    why_not: str = ""

    @property
    def name(self) -> str:
        """Its unique name."""
        return self.member.name

    @property
    def fingerprint(self) -> str:
        """The fingerprint of its machine; empty where it cannot be used."""
        return self.facts.fingerprint if self.facts else ""


def survey() -> list[Node]:
    """Return all living nodes with their facts; takes some seconds."""
    members = engine.members()
    answers = engine.probe_all(members, VERSION, worker_hash())
    return [judged(each, answers[each.name]) for each in members]


def judged(member: Member, answer: Mapping[str, Any]) -> Node:
    """Return a node with its facts, or why it cannot be used."""
    if facts := answer.get("facts"):
        bad = [each.sentence for each in facts.findings if each.state == "bad"]
        return Node(member, facts, f"it is not fit to measure on: {bad[0]}" if bad else "")
    theirs = answer.get("steelyard")
    if theirs and theirs != VERSION:
        return Node(member, None, f"it has steelyard {theirs}, and this machine has {VERSION}")
    if theirs and answer.get("code") and not answer.get("error"):
        return Node(member, None, f"its steelyard {theirs} has other measuring code than that of this machine")
    return Node(member, None, f"steelyard cannot be used there ({answer.get('error') or 'no answer'})")


@dataclass(frozen=True)
class Choice:
    """The nodes that measure, and a sentence for each that does not."""

    nodes: tuple[Node, ...]
    left_out: tuple[str, ...]

    @property
    def facts(self) -> NodeFacts:
        """The facts of the first node. The others are equal in everything that decides a plan."""
        facts = self.nodes[0].facts
        assert facts is not None
        return facts

    @property
    def resources(self) -> Resources:
        """The resources of every node, with the least free memory of all."""
        machine = self.facts.machine
        free = min(each.facts.available_bytes for each in self.nodes if each.facts)
        return Resources(machine.cores_usable, free, {"cuda": machine.gpus, "ascend": machine.npus}, len(self.nodes))


def choose(found: list[Node], fingerprint: str = "") -> Choice:
    """Return the nodes that measure: those with a fingerprint, or its beginning; by default the most frequent fingerprint.

    UserError: no node can be used, or none has this fingerprint.
    """
    usable = [node for node in found if not node.why_not]
    left_out = [f"Node {node.name} is left out: {node.why_not.rstrip('.')}." for node in found if node.why_not]
    if not usable:
        raise UserError(" ".join(["No node of the cluster can measure.", *left_out]))
    counts = Counter(node.fingerprint for node in usable)
    matching = [each for each in counts if each.startswith(fingerprint)]
    if fingerprint and len(matching) != 1:
        how = "No node has" if not matching else f"{len(matching)} kinds of nodes have"
        known = ", ".join(f"{each} ({names_of(_names(usable, each))})" for each in counts)
        raise UserError(f"{how} a fingerprint that begins with {fingerprint}. The cluster has: {known}.")
    # Of several with equally many nodes the first by name, so that a repeated command chooses the same.
    chosen = matching[0] if fingerprint else max(counts, key=lambda each: counts[each])
    for other in counts:
        if other != chosen:
            names = _names(usable, other)
            one, are = ("Node", "is") if len(names) == 1 else ("Nodes", "are")
            left_out.append(
                f"{one} {names_of(names)} of another kind ({other}) {are} left out, because times of unlike machines are not "
                f"pooled; --nodes fingerprint={other} measures there."
            )
    return Choice(tuple(node for node in usable if node.fingerprint == chosen), tuple(left_out))


def _names(nodes: list[Node], fingerprint: str) -> list[str]:
    return [node.name for node in nodes if node.fingerprint == fingerprint]
