"""Which call of a module on one side is which on the other: those that own tensors which are mapped to each other."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steelyard.port.mapping import Mapping
    from steelyard.port.passes import Call, Pass


@dataclass(frozen=True)
class PairedCall:
    """The names of the calls of both sides."""

    left: str
    right: str


def find(mapping: Mapping, left: Pass, right: Pass) -> list[PairedCall]:
    """Return the pairs in the order of the left side's pass. A module whose tensors belong to several others is in none."""
    partners = _partners(mapping)
    owners = _owners(right)
    found = []
    for calls in _by_path(left).values():
        names = {
            owner
            for tensor in calls[0].tensors.values()
            for other in partners.get(tensor, ())
            for owner in owners[other]
        }
        if len(names) != 1:
            continue
        others = _by_path(right)[names.pop()]
        if _is_mutual(calls[0], others[0], partners):
            found += [PairedCall(one.name, other.name) for one, other in zip(calls, others, strict=False)]
    order = {call.name: number for number, call in enumerate(left.calls)}
    return sorted(found, key=lambda pair: order[pair.left])


def _partners(mapping: Mapping) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for pair in mapping.pairs:
        for name in pair.left:
            found[name] |= {*pair.right}
    return found


def _is_mutual(one: Call, other: Call, partners: dict[str, set[str]]) -> bool:
    """Return whether all mapped tensors of the right module belong to the left one."""
    reached = {name for tensor in one.tensors.values() for name in partners.get(tensor, ())}
    known = {name for names in partners.values() for name in names}
    return {*other.tensors.values()} & known <= reached


def _by_path(side: Pass) -> dict[str, list[Call]]:
    found: dict[str, list[Call]] = defaultdict(list)
    for call in side.calls:
        found[call.path].append(call)
    return found


def _owners(side: Pass) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for call in side.calls:
        for name in call.tensors.values():
            found[name].add(call.path)
    return found
