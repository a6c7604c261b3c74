"""Figures that README and docs claim and that follow from the rules, from recorded noise, or from a simulation of seconds."""

from __future__ import annotations

import re
from functools import cache
from math import comb, erf, sqrt

import numpy as np
from scipy import integrate, stats

from benchmarks import decisions, effort, noises, waits
from steelyard.statistics import decision_plan, pair_evidence
from steelyard.statistics.decision import DecisionPlan

PLAN = DecisionPlan()
FAMILIES = 4000
STEPS = 200
COMPARISONS = 20_000


def differs_by_steps(process: float, step: float = 0.02) -> float:
    """Return how often a 95 % interval over the steps of one process each calls two equal frameworks different.

    `process`, `step`: relative standard deviations between processes and between steps.
    """
    noise = step * sqrt(2 / STEPS)
    z = stats.norm.ppf(0.975) * noise / sqrt(noise**2 + 2 * process**2)
    return 1 - erf(z / sqrt(2))


@cache
def missed_by_looks() -> float:
    """Return how often the ordinary 95 % interval misses the truth at some look of the rounds."""
    values = np.random.default_rng(1).normal(size=(COMPARISONS, PLAN.most_rounds))
    missed = np.zeros(COMPARISONS, dtype=bool)
    for rounds in range(PLAN.least_rounds, PLAN.most_rounds + 1):
        seen = values[:, :rounds]
        half = stats.t.ppf(0.975, rounds - 1) * seen.std(axis=1, ddof=1) / sqrt(rounds)
        missed |= np.abs(seen.mean(axis=1)) > half
    return float(missed.mean())


def least_variance(rounds: int) -> tuple[int, int]:
    """Return the least share of a pair's own variance in the one that is used, as a numerator and a denominator."""
    own = rounds - 1
    weight = min(pair_evidence.OTHERS_WEIGHT, pair_evidence.OTHERS_OVER_OWN * own)
    return own, round(own + weight)


def widths_of_planned(contenders: int = 35, planned: int = 30, rounds: int = 3) -> tuple[float, float]:
    """Return by how much intervals of planned pairs are narrower, and of the others wider, than with equal parts."""
    pairs = comb(contenders, 2)
    error, freedom = float(PLAN.error_at(np.array([rounds]))[0]), sum(least_variance(rounds)) - (rounds - 1)
    share = decision_plan.PLANNED_SHARE

    def half(part: float) -> float:
        return float(stats.t.ppf(1 - error * part / 2, freedom))

    equal = half(1 / pairs)
    return equal / half(share / planned), half((1 - share) / (pairs - planned)) / equal


@cache
def found(contenders: int, rounds: int) -> float:
    """Return how often a true difference of 5 % at a scatter of 0.8 % is found within so many rounds."""
    return decisions.found(np.random.default_rng(2), FAMILIES, contenders, rounds).value


@cache
def rounds_of_equal(contenders: int) -> float:
    """Return after how many rounds equal contenders are decided, on average, at a scatter of 0.8 %."""
    return decisions.rounds_of_equal_contenders(np.random.default_rng(3), FAMILIES, contenders, 0.0).value


@cache
def recorded_scatters() -> list[float]:
    """Return the scatter of the log ratio of two processes in each recording."""
    return [noises.ratio_scatter(each.rounds) for each in noises.recordings(noises.RECORDED)]


def agree_by_chance(rounds: int) -> float:
    """Return how often all ratios of so many rounds agree where each is one of two values, by chance."""
    return 2.0 ** (1 - rounds)


def own_scatter_from(contenders: int) -> int:
    """Return the round from which on a pair may be decided on its own scatter alone."""
    return pair_evidence.own_rounds(comb(contenders, 2))


@cache
def noise_ratio() -> float:
    """Return s_step / s_process of the recorded blocks."""
    noise = effort.recorded()
    return noise.step / noise.process


def luck_of_the_best(tries: int = 20, scatter: float = 0.05) -> float:
    """Return by how much the smallest of equal times looks smaller than it is: the expected extreme of normal values."""

    def density(x: float) -> float:
        return float(x * tries * stats.norm.pdf(x) * stats.norm.cdf(x) ** (tries - 1))

    return scatter * float(integrate.quad(density, -10, 10)[0])


def less_memory_for(more_time: float) -> float:
    """Return the reduction of memory that outweighs this increase of time, where time has twice the weight."""
    return 1 - 1 / (1 + more_time) ** 2


def pooled_waits(text: str) -> waits.Pooled:
    """Return the mean of the ratios after a wait that a text has in its table."""
    rows = re.findall(r"\| `[a-z0-9:-]+` ((?:\| [\d.]+ ± [\d.]+ )+)\|", text)
    values = [tuple(map(float, each)) for row in rows for each in re.findall(r"([\d.]+) ± ([\d.]+)", row)]
    return waits.pooled([(ratio, error) for ratio, error in values])
