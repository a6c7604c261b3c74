"""Generation of the initial weights of the largest network: seconds, and memory relative to their size."""

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
    """Return time and memory for VGG16: the best of several new processes with an empty cache, as disk speeds vary."""
    found = [_run() for _ in range(RUNS)]
    seconds, memory, count = (min(values) for values in zip(*found, strict=True))
    how = f"{count:,.0f} parameters, best of {RUNS}"
    return [
        Row("initial weights of vgg16:imagenet, s", seconds, 3.0, "at most", how),
        Row("memory to generate them / their size", memory, 1.5, "at most", how),
    ]


def _run() -> tuple[float, float, int]:
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.preparation"],
            env={**os.environ, "STEELYARD_CACHE": cache},
            capture_output=True,
            text=True,
            check=True,
        )
    found = json.loads(done.stdout)
    return found["seconds"], found["memory"], found["count"]


def _inside() -> None:
    """Generate the weights once in this process and print the time and the memory."""
    workload = workloads.find()[VGG[0]]
    network = workload.network(workload.preset(VGG[1]))
    count = sum(parameter.count for parameter in network.parameters)
    before, start = _peak_bytes(), time.perf_counter()
    initialise(network.parameters, seed=0)
    elapsed = time.perf_counter() - start
    print(json.dumps({"seconds": elapsed, "memory": (_peak_bytes() - before) / (4 * count), "count": count}))


def _peak_bytes() -> int:
    """Return the peak resident size of this process (Linux counts in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    _inside()
