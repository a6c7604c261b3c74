"""What contenders cost apart from the time of steps: the time before the second step, and peak memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.results.quantities import PEAK_MEMORY

if TYPE_CHECKING:
    from steelyard.analysis.model import Comparison, Contender


@dataclass(frozen=True)
class StartAndMemory:
    """`started`: the contenders whose phases before the second step were recorded, `sized`: those with a peak memory, in bytes.

    `largest`: whether a size is the largest of all rounds, because their mean is in the table. `of_ranks`: whether sizes are sums
    over several ranks.
    """

    started: list[Contender]
    sized: list[tuple[Contender, int]]
    largest: bool
    of_ranks: bool


def start_and_memory(comparison: Comparison) -> StartAndMemory:
    """Return which contenders of a comparison have a recorded start and a recorded peak memory."""
    started = [each for each in comparison.contenders if any(each.phases_ns.values())]
    sized = [(each, size) for each in comparison.contenders if (size := each.peak_bytes)]
    return StartAndMemory(
        started,
        sized,
        comparison.quantity.name == PEAK_MEMORY.name,
        any(trial.others for each, _ in sized for trial in each.trials),
    )
