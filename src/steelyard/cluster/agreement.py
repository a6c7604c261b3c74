"""Whether nodes agree: equal environments, and certificates for the same cases."""

from collections.abc import Mapping

from steelyard.cluster.messages import Ready
from steelyard.plan.run_plan import RunPlan

# The facts that decide what runs in an environment.
DECIDING = ("version", "python_version", "packages", "contents")


def standard(ready: Mapping[str, Ready]) -> Ready:
    """Return the state that all nodes must match: that of the node with the most environments and certificates."""
    return max((ready[name] for name in sorted(ready)), key=lambda each: (len(each.facts), len(_passed(each))))


def disagreement(expected: Ready, found: Ready, plan: RunPlan) -> str:
    """Return why the rounds of a node cannot be pooled with those of the others, as a sentence; empty if they can."""
    for name, facts in expected.facts.items():
        other = found.facts.get(name)
        if other is None:
            return f"It has no environment {name}: {found.unavailable.get(name, 'it could not be made')}"
        differing = [key for key in DECIDING if other.get(key) != facts.get(key)]
        if differing:
            return f"Its environment {name} differs from that of the other nodes in: {', '.join(differing)}."
    if more := found.facts.keys() - expected.facts.keys():
        return f"It has the environment {min(more)}, which could not be made on the other nodes."
    for case_id in sorted(_passed(expected) ^ _passed(found)):
        sentence = found.certificates.get(case_id, {}).get("sentence", "")
        which = "does not certify" if case_id in _passed(expected) else "alone certifies"
        return f"It {which} {plan.by_id[case_id].key}. {sentence}"
    return ""


def _passed(ready: Ready) -> set[str]:
    return {case_id for case_id, certificate in ready.certificates.items() if certificate["passed"]}
