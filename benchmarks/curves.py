"""How often intervals over trainings hold their truth, simulated: shares that have arrived, medians, learning curves."""

from __future__ import annotations

from tests.statistics.simulated_trainings import Truth, covers_curve, covers_median, covers_share

from benchmarks.rows import Row
from steelyard.statistics.curves import coverage

COUNT = 400
SEEDS = (5, 6, 10)
ROUNDS = 3
# Three standard errors of a share of 95 % in COUNT runs, and the smallest of several places.
BY_CHANCE = 4.0


def measure() -> list[Row]:
    """Return the share of simulated runs whose interval holds the truth, in percent."""
    truth, rows = Truth(), []
    for seeds in SEEDS:
        how = f"{COUNT} runs of {seeds} seeds with {ROUNDS} rounds, evaluated after each of {truth.epochs} epochs"
        for name, covers, least in (
            ("share that has arrived", covers_share, 0.95),
            ("median time to a threshold", covers_median, 0.95),
            ("median learning curve", covers_curve, coverage(seeds)),
        ):
            found = 100 * covers(truth, seeds, ROUNDS, COUNT)
            rows.append(
                Row(
                    f"{name}: {100 * least:.1f} % interval of {seeds} seeds, %",
                    found,
                    100 * least - BY_CHANCE,
                    "at least",
                    how,
                )
            )
    return rows
