"""The cost of a worker in addition to its framework: seconds before the first step, and memory relative to a bare loop.

And what the check of a cached input costs each time, as the workers of a run start after it.
"""

from __future__ import annotations

import json
import os
import time
from math import inf
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks.implementations import inputs_for, plan_for, run_inside
from benchmarks.installed import interpreters
from benchmarks.rows import Row
from steelyard.files import atomic
from steelyard.measure.jobs import measuring
from steelyard.measure.launch import Guard, launch
from steelyard_worker import tensors

if TYPE_CHECKING:
    from steelyard.results.trials import Trial

# The preset with convolutions that has the most parameters, and a common one whose activations take most of the memory.
LARGEST, BATCH = "vgg16:imagenet", 1
COMMON = "resnet18:cifar10"
STEPS = 5
CHECKS = 20


def measure(names: list[str] | None = None) -> list[Row]:
    """Return the rows of every framework whose environment can be created."""
    rows = []
    for name, python in interpreters(names):
        rows += [start := _start(name, python), _memory(name, python)]
        if len(rows) == 2:
            rows += _checks(name, start.value)
    return rows


def _start(name: str, python: Path) -> Row:
    trial = _trial(name, python, LARGEST, BATCH)
    steady_ns = trial.location_ns("cached") or 0.0
    first_ns, import_ns = trial.phases_ns["first-step"], trial.phases_ns["import"]
    own_s = ((trial.first_step_since_spawn_ns or 0) - import_ns - first_ns + steady_ns) / 1e9
    how = f"without import ({import_ns / 1e9:.1f} s) and first step ({first_ns / 1e9:.1f} s), with one steady step"
    return Row(f"worker's start to first step, s, {name}, {LARGEST}", own_s, 2.0, "at most", how)


def _checks(name: str, start_s: float) -> list[Row]:
    """Return the time to check the largest input, over the start of a worker: as in every run, and with its content read."""
    inputs = inputs_for(plan_for(name, LARGEST, BATCH))
    folders = [Path(each) for each in (inputs.weights, inputs.data.synthetic, inputs.data.adversarial) if each]
    largest = max(folders, key=lambda each: (each / tensors.BYTES).stat().st_size)
    size = f"{(largest / tensors.BYTES).stat().st_size / 2**20:,.0f} MiB"
    (largest / atomic.VERIFIED).unlink(missing_ok=True)
    with (largest / tensors.BYTES).open("rb") as file:  # as after a start of the machine: not in its memory
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    read_s = _check_s(largest)
    noted_s = median(_check_s(largest) for _ in range(CHECKS))
    return [
        Row(
            f"check of the largest cached input / worker's start, {name}, {LARGEST}",
            noted_s / start_s,
            0.02,
            "at most",
            f"{noted_s * 1e3:.2f} ms for {size}, median of {CHECKS}",
        ),
        Row(
            f"the same with its content read from the disk, {name}, {LARGEST}",
            read_s / start_s,
            inf,
            "at most",
            f"{read_s:.2f} s, once per state of the file; no limit",
        ),
    ]


def _check_s(folder: Path) -> float:
    began = time.perf_counter()
    if not atomic.is_intact(folder):
        raise SystemExit(f"{folder} is damaged")
    return time.perf_counter() - began


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
