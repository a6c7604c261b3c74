"""Successive halving: many candidates are measured a little, the faster half of them again, and so on until one is left. Pure.

Source: Karnin, Koren, Somekh, "Almost Optimal Exploration in Multi-Armed Bandits", ICML 2013. Here the first stage measures as
many candidates as there is time for, and every later stage doubles the measurements of those that are left.
"""

from collections.abc import Mapping, Sequence
from math import ceil


def ordered(costs: Mapping[str, Sequence[float]]) -> list[str]:
    """Return the candidates that have costs, the one with the smallest cost first.

    `costs`: candidate -> costs of its measurements so far. The smallest counts, because other programs and the host of a
    virtual machine only add time. Candidates with equal costs keep their order.
    """
    least = {name: min(found) for name, found in costs.items() if found}
    return sorted(least, key=lambda name: least[name])


def better_half(costs: Mapping[str, Sequence[float]]) -> list[str]:
    """Return the better half of the candidates in order, at least one if there is any."""
    found = ordered(costs)
    return found[: ceil(len(found) / 2)]


def measurements(stage: int) -> int:
    """Return how many measurements a candidate should have after a stage (from 1): 1, 2, 4, 8 and so on."""
    return 1 << (stage - 1)
