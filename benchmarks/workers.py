"""The cost of a worker in addition to its framework: seconds before the first step, and memory relative to a bare loop."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks.implementations import inputs_for, plan_for, run_inside
from benchmarks.installed import interpreters
from benchmarks.rows import Row
from steelyard.measure.jobs import measuring
from steelyard.measure.launch import Guard, launch

if TYPE_CHECKING:
    from steelyard.results.trials import Trial

# The preset with convolutions that has the most parameters, and a common one whose activations take most of the memory.
LARGEST, BATCH = "vgg16:imagenet", 1
COMMON = "resnet18:cifar10"
STEPS = 5


def measure(names: list[str] | None = None) -> list[Row]:
    """Return the rows of every framework whose environment can be created."""
    rows = []
    for name, python in interpreters(names):
        rows += [_start(name, python), _memory(name, python)]
    return rows


def _start(name: str, python: Path) -> Row:
    trial = _trial(name, python, LARGEST, BATCH)
    steady_ns = trial.location_ns("cached") or 0.0
    first_ns, import_ns = trial.phases_ns["first-step"], trial.phases_ns["import"]
    own_s = ((trial.first_step_since_spawn_ns or 0) - import_ns - first_ns + steady_ns) / 1e9
    how = f"without import ({import_ns / 1e9:.1f} s) and first step ({first_ns / 1e9:.1f} s), with one steady step"
    return Row(f"worker's start to first step, s, {name}, {LARGEST}", own_s, 2.0, "at most", how)


def _memory(name: str, python: Path) -> Row:
    ours = _trial(name, python, COMMON, 0).peak_resident_bytes or 0
    bare = run_inside(plan_for(name, COMMON), python, "bare alone", pairs=STEPS, block_s=0.0)["peak_bytes"]
    how = f"{ours / 2**20:,.0f} MiB / {bare / 2**20:,.0f} MiB, peaks of two processes"
    return Row(f"memory of a worker / bare loop, {name}, {COMMON}", ours / bare, 1.05, "at most", how)


def _trial(name: str, python: Path, group: str, batch: int) -> Trial:
    plan = plan_for(name, group, batch, f"fixed:1+{STEPS}")
    (variant,) = plan.variants
    with TemporaryDirectory() as folder:
        job = measuring(plan, variant, inputs_for(plan), 1, 0, Path(folder) / "trial")
        trial = launch(job, python, lambda _: None, Guard(600))
        if trial.error:
            raise SystemExit(f"{name} on {group} failed: {json.dumps(trial.error)}")
        return trial
