"""Ranks that exchange nothing: the exchange is measured against them. No contender, because each trains its own network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.statistics.intervals import Ratio, ratio_interval
from steelyard_worker.strategy import name_of
from steelyard_worker.strategy_kinds import ALONE

if TYPE_CHECKING:
    from steelyard.analysis.model import Comparison, Contender


def is_one(contender: Contender) -> bool:
    """Return whether a contender consists of ranks that exchange nothing."""
    return name_of(contender.case.strategy) == ALONE


def ratio(comparison: Comparison, a: str, b: str) -> Ratio | None:
    """Return the ratio of two contenders by id, above 1 where the first is better, if exactly one of them exchanges nothing.

    The other one must be certified. None if it is no such pair, one of them failed or is faster than possible, or they have fewer
    than two rounds in common.
    """
    by_id = {each.case.id: each for each in comparison.contenders}
    first, second = by_id[a], by_id[b]
    if is_one(first) == is_one(second) or any(each.failure or each.above_peak for each in (first, second)):
        return None
    real = second if is_one(first) else first
    if real.proof.state != "certified":
        return None
    return ratio_interval(_costs(comparison, second), _costs(comparison, first))


def _costs(comparison: Comparison, contender: Contender) -> dict[int, float]:
    """Return {round: value}, with values that are better when smaller."""
    quantity = comparison.quantity
    rounds = {trial.job.round: trial for trial in contender.trials}
    return {key: quantity.cost(value) for key, value in quantity.of_rounds(rounds, comparison.primary).items()}
