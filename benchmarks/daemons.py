"""Step times of the same training beside Ray's processes and without them, on one node with the run's own machine in it.

That is more than a node of a cluster bears, where the command that asks for events runs on another machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from math import exp, log, sqrt
from pathlib import Path
from statistics import fmean, stdev

from scipy.stats import t

from benchmarks.cluster import cluster
from benchmarks.rows import Row
from steelyard.files.paths import cache_folder
from steelyard.results import trials

PAIRS = 10
TRAINING = ("-w", "resnet18:digits", "-f", "pytorch", "--threads", "2", "--protocol", "fixed:20+200", "--rounds", "1")


def measure() -> list[Row]:
    """Return one row: the difference in terms of what chance explains."""
    logs = []
    with tempfile.TemporaryDirectory() as name:
        for number in range(PAIRS):
            beside = {on_ray: _step_s(Path(name), f"{number}-{on_ray}", on_ray) for on_ray in _order(number)}
            logs.append(log(beside[True] / beside[False]))
    middle, reach = fmean(logs), t.ppf(0.975, PAIRS - 1) * stdev(logs) / sqrt(PAIRS)
    how = f"{exp(middle):.4f} [{exp(middle - reach):.4f}, {exp(middle + reach):.4f}], {PAIRS} pairs of processes"
    return [Row("step beside Ray / without it: |log| / half of its interval", abs(middle) / reach, 1.0, "at most", how)]


def _order(number: int) -> tuple[bool, bool]:
    return (True, False) if number % 2 else (False, True)


def _step_s(root: Path, name: str, on_ray: bool) -> float:
    """Return the mean of the steps of one process."""
    place = cluster({"here": cache_folder()}) if on_ray else nullcontext("")
    with place as address:
        command = [sys.executable, "-m", "steelyard", "run", *TRAINING, "--no-guard", "--plain", *(["--on", "ray"] if on_ray else [])]
        env = {**os.environ, "STEELYARD_RUNS": str(root / name), "RAY_ADDRESS": address}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    (run,) = (path.parent for path in (root / name).glob("runs/*/run.json"))
    (trial,), _ = trials.read_all(run)
    return float(trial.speeds()["cached"])
