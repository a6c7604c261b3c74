"""Verdicts on values that are known to intervals only: one holds if it holds wherever in their intervals the values are."""

from __future__ import annotations

from dataclasses import replace
from math import exp, inf, isfinite
from typing import TYPE_CHECKING

from steelyard.statistics.decision import decide
from steelyard.statistics.intervals import WIDEST_LOG

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard.statistics.decision import DecisionPlan, Ranking, Verdict
    from steelyard.statistics.intervals import Rounds
    from steelyard.statistics.verdicts import Kind

    Bounds = Mapping[int, tuple[float, float]]
    """Replicate -> the least and the largest value that it may have: from 0 on, up to infinity."""


def decide_bounded(
    values: Mapping[str, Rounds], bounds: Mapping[str, Bounds], plan: DecisionPlan | None = None
) -> Ranking:
    """Judge every pair as `decide` does, from values within their bounds; a verdict that the bounds leave open is undecided.

    The interval of a pair reaches from A at its least beside B at its largest to the opposite. Student's intervals of both ends
    hold for them, and so for what lies between.
    """
    found = decide(values, plan)
    verdicts = tuple(_held(verdict, values, bounds, plan) for verdict in found.verdicts)
    decided = {
        key
        for each in verdicts
        if found.leader in (each.a, each.b) and each.kind != "undecided"
        for key in (each.a, each.b)
    }
    return replace(found, verdicts=verdicts, still_undecided=frozenset(found.order) - decided - {found.leader})


def _held(
    verdict: Verdict, values: Mapping[str, Rounds], bounds: Mapping[str, Bounds], plan: DecisionPlan | None
) -> Verdict:
    """Return a verdict with the interval that holds for all values within the bounds, undecided where they leave it open."""
    least = _extreme(verdict, values, bounds, plan, 0)
    most = _extreme(verdict, values, bounds, plan, 1)
    return replace(
        verdict,
        kind=verdict.kind if _holds(verdict.kind, least, most) else "undecided",
        low=least.low if least else exp(-WIDEST_LOG),
        high=most.high if most else exp(WIDEST_LOG),
        joint_low=least.joint_low if least else 0.0,
        joint_high=most.joint_high if most else inf,
    )


def _holds(kind: Kind, least: Verdict | None, most: Verdict | None) -> bool:
    """Report whether A is better also at its most, worse at its least, or equal at both."""
    decisive = {"better": (most,), "worse": (least,), "equal": (least, most), "undecided": ()}[kind]
    return all(each is not None and each.kind == kind for each in decisive)


def _extreme(
    verdict: Verdict, values: Mapping[str, Rounds], bounds: Mapping[str, Bounds], plan: DecisionPlan | None, end: int
) -> Verdict | None:
    """Return the verdict with A at one end of its bounds (0: the least) and B at the other; None where an end is not known."""
    common = values[verdict.a].keys() & values[verdict.b].keys()
    first = {number: bounds[verdict.a][number][end] for number in common}
    second = {number: bounds[verdict.b][number][1 - end] for number in common}
    if not all(isfinite(value) and value > 0 for value in (*first.values(), *second.values())):
        return None
    return decide({**values, verdict.a: first, verdict.b: second}, plan).between(verdict.a, verdict.b)
