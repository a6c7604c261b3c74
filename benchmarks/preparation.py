"""Initial weights of the largest network: seconds to draw them, and memory over their size."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time

from benchmarks.rows import Row
from steelyard.catalog import workloads
from steelyard.inputs.weights import initialise

VGG = ("vgg16", "imagenet")
RUNS = 3


def measure() -> list[Row]:
    """Return seconds and memory for VGG16, each in fresh processes with an empty cache; the best counts, as disks differ."""
    found = [_run() for _ in range(RUNS)]
    seconds, memory, count = (min(values) for values in zip(*found, strict=True))
    how = f"{count:,.0f} parameters, best of {RUNS}"
    return [
        Row("initial weights of vgg16:imagenet, s", seconds, 3.0, "at most", how),
        Row("memory for drawing them / their size", memory, 1.5, "at most", how),
    ]


def _run() -> tuple[float, float, int]:
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.preparation"], env={**os.environ, "STEELYARD_CACHE": cache},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    found = json.loads(done.stdout)
    return found["seconds"], found["memory"], found["count"]


def _inside() -> None:
    """Draw once, in this process, and print what it took."""
    workload = workloads.find()[VGG[0]]
    network = workload.network(workload.preset(VGG[1]))
    count = sum(parameter.count for parameter in network.parameters)
    before, started = _peak_bytes(), time.perf_counter()
    initialise(network.parameters, seed=0)
    elapsed = time.perf_counter() - started
    print(json.dumps({"seconds": elapsed, "memory": (_peak_bytes() - before) / (4 * count), "count": count}))


def _peak_bytes() -> int:
    """Return the peak cached size of this process (Linux counts in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    _inside()
