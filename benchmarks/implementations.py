"""Per framework: the harness over a bare loop of the same objects, in one process each; and how such processes are run."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from steelyard.inputs.group_inputs import GroupInputs

from benchmarks.rows import Row
from steelyard import environments
from steelyard.catalog import frameworks
from steelyard.catalog.frameworks import WORKER
from steelyard.inputs import group_inputs
from steelyard.inputs.data.synthetic import synthesise
from steelyard.inputs.weights import initialise
from steelyard.measure.jobs import certifying
from steelyard.plan import resolve as plan
from steelyard.plan.options import Options
from steelyard_worker.protocol import Data

if TYPE_CHECKING:
    from steelyard.plan.cells import Cell

    from steelyard.plan.resolve import RunPlan

HERE = Path(__file__).parent
# Steps of about 1 ms and about 10 ms.
OVERHEAD = ("lstm-imdb:tiny", "lstm-imdb:reviews")
OVERHEAD_LIMITS = ((5.0, 1.02), (math.inf, 1.005))
"""(up to this many ms per step, limit of harness / bare loop)."""


def measure(names: list[str] | None = None) -> list[Row]:
    """Return the rows of every framework whose environment can be made."""
    names = names or list(frameworks.contenders())
    made = environments.ensure_all(environments.plan_environments(names, "cpu"))
    rows = []
    for name, environment in made.items():
        if isinstance(environment, environments.Failure):
            print(environment.sentence, file=sys.stderr)
            continue
        rows += [_overhead(name, environment.python, group) for group in OVERHEAD]
    return rows


def _overhead(name: str, python: Path, group: str) -> Row:
    found = run_inside(planned_for(name, group), python, "bare", pairs=300, block_s=0.03)
    limit = next(limit for up_to, limit in OVERHEAD_LIMITS if found["step_ms"] <= up_to)
    return row(f"harness / bare loop, {name}, {group}", found, limit, "at most")


def row(title: str, found: dict[str, Any], limit: float, sense: str) -> Row:
    """Return the median ratio of the pairs: a neighbour that takes the machine for a moment must not decide."""
    logs = [math.log(ratio) for ratio in found["ratios"]]
    middle = median(logs)
    spread = 1.4826 * median(abs(each - middle) for each in logs)
    error = 1.2533 * spread / math.sqrt(len(logs))
    detail = (
        f"{found['step_ms']:.2f} ms a step, {len(logs)} pairs of {found['steps']} steps, standard error {error:.2%}"
    )
    return Row(title, math.exp(middle), limit, sense, detail)


def planned_for(name: str, group: str) -> RunPlan:
    """Return the plan of one workload and preset in one framework, without data."""
    return plan.plan(Options(workloads=(group,), frameworks=(name,), protocol="fixed:1+1", synthetic=True))


def run_inside(
    planned: RunPlan, python: Path, against: str, pairs: int, block_s: float, packages: Path | str = ""
) -> dict[str, Any]:
    """Run `inside.py` in a framework's interpreter; returns what it printed. BenchmarkError has the end of what it complained."""
    (cell,) = planned.cells
    job = certifying(planned, cell, materials_of(planned, cell), Path("/nonexistent"))
    request = {
        "worker": str(WORKER), "job": asdict(replace(job, data=replace(job.data, prepared="", order=""))),
        "against": against, "folder": str(HERE / "frameworks" / cell.framework), "packages": str(packages),
        "pairs": pairs, "block_s": block_s,
    }  # fmt: skip
    done = subprocess.run(
        [str(python), "-I", str(HERE / "inside.py")], input=json.dumps(request) + "\n", capture_output=True, text=True,
        env=environments.clean_environ(python), check=False,
    )  # fmt: skip
    if done.returncode:
        raise BenchmarkError(f"{cell.key} against {against} failed:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


class BenchmarkError(Exception):
    """A process of a benchmark ended badly."""


def materials_of(planned: RunPlan, cell: Cell) -> GroupInputs:
    """Weights and a synthetic batch are all that is needed: no data set is fetched."""
    workload, preset = planned.preset(cell.group)
    network = workload.network(preset)
    synthetic = synthesise(network, preset.sizes["batch"], group_inputs.SYNTHETIC_SEED, workload.spec_hash(preset))
    return GroupInputs(initialise(network.parameters, 1), Data(str(synthetic)), "synthetic", {}, "")
