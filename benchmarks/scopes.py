"""How often any word of a table is wrong at the scatter that noise has by itself: differences, equalities, and both together.

The error of 5 % is that of all differences of a table, over all pairs and all looks, and once more that of all equalities. Here
the two are also counted together. Contenders are equal, or half of them slower by about the margin, so that both kinds of words
can be wrong in one table. `python -m benchmarks.scopes [--families N] [--noise FILE]` prints the table of docs/methods.md.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from functools import partial
from math import log1p, sqrt
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks import noises
from benchmarks.rows import Row
from steelyard.errors import UserError
from steelyard.statistics.decision import DecisionPlan
from steelyard.statistics.looks import MARGIN_OVER_SCATTER
from steelyard.statistics.simulation import simulate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.noises import Floats, Noise

FAMILIES = 1000
PLAN = DecisionPlan()
SCATTERS = (0.01, 0.05, 0.15)
MULTIPLES = (0.0, 0.8, 1.0, 1.25)
"""True differences of half of the contenders from the others, over the margin at that scatter."""
FEWER_FROM, FEWER = 12, 10
"""Tables of so many contenders are simulated for a tenth of the families: they have 66 pairs."""
MOST_WRONG = 0.055
MOST_WRONG_IF_ONE_IS_NOISY = 0.07
NOISY = (10.0, 100.0)


@dataclass(frozen=True)
class Shares:
    """Largest shares of families with a wrong difference, a wrong equality, and either; over truths and numbers of contenders."""

    different: float
    equal: float
    either: float


def rows(families: int = FAMILIES, file: Path = noises.RECORDED, seed: int = 20261129) -> list[Row]:
    """Return a row for each kind of noise: the share of families with any wrong word."""
    random = np.random.default_rng(seed)
    return [
        _row(name, shares(random, families, noise, counts), min(_families(families, count) for count in counts))
        for name, noise, counts in kinds(file)
    ]


def kinds(file: Path) -> Iterator[tuple[str, Noise, tuple[int, ...]]]:
    """Yield kinds of noise with their own scatter, and recordings scaled to three; each with numbers of contenders."""
    recordings = noises.recordings(file)
    for scatter in SCATTERS:
        yield f"normal, scatter {noises.percent(scatter)}", partial(noises.normal, scatter=scatter), noises.CONTENDERS
    yield from noises.conditions(recordings)
    for times in NOISY:
        yield f"one contender {times:.0f} times as noisy", partial(noises.one_noisier, times=times), noises.CONTENDERS
    for recording in recordings:
        for scatter in SCATTERS:
            noise = partial(noises.permuted, rounds=noises.scaled(recording.rounds, scatter))
            yield (
                f"recorded: {recording.name}; scaled to {noises.percent(scatter)}",
                noise,
                noises.numbers_of(recording),
            )


def shares(random: np.random.Generator, families: int, noise: Noise, counts: tuple[int, ...]) -> Shares:
    """Return the largest shares of families with wrong words."""
    found = [
        _of(noise(random, (_families(families, count), count)), multiple) for count in counts for multiple in MULTIPLES
    ]
    return Shares(*(max(getattr(each, name) for each in found) for name in Shares.__dataclass_fields__))


def _of(values: Floats, multiple: float) -> Shares:
    """Return the shares where half of the contenders are slower by this multiple of the margin."""
    margin = log1p(max(PLAN.delta, MARGIN_OVER_SCATTER * _scatter(values)))
    contenders = values.shape[1]
    truth = np.where(np.arange(contenders) < contenders // 2, 0.0, multiple * margin)
    outcome = simulate(values + truth[:, None], truth, PLAN)
    different, equal = outcome.false_difference, outcome.false_equality
    return Shares(float(different.mean()), float(equal.mean()), float((different | equal).mean()))


def _scatter(values: Floats) -> float:
    """Return the scatter of a round's log ratio, the median over all pairs and families."""
    first, second = np.triu_indices(values.shape[1], 1)
    return float(np.median((values[:, first] - values[:, second]).std(axis=-1, ddof=1)))


def _families(families: int, contenders: int) -> int:
    return max(100, families // FEWER) if contenders >= FEWER_FROM else families


def _row(name: str, found: Shares, families: int) -> Row:
    noisy = any(name == f"one contender {times:.0f} times as noisy" for times in NOISY)
    detail = f"wrongly different {found.different:.1%}, wrongly equal {found.equal:.1%}, at its own scatter"
    most = MOST_WRONG_IF_ONE_IS_NOISY if noisy else MOST_WRONG
    # What 5 % gives by chance in the fewest families of a table.
    limit = round(max(most, 0.05 + 2.3 * sqrt(0.05 * 0.95 / families)), 4)
    return Row(f"any wrong word in a table, {name} (share)", found.either, limit, "at most", detail)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", type=int, default=FAMILIES, metavar="N", help="simulated families per condition")
    parser.add_argument("--noise", type=Path, default=noises.RECORDED, metavar="FILE", help="recorded times")
    arguments = parser.parse_args()
    print("| noise | wrongly different | wrongly equal | any wrong word |")
    print("|---|---:|---:|---:|")
    for name, noise, counts in kinds(arguments.noise):
        found = shares(np.random.default_rng(20261129), arguments.families, noise, counts)
        print(f"| {name} | {found.different:.1%} | {found.equal:.1%} | {found.either:.1%} |", flush=True)


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(str(error))
