"""Initial weights of a VGG16-sized network, next to drawing and writing the same bytes by hand; memory."""

from __future__ import annotations

import os
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from steelyard.weights import initialise
from steelyard_worker.network import Parameter

CONVOLUTIONS = [(64, 3), (64, 64), (128, 64), (128, 128), (256, 128), (256, 256), (256, 256), (512, 256)]
CONVOLUTIONS += [(512, 512)] * 5
DENSE = [(4096, 25088), (4096, 4096), (1000, 4096)]


def vgg16() -> list[Parameter]:
    """Return the 138 M parameters of configuration D (Simonyan & Zisserman 2015, table 1)."""
    layers = [((o, i, 3, 3), "conv", "kaiming_normal_fan_out") for o, i in CONVOLUTIONS]
    layers += [(shape, "dense", "normal:0.01") for shape in DENSE]
    weights = [Parameter(f"layer{n}.weight", shape, kind, how) for n, (shape, kind, how) in enumerate(layers)]
    return weights + [
        Parameter(f"layer{n}.bias", shape[:1], "bias", "constant:0") for n, (shape, _, _) in enumerate(layers)
    ]


def peak_bytes() -> int:
    """Return the peak resident size of this process (Linux counts in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def draw_by_hand(count: int, folder: Path) -> float:
    """Return the seconds to draw `count` float32 normals at once and write them whole, synchronised."""
    started = time.perf_counter()
    values = np.random.default_rng(0).standard_normal(count, dtype=np.float32)
    with (folder / "raw").open("wb") as file:
        file.write(values.data)
        file.flush()
        os.fsync(file.fileno())
    return time.perf_counter() - started


def main() -> None:
    """Print the table."""
    network = vgg16()
    count = sum(parameter.count for parameter in network)
    with tempfile.TemporaryDirectory() as name:
        os.environ["STEELYARD_CACHE"] = name
        before, started, processor = peak_bytes(), time.perf_counter(), time.process_time()
        initialise(network, seed=0)
        elapsed, memory = time.perf_counter() - started, peak_bytes() - before
        busy = time.process_time() - processor
        by_hand = draw_by_hand(count, Path(name))
    print(f"parameters             {count:,}")
    print(f"initialise             {elapsed:.2f} s, of which {busy:.2f} s of processor (target 3 s)")
    print(f"by hand, one array     {by_hand:.2f} s; ratio {elapsed / by_hand:.2f}")
    print(f"memory over the size   {memory / (4 * count):.3f} (target 1.5)")


if __name__ == "__main__":
    main()
