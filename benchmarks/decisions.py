"""How often the sequential rule is wrong, how soon it finds a true difference, and how long a decision takes.

Run as `python -m benchmarks.decisions [--noise FILE]`; FILE contains a JSON list of recorded A/A log ratios.
"""

import argparse
import json
import sys
from collections.abc import Callable
from math import log
from pathlib import Path
from time import perf_counter_ns

from benchmarks.rows import Row
from steelyard.errors import UserError
from steelyard.statistics.decision import DecisionPlan, decide
from steelyard.statistics.simulation import (
    NoiseSource,
    Simulation,
    bootstrapped_noise,
    lognormal_noise,
    simulate,
    simulated_calibration,
)

FRAMEWORKS = ("a", "b", "c", "d", "e")
COMPARISONS = 200
PLAN = DecisionPlan()


def measure(recorded: list[float] | None = None, seed: int = 20240229) -> list[Row]:
    """Return the rows; A/A noise is bootstrapped from `recorded` log ratios, or lognormal with a standard deviation of 0.8 %."""
    kind = f"bootstrapped from {len(recorded)} recorded A/A rounds" if recorded else "lognormal, s_d 0.8 %"
    sample = bootstrapped_noise(recorded, seed) if recorded else lognormal_noise(0.008, seed)
    strong = lognormal_noise(0.03, seed)
    return [
        _wrong_decisions("A/A comparisons called different (share)", sample, 2, COMPARISONS, kind),
        _wrong_decisions(
            "A/A comparisons called different, strong noise (share)", strong, 2, 2000, "lognormal, s_d 3 %"
        ),
        _wrong_decisions("five equal frameworks, any called different (share)", sample, 5, COMPARISONS, kind),
        _found(lognormal_noise(0.008, seed + 1)),
        _cost(lognormal_noise(0.008, seed + 2)),
    ]


def _wrong_decisions(name: str, sample: NoiseSource, frameworks: int, comparisons: int, kind: str) -> Row:
    simulations = _simulations(dict.fromkeys(FRAMEWORKS[:frameworks], 0.0), sample, comparisons)
    wrong = sum(one.called_different for one in simulations)
    rounds = sum(one.ranking.rounds_run for one in simulations) / comparisons
    detail = f"{wrong} of {comparisons} at any look, {rounds:.1f} rounds on average, noise {kind}"
    return Row(name, wrong / comparisons, 0.05, "at most", detail)


def _found(sample: NoiseSource) -> Row:
    simulations = _simulations({"a": 0.0, "b": log(1.05)}, sample, COMPARISONS)
    found = sum(_is_right_after_three(one) for one in simulations)
    detail = f"{found} of {COMPARISONS}, noise 0.8 %, nine calibration rounds"
    return Row("true 5 % difference found within 3 rounds (share)", found / COMPARISONS, 0.95, "at least", detail)


def _is_right_after_three(one: Simulation) -> bool:
    verdict = one.ranking.between("a", "b")
    return verdict is not None and verdict.kind == "better" and verdict.rounds == 3


def _cost(sample: NoiseSource) -> Row:
    rounds = {key: {number: 1e6 + 1e6 * abs(sample()) for number in range(1, 13)} for key in FRAMEWORKS}
    noise = simulated_calibration(sample)
    decide(rounds, noise, PLAN)
    best = min(_elapsed_ns(lambda: decide(rounds, noise, PLAN)) for _ in range(50))
    return Row("one decision of five frameworks, 12 rounds (ms)", best / 1e6, 10.0, "at most", "best of 50")


def _simulations(log_times: dict[str, float], sample: NoiseSource, comparisons: int) -> list[Simulation]:
    """Simulate comparisons, each on a newly calibrated machine: nine A/A rounds of the same noise."""
    return [simulate(log_times, sample, simulated_calibration(sample), PLAN) for _ in range(comparisons)]


def _elapsed_ns(call: Callable[[], object]) -> int:
    start = perf_counter_ns()
    call()
    return perf_counter_ns() - start


def _recorded(path: Path) -> list[float]:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(
            f"The recorded noise {path} cannot be read ({error}). Pass a JSON list of log ratios."
        ) from error
    if not isinstance(stored, list) or len(stored) < 2 or not all(isinstance(x, int | float) for x in stored):
        raise UserError(f"The recorded noise {path} is not a list of at least two log ratios. Pass such a JSON list.")
    return [float(x) for x in stored]


def main() -> int:
    """Print the rows; return 1 if one misses its limit."""
    from rich.console import Console
    from rich.table import Table

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--noise", type=Path, metavar="FILE", help="JSON list of recorded A/A log ratios")
    arguments = parser.parse_args()
    rows = measure(_recorded(arguments.noise) if arguments.noise else None)
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
