"""For each framework: the time of steelyard's training step relative to a bare loop around the same objects."""

from __future__ import annotations

import json
import math
import subprocess
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.installed import interpreters
from benchmarks.rows import Row, Sense
from steelyard import environments
from steelyard.catalog.frameworks import WORKER
from steelyard.inputs import case_inputs
from steelyard.measure.jobs import certifying
from steelyard.plan import resolve
from steelyard.plan.options import Options

if TYPE_CHECKING:
    from steelyard.inputs.case_inputs import CaseInputs
    from steelyard.plan.run_plan import RunPlan

HERE = Path(__file__).parent
# Steps of about 1 ms and about 10 ms.
OVERHEAD = ("lstm-imdb:tiny", "lstm-imdb:reviews")
# (up to this many ms per step, largest ratio allowed)
OVERHEAD_LIMITS = ((5.0, 1.02), (math.inf, 1.005))


def measure(names: list[str] | None = None) -> list[Row]:
    """Return the rows of every framework whose environment can be created."""
    rows = []
    for name, python in interpreters(names):
        rows += [_overhead(name, python, group) for group in OVERHEAD]
    return rows


def _overhead(name: str, python: Path, group: str) -> Row:
    found = run_inside(plan_for(name, group), python, "bare", pairs=300, block_s=0.03)
    limit = next(limit for up_to, limit in OVERHEAD_LIMITS if found["step_ms"] <= up_to)
    return row(f"training step / bare loop, {name}, {group}", found, limit, "at most")


def row(title: str, found: dict[str, Any], limit: float, sense: Sense) -> Row:
    """Return a row with the median ratio of the pairs; the median is robust against a short disturbance by another program."""
    ratios, error = found["ratios"], standard_error(found["ratios"])
    detail = (
        f"{found['step_ms']:.2f} ms a step, {len(ratios)} pairs of {found['steps']} steps, standard error {error:.2%}"
    )
    return Row(title, math.exp(median(map(math.log, ratios))), limit, sense, detail)


def standard_error(ratios: list[float]) -> float:
    """Return the standard error of the median of ratios, relative, from their median absolute deviation."""
    logs = [math.log(ratio) for ratio in ratios]
    middle = median(logs)
    spread = 1.4826 * median(abs(each - middle) for each in logs)
    return 1.2533 * spread / math.sqrt(len(logs))


def plan_for(name: str, group: str, batch: int = 0, protocol: str = "fixed:1+1") -> RunPlan:
    """Return the plan of one workload and preset in one framework, with synthetic batches."""
    return resolve.plan(
        Options(
            workloads=(group,), frameworks=(name,), protocol=protocol, batches=(batch,) if batch else (), synthetic=True
        )
    )


def run_inside(
    plan: RunPlan, python: Path, against: str, pairs: int, block_s: float, packages: Path | str = ""
) -> dict[str, Any]:
    """Run `inside.py` in a framework's interpreter and return its result. Raises BenchmarkError with its last errors."""
    (variant,) = plan.variants
    job = certifying(plan, variant, inputs_for(plan), Path("/nonexistent"))
    request = {
        "worker": str(WORKER),
        "job": asdict(job),
        "against": against,
        "folder": str(HERE / "frameworks" / variant.case.framework),
        "packages": str(packages),
        "pairs": pairs,
        "block_s": block_s,
    }
    done = subprocess.run(
        [str(python), "-I", str(HERE / "inside.py")],
        input=json.dumps(request) + "\n",
        capture_output=True,
        text=True,
        env=environments.clean_environ(python),
        check=False,
    )
    if done.returncode:
        raise BenchmarkError(f"{variant.key} against {against} failed:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


class BenchmarkError(Exception):
    """A process of a benchmark failed."""


def inputs_for(plan: RunPlan) -> CaseInputs:
    """Return the inputs of the only case of a plan: weights and a synthetic batch, as plans here have no data set."""
    (inputs,) = case_inputs.prepare(plan, lambda _: None).values()
    return inputs
