"""The cost of ranks beside their framework: our timed block against a bare loop, and starting two ranks against one process."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks.implementations import HERE, BenchmarkError, inputs_for, row
from benchmarks.installed import interpreters
from benchmarks.rows import Row
from steelyard.catalog import frameworks
from steelyard.catalog.frameworks import WORKER
from steelyard.environments.interpreter import clean_environ
from steelyard.measure import hosts, spread_process
from steelyard.measure.jobs import certifying, measuring
from steelyard.measure.launch import Guard, launch
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard.results.trials import JOB

if TYPE_CHECKING:
    from steelyard.plan.run_plan import RunPlan

# A step of about 20 ms on one core, without batch norm.
GROUP, BATCH = "vgg16:tiny", 8
PAIRS, BLOCK_S, STARTS = 30, 1.0, 3
LIMIT_S = 300
KINDS = ("processes", "server")


def measure(names: list[str] | None = None) -> list[Row]:
    """Return the rows of every framework whose environment can be created."""
    rows = []
    for name, python in interpreters(names):
        spread = frameworks.framework(name).strategies.items()
        rows += [_overhead(name, each, python) for each, how in spread if how.kind in KINDS]
        rows.append(_start(name, python))
    return rows


def _plan(name: str, strategy: str, protocol: str = "fixed:1+1") -> RunPlan:
    return resolve.plan(
        Options(
            workloads=(GROUP,),
            frameworks=(name,),
            batches=(BATCH,),
            strategies=(strategy,),
            threads=(1,),
            protocol=protocol,
            synthetic=True,
        )
    )


def _overhead(name: str, strategy: str, python: Path) -> Row:
    plan = _plan(name, f"{strategy}:2")
    (variant,) = plan.variants
    with TemporaryDirectory() as folder:
        job = certifying(plan, variant, inputs_for(plan), Path(folder))
        line = Path(folder, JOB)
        line.write_text(json.dumps(asdict(job)), encoding="utf-8")
        found = Path(folder, "found.json")
        request = {
            "worker": str(WORKER),
            "folder": str(HERE / "frameworks" / name),
            "pairs": PAIRS,
            "block_s": BLOCK_S,
            "found": str(found),
        }
        assert job.spread is not None
        environ = clean_environ(python) | job.variables | {"STEELYARD_BENCHMARK": json.dumps(request)}
        with hosts.of(job, None) as places:
            argv, environ = spread_process.started(job, job.spread, python, WORKER, environ, places, line)
            argv = [str(HERE / "inside_ranks.py") if part == str(WORKER / "__main__.py") else part for part in argv]
            done = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        if done.returncode or not found.exists():
            raise BenchmarkError(f"{variant.key} failed:\n{done.stderr[-2000:]}")
        read = json.loads(found.read_text(encoding="utf-8"))
    return row(f"block of two ranks / bare loop, {name}, {strategy}", read, 1.01, "at most")


def _start(name: str, python: Path) -> Row:
    """Compare ranks that exchange nothing, so that the framework's own rendezvous is not in it."""
    one, two = (median(_first_step_s(name, each, python) for _ in range(STARTS)) for each in ("single:1", "alone:2"))
    how = f"{two:.1f} s / {one:.1f} s to the first step, medians of {STARTS}"
    return Row(f"start of two ranks / one process, {name}", two / one, 1.5, "at most", how)


def _first_step_s(name: str, strategy: str, python: Path) -> float:
    plan = _plan(name, strategy)
    (variant,) = plan.variants
    with TemporaryDirectory() as folder:
        job = measuring(plan, variant, inputs_for(plan), 1, 0, Path(folder, "trial"))
        trial = launch(job, python, lambda _: None, Guard(LIMIT_S))
    if trial.error:
        raise BenchmarkError(f"{variant.key} failed: {trial.error[1]}")
    return (trial.first_step_since_spawn_ns or 0) / 1e9
