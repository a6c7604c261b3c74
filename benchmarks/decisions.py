"""How often the sequential rule is wrong under many kinds of noise, how soon it finds a difference, and its cost.

Run as `python -m benchmarks.decisions [--families N] [--noise FILE]`. FILE holds recorded times of identical contenders, as
`benchmarks.record_noise` writes them.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from math import log, log1p, sqrt
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING

import numpy as np

from benchmarks import noises, scopes
from benchmarks.rows import Row
from steelyard.errors import UserError
from steelyard.statistics.decision import DecisionPlan, decide
from steelyard.statistics.pair_evidence import pair_indices
from steelyard.statistics.simulation import simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.noises import Noise, Recording

FAMILIES = 1000
PLAN = DecisionPlan()
QUIET = 0.008
"""Standard deviation of the log ratio of two processes on a quiet machine."""
MOST_WRONG = 0.055
SCATTERS = tuple(QUIET * factor for factor in (0.3, 1.0, 1.8, 3.0, 10.0))


def measure(families: int = FAMILIES, file: Path = noises.RECORDED, seed: int = 20240229) -> list[Row]:
    """Return the rows. Every family of contenders is measured until the rule ends the run."""
    random = np.random.default_rng(seed)
    recordings = noises.recordings(file)
    return [
        *_differences(random, families, recordings),
        *_equalities(random, families, recordings),
        *scopes.rows(families, file),
        found(random, families, contenders=5, rounds=3),
        found(random, families, contenders=2, rounds=4),
        *(rounds_of_equal_contenders(random, families, contenders, most) for contenders, most in ((2, 5.0), (5, 6.2))),
        _cost(random),
    ]


def _differences(random: np.random.Generator, families: int, recordings: list[Recording]) -> Iterator[Row]:
    """Return the families of equal contenders in which any two were called different at any look."""
    loud = ("scatter of processes 9 %", partial(noises.normal, scatter=0.09 * sqrt(2)), noises.CONTENDERS)
    quiet = [
        (
            f"recorded: {each.name}; scaled to 0.8 %",
            partial(noises.permuted, rounds=noises.scaled(each.rounds, QUIET)),
            (2, 3),
        )
        for each in recordings
    ]
    normal = [(_scatter(scatter), partial(noises.normal, scatter=scatter), noises.CONTENDERS) for scatter in SCATTERS]
    kinds: list[tuple[str, Noise, tuple[int, ...]]] = [*normal, loud, *noises.conditions(recordings), *quiet]
    for name, noise, counts in kinds:
        wrong = {}
        for contenders in counts:
            outcome = simulate(noise(random, (families, contenders)), np.zeros(contenders), PLAN)
            wrong[contenders] = float(outcome.false_difference.mean())
        yield _worst(f"false difference, {name} (share)", wrong, families)


def _equalities(random: np.random.Generator, families: int, recordings: list[Recording]) -> Iterator[Row]:
    """Return the families in which two were called equal although they differ by the whole margin."""
    kinds: list[tuple[str, Noise, tuple[int, ...], float]] = [
        (_scatter(scatter), partial(noises.normal, scatter=scatter), noises.CONTENDERS, scatter) for scatter in SCATTERS
    ]
    kinds += [(f"{name}, scaled to 1 %", noise, counts, 0.01) for name, noise, counts in noises.conditions(recordings)]
    for name, noise, counts, scatter in kinds:
        wrong = {}
        for contenders in counts:
            truth = np.where(np.arange(contenders) < contenders // 2, 0.0, log1p(max(PLAN.delta, 1.4 * scatter)))
            values = noises.scaled(noise(random, (families, contenders)), scatter)
            wrong[contenders] = float(simulate(values + truth[:, None], truth, PLAN).false_equality.mean())
        yield _worst(f"false equality, {name} (share)", wrong, families)


def _scatter(scatter: float) -> str:
    return f"scatter {noises.percent(scatter)}"


def _worst(name: str, wrong: dict[int, float], families: int) -> Row:
    # What 5 % gives by chance: above 5.5 % only for fewer than ten thousand families.
    limit = max(MOST_WRONG, 0.05 + 2.3 * sqrt(0.05 * 0.95 / families))
    shares = ", ".join(f"{contenders}: {100 * share:.1f} %" for contenders, share in wrong.items())
    return Row(name, max(wrong.values()), round(limit, 4), "at most", f"worst of {shares} ({families:,} families each)")


def found(random: np.random.Generator, families: int, contenders: int, rounds: int) -> Row:
    """Return how often a true difference of 5 % is found within so many rounds."""
    truth = np.zeros(contenders)
    truth[-1] = log(1.05)
    outcome = simulate(noises.normal(random, (families, contenders), QUIET) + truth[:, None], truth, PLAN)
    with_last = pair_indices(contenders)[1] == contenders - 1
    in_time = (outcome.different_from > 0) & (outcome.different_from <= rounds)
    detail = f"one 5 % slower than the others, each pair; all its pairs: {in_time[:, with_last].all(1).mean():.3f}"
    name = f"true 5 % difference found within {rounds} rounds, {contenders} contenders (share)"
    return Row(name, float(in_time[:, with_last].mean()), 0.95, "at least", f"{detail}; scatter 0.8 %")


def rounds_of_equal_contenders(random: np.random.Generator, families: int, contenders: int, most: float) -> Row:
    """Return after how many rounds equal contenders are decided, on average."""
    outcome = simulate(noises.normal(random, (families, contenders), QUIET), np.zeros(contenders), PLAN)
    name = f"rounds until {contenders} equal contenders are decided (mean)"
    return Row(name, float(outcome.rounds.mean()), most, "at most", "scatter 0.8 %, margin 2 %")


def _cost(random: np.random.Generator) -> Row:
    values = np.exp(noises.normal(random, (1, 5), QUIET)[0])
    rounds = {key: dict(enumerate(map(float, row), start=1)) for key, row in zip("abcde", values, strict=True)}
    decide(rounds, PLAN)
    best = min(_elapsed_ns(lambda: decide(rounds, PLAN)) for _ in range(50))
    return Row("one decision of five frameworks, 12 rounds (ms)", best / 1e6, 10.0, "at most", "best of 50")


def _elapsed_ns(call: Callable[[], object]) -> int:
    start = perf_counter_ns()
    call()
    return perf_counter_ns() - start


def main() -> int:
    """Print the rows; return 1 if one misses its limit."""
    from rich.console import Console
    from rich.table import Table

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", type=int, default=FAMILIES, metavar="N", help="simulated families per condition")
    parser.add_argument("--noise", type=Path, default=noises.RECORDED, metavar="FILE", help="recorded times")
    arguments = parser.parse_args()
    rows = measure(arguments.families, arguments.noise)
    table = Table("figure", "value", "limit", "", "how", title="Decisions")
    for row in rows:
        limit = f"{row.sense} {row.limit:g}"
        table.add_row(row.name, f"{row.value:.3g}", limit, "ok" if row.ok else "MISSED", row.detail)
    Console().print(table)
    return 0 if all(row.ok for row in rows) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except UserError as error:
        sys.exit(str(error))
