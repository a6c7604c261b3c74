"""Modules in another order: a norm before a branch on one side, and after the sum with that branch on the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.ports.alignment import distance
from steelyard.ports.causes import Cause
from steelyard.ports.passes import load

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from steelyard.ports.given_inputs import Array
    from steelyard.ports.paired_calls import PairedCall
    from steelyard.ports.passes import Call, Pass

FAMILY = "order of modules"


def moved(
    place: PairedCall, later: Sequence[PairedCall], first: Pass, second: Pass, rounding: float
) -> tuple[str, Cause] | None:
    """Return the branch that a module comes before on the left and after on the right, by its first module, as a cause.

    On the left, the branch gets what the module returns. On the right, the module gets what the branch gets and what it returns,
    added. `later`: the pairs that follow the module on the left.
    """
    one, other = first.by_name[place.left], second.by_name[place.right]
    earlier = {call.name for call in second.calls[: second.calls.index(other)]}
    branch = [
        (first.by_name[pair.left], second.by_name[pair.right])
        for pair in later
        if pair.right in earlier and one.outputs
    ]
    for begin, its in branch:
        if _are_same(begin.inputs, one.outputs, rounding) and any(
            _is_sum(its, end, other, rounding) for _, end in branch
        ):
            said = [f"'{one.name}' {where} '{begin.name}'" for where in ("before", "after")]
            return begin.name, Cause(FAMILY, {"place": "before"}, {"place": "after"}, ("place",), said[0], said[1])
    return None


def _is_sum(begin: Call, end: Call, module: Call, rounding: float) -> bool:
    """Return whether a module gets what a branch gets, and what it returns, added."""
    if not begin.inputs or not end.outputs or not module.inputs:
        return False
    received, returned, wanted = load(begin.inputs[0]), load(end.outputs[0]), load(module.inputs[0])
    return received.shape == returned.shape and _is_near(received + returned, wanted, rounding)


def _are_same(ones: Sequence[Path], others: Sequence[Path], rounding: float) -> bool:
    return bool(ones) and bool(others) and _is_near(load(ones[0]), load(others[0]), rounding)


def _is_near(one: Array, other: Array, rounding: float) -> bool:
    return one.shape == other.shape and distance(one, other) <= rounding
