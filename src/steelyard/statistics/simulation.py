"""Simulated comparisons with a known truth, judged by the same code as real ones, many at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from steelyard.statistics.looks import Look, look
from steelyard.statistics.pair_evidence import pair_indices

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from steelyard.statistics.decision_plan import DecisionPlan
    from steelyard.statistics.pair_evidence import Floats

CELLS_AT_ONCE = 2_000_000
"""The largest number of comparisons x pairs x contenders x rounds that are judged at once, to limit memory."""


@dataclass(frozen=True)
class Outcome:
    """The decisions in simulated comparisons, at any look. Arrays of shape (comparisons,) or (comparisons, pairs)."""

    false_difference: NDArray[np.bool_]
    """Some pair without a true difference was called different, or a pair the wrong way round."""
    false_equality: NDArray[np.bool_]
    """Some pair was called equal although its true difference is at least the margin."""
    rounds: NDArray[np.int64]
    """Rounds until the comparison ended."""
    processes: NDArray[np.int64]
    """Processes that ran until then. Decided contenders run no further ones."""
    decided: NDArray[np.bool_]
    """Whether each pair was called different or equal."""
    different_from: NDArray[np.int64]
    """Round in which each pair was first called different, the right way round; 0 for never."""


def simulate(values: Floats, truth: Floats, plan: DecisionPlan, names: tuple[str, ...] = ()) -> Outcome:
    """Run comparisons round by round until each is decided or has used up the rounds of the plan.

    `names`: of the contenders, where the plan names pairs.
    `values`: logarithms of what would be measured, shape (comparisons, contenders, rounds), the truth included.
    `truth`: logarithms of the true values, shape (contenders,).
    """
    comparisons, contenders, _ = values.shape
    pairs = contenders * (contenders - 1) // 2
    size = max(1, CELLS_AT_ONCE // (pairs * contenders * plan.most_rounds))
    weights = plan.weights(names or tuple(map(str, range(contenders))))
    parts = [_simulate(values[start : start + size], truth, plan, weights) for start in range(0, comparisons, size)]
    return Outcome(*(np.concatenate([getattr(part, name) for part in parts]) for name in Outcome.__dataclass_fields__))


def _simulate(values: Floats, truth: Floats, plan: DecisionPlan, weights: Floats) -> Outcome:
    first, second = pair_indices(len(truth))
    difference = truth[first] - truth[second]
    count = len(values)
    outcome = Outcome(
        false_difference=np.zeros(count, dtype=bool),
        false_equality=np.zeros(count, dtype=bool),
        rounds=np.zeros(count, dtype=np.int64),
        processes=np.zeros(count, dtype=np.int64),
        decided=np.zeros((count, len(first)), dtype=bool),
        different_from=np.zeros((count, len(first)), dtype=np.int64),
    )
    running = np.arange(count)
    wanted = np.ones((count, len(truth)), dtype=bool)
    seen = np.full(values.shape, np.nan)
    for number in range(1, plan.most_rounds + 1):
        seen[running, :, number - 1] = np.where(wanted, values[running, :, number - 1], np.nan)
        outcome.rounds[running] = number
        outcome.processes[running] += wanted.sum(-1)
        if number < plan.least_rounds:
            continue
        state = look(seen[running, :, :number], plan, weights)
        _note(outcome, running, state, difference, number)
        is_open = state.undecided.any(-1)
        wanted = state.undecided[is_open]
        np.put_along_axis(wanted, state.order[is_open, :1], True, axis=-1)
        running = running[is_open]
    return outcome


def _note(outcome: Outcome, running: NDArray[np.intp], state: Look, difference: Floats, number: int) -> None:
    equal = np.isfinite(state.equal)
    called = np.isfinite(state.different) & ~equal
    right = called & (np.sign(state.evidence.mean) == np.sign(difference))
    outcome.false_difference[running] |= (called & ~right).any(-1)
    outcome.false_equality[running] |= (equal & (np.abs(difference) >= np.log1p(state.margin)[:, None])).any(-1)
    outcome.decided[running] |= called | equal
    known = outcome.different_from[running]
    outcome.different_from[running] = np.where((known == 0) & right, number, known)
