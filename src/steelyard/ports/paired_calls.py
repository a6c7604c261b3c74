"""Which call of a module on one side is which on the other: those that own tensors which are mapped to each other."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.ports.layers_of_several import below

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.ports.mapping import Mapping
    from steelyard.ports.passes import Call, Pass


@dataclass(frozen=True)
class PairedCall:
    """The names of the calls of both sides."""

    left: str
    right: str


def find(mapping: Mapping, left: Pass, right: Pass) -> list[PairedCall]:
    """Return the pairs in the order of the left side's pass.

    Where the tensors of a module belong to several others, such as one kernel for query, key and value, the smallest modules that
    hold the same tensors are a pair.
    """
    partners = _partners(mapping)
    lefts, rights = _by_path(left), _by_path(right)
    paths = list(_owning_the_same(partners, lefts, rights, _owners(right)))
    paths += _wholes(paths, partners, lefts, rights)
    paths = [(_called_as_often(one, lefts, len(rights[other])), other) for one, other in paths]
    paths = [(one, _called_as_often(other, rights, len(lefts[one]))) for one, other in paths]
    found = [
        PairedCall(one.name, other.name)
        for path, partner in paths
        for one, other in zip(lefts[path], rights[partner], strict=False)
    ]
    order = {call.name: number for number, call in enumerate(left.calls)}
    return sorted(found, key=lambda pair: order[pair.left])


def _owning_the_same(
    partners: dict[str, set[str]],
    lefts: dict[str, list[Call]],
    rights: dict[str, list[Call]],
    owners: dict[str, set[str]],
) -> Iterator[tuple[str, str]]:
    """Yield the modules whose own tensors are mapped to each other and to those of no other module."""
    for path, calls in lefts.items():
        others = {other for tensor in calls[0].tensors.values() for other in partners.get(tensor, ())}
        names = {owner for other in others for owner in owners[other]}
        if len(names) == 1 and _is_mutual(calls[0], rights[next(iter(names))][0], partners):
            yield path, names.pop()


def _called_as_often(path: str, calls: dict[str, list[Call]], wanted: int) -> str:
    """Return the module, or, if it is called more often than its partner, the one around it: a layer, not its cell."""
    if len(calls[path]) <= wanted:
        return path
    around = [each for each in calls if path.startswith((f"{each}.", f"{each}/")) and len(calls[each]) == wanted]
    return max(around, key=len, default=path)


def _wholes(
    paths: list[tuple[str, str]],
    partners: dict[str, set[str]],
    lefts: dict[str, list[Call]],
    rights: dict[str, list[Call]],
) -> list[tuple[str, str]]:
    """Return the smallest modules that hold the same tensors, for tensors whose own modules are in no pair."""
    known = {name for names in partners.values() for name in names}
    ones, others = _holding(lefts, set(partners)), _holding(rights, known)
    covered = {name for path, _ in paths for name in ones.get(path, ())}  # also those in modules that are never called
    found: list[tuple[str, str]] = []
    for path in sorted(ones, key=lambda path: (len(ones[path]), -len(path))):
        if ones[path] <= covered:
            continue
        wanted = {name for tensor in ones[path] for name in partners[tensor]}
        same = [other for other, names in others.items() if names == wanted]
        if same:
            found.append((path, max(same, key=len)))
            covered |= ones[path]
    return found


def _holding(calls: dict[str, list[Call]], known: set[str]) -> dict[str, frozenset[str]]:
    """Return the mapped tensors that each module and the modules in it hold."""
    found = {
        path: frozenset({*below(path, known).values()} | ({*of[0].tensors.values()} & known))
        for path, of in calls.items()
    }
    return {path: names for path, names in found.items() if names}


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
