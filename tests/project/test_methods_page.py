"""The constants on the methods page are those of the code."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from steelyard.certificates import method
from steelyard.host import noise, withheld
from steelyard.measure import gemm, rounds
from steelyard.plan import protocols
from steelyard.results import standstill
from steelyard.statistics import decision_plan, effort, looks, pair_evidence
from steelyard_worker import steady

PAGE = Path(__file__).resolve().parents[2] / "docs" / "methods.md"
SEQUENTIAL = protocols.protocol("sequential")
TIMING = SEQUENTIAL.schedule
DECISION = SEQUENTIAL.decision(decision_plan.DecisionPlan.delta)

OWN_PARTS = round(1 / pair_evidence.OWN_SHARE)


def part(rounds: int) -> str:
    """Return the part of the error for a number of rounds, as on the page."""
    percent = Fraction(float(100 * DECISION.error_at(np.array([rounds]))[0])).limit_denominator(20)
    return f"{percent} %"


STATEMENTS = [
    f"A block lasts at least {TIMING.block_min_s} s and has at least {TIMING.block_min_steps} steps",
    f"steps, or as many as last {steady.LONG_BLOCK_S:.0f} s if steps are long.",
    f"as many as last {steady.ENOUGH_S:.0f} s are enough, and no fewer than {steady.FEWEST}",
    f"at least {TIMING.warmup_min_steps} steps and {TIMING.warmup_min_s} s",
    f"After {TIMING.warmup_cap_steps} steps or {TIMING.warmup_cap_s:.0f} s",
    f"limited to {TIMING.counted_min} ... {TIMING.counted_max}",
    f"Their ratio is {effort.FIRST_RATIO:.0f} in the first round",
    f"between {effort.LOWEST} and {effort.HIGHEST:.0f}",
    f"for more than {100 * standstill.SHARE:.0f} % of their time (and {standstill.SHORTEST_S} s)",
    f"work of other programs beyond {noise.FOREIGN_CORES} cores, and steal beyond {100 * noise.STEAL_SHARE:.0f} %",
    f"woke more than {withheld.LATE_S} s late",
    f"{steady.SETTLED_STEPS} warm-up steps are enough",
    f"more than {100 * noise.STEAL_SHARE:.0f} % of the processor time",
    f"more than {noise.FOREIGN_CORES} cores on average",
    f"more than {noise.SWAPPED_BYTES // 2**20} MiB was swapped",
    f"by more than {100 * noise.FREQUENCY_CHANGE:.0f} % between contenders",
    f"at most {['', 'once', 'twice'][rounds.MOST_ATTEMPTS - 1]}, if its severity is more than {noise.UNUSUAL} times the median",
    f"at most {pair_evidence.OTHERS_WEIGHT:.0f}, and at most {pair_evidence.OTHERS_OVER_OWN} for each degree of freedom",
    f"From {pair_evidence.OWN_ROUNDS} rounds on, {['', 'a half', 'a third', 'a quarter'][OWN_PARTS - 1]} of the error",
    f"called practically the same: {100 * DECISION.delta:.0f} %",
    f"the margin is {looks.MARGIN_OVER_SCATTER} times the scatter",
    f"after each of rounds {DECISION.least_rounds} to {DECISION.most_rounds}",
    f"The error of {100 * DECISION.error:.0f} % is therefore divided over the looks: {part(3)} for round 3",
    f"{part(6)} for each of rounds 4 to 6, and {part(12)} for each of rounds 2 and 7 to {protocols.MOST_ROUNDS}.",
    f"A speed above {gemm.MARGIN} times the fastest matrix product",
    f"They must agree to `1e-{-round(math.log10(method.AGREEMENT))}`",
    f"`u = 2^-24` is the unit roundoff of float32 (IEEE 754-2019) and `p = {method.NOISE_ROUNDINGS:.0f}`",
    f"error(x) <= {method.LIMIT:.0f} * level(x)",
    f"more than {method.FULL_SAMPLE:,} elements",
    f"exceeds once in {method.SIGN_CHANGE_ODDS:,.0f} tensors",
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_the_methods_page_states_the_constants_of_the_code(statement: str) -> None:
    assert statement in " ".join(PAGE.read_text(encoding="utf-8").split())


def test_rounding_and_steps_are_those_of_the_methods_page() -> None:
    assert method.UNIT_ROUNDOFFS["float32"] == 2.0**-24
    assert method.RANDOM_DRAW_NOISE == 2.0**-10
    assert (method.STEPS, len(method.PERTURBATIONS), len(method.RANDOM_DRAWS)) == (5, 3, 3)
