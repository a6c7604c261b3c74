"""The nodes of a cluster that measured a run: their number, and the rounds that every node ran."""

from collections.abc import Iterable
from typing import Any

from steelyard.results.record import RunRecord

Notes = Iterable[dict[str, Any]]

POOLED = (
    "Each round ran on one node, with ranks on others where a strategy is over several nodes. Ratios are taken within rounds, so "
    "differences between nodes are not in them; the nodes are machines with the same fingerprint."
)


def rounds(notes: Notes) -> dict[str, list[str]]:
    """Return the rounds that count, as `line:small 1, 3`, by the node that ran them; empty without a cluster.

    A node that only contributed ranks to a strategy over several nodes has `ranks of line:small 1`.
    """
    found: dict[str, dict[str, list[int]]] = {}
    for note in notes:
        if note["kept"] and note.get("node"):
            found.setdefault(note["node"], {}).setdefault(note["group"], []).append(note["round"])
            for other in note.get("beside", ()):
                found.setdefault(other, {}).setdefault(f"ranks of {note['group']}", []).append(note["round"])
    return {
        node: [f"{group} {', '.join(map(str, sorted(numbers)))}" for group, numbers in found[node].items()]
        for node in sorted(found)
    }


def machine_line(record: RunRecord, notes: Notes, machine: str) -> str:
    """Return the machine in one line, with the number of such nodes if a cluster measured."""
    count = len(rounds(notes))
    if not record.nodes or not count:
        return machine
    return f"A node of a cluster: {machine}" if count == 1 else f"{count} nodes of a cluster, each: {machine}"


def was_lost(note: dict[str, Any]) -> bool:
    """Return whether an attempt ended because its node was lost. The load of that machine is unknown then."""
    return not note["kept"] and bool(note.get("node")) and not note["host_noise"]
