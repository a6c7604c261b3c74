"""The bandwidth of this machine's memory: a = a + s * b over arrays that no cache holds, one process for each thread of a run.

This is the triad of the STREAM benchmark (McCalpin 1995), in place: a line that is written was read before, so exactly three
transfers are needed for each element, and all are counted. `python -m steelyard.measure.bandwidth 2 300000000 1` measures with
two processes, two arrays of 300 MB, for one second.
"""

import multiprocessing
import sys
import time
from multiprocessing.synchronize import Barrier

from steelyard.errors import UserError
from steelyard.measure import gemm

SOURCE = "triad"
KIND = "memory"
"""The key in the stored peaks of the machine, in place of a precision."""
SECONDS = 1.0
WINDOWS = 5
# How long the processes wait for each other at the start; one that ran out of memory never arrives.
WAIT_S = 30
# Each of the two arrays is this many times as large as the last-level caches together, as STREAM's rules ask.
OVER_CACHE = 4
# Where the system does not tell the size of the caches.
USUAL_CACHE_BYTES = 64 * 2**20
# The share of the free memory that both arrays together may take.
OF_MEMORY = 0.5
# Scalars (float32) that are computed at a time: small enough for products to stay in a core's own cache.
CHUNK = 2**15
FLOAT = 4
TRANSFERS = 3


def array_bytes(cache_bytes: int, free_bytes: int) -> int:
    """Return the size of each array; UserError: two of them would not fit the free memory."""
    wanted = OVER_CACHE * (cache_bytes or USUAL_CACHE_BYTES)
    if 2 * wanted > OF_MEMORY * free_bytes:
        raise UserError(
            f"The bandwidth of memory was not measured: this takes {2 * wanted / 2**30:.1f} GiB, and only "
            f"{free_bytes / 2**30:.1f} GiB are free."
        )
    return wanted


def known_gbps(machine: str, threads: int) -> float | None:
    """Return the stored bandwidth of a machine's fingerprint, GB/s; None if it was not measured."""
    return gemm.peaks(machine, threads, KIND).get(SOURCE)


def measured_gbps(machine: str, threads: int, cache_bytes: int, free_bytes: int) -> float:
    """Measure the bandwidth, store it unless a higher one is stored, and return the stored one, GB/s.

    UserError: it could not be measured.
    """
    gemm.add_peak(machine, threads, KIND, SOURCE, measure(threads, array_bytes(cache_bytes, free_bytes)))
    return gemm.peaks(machine, threads, KIND)[SOURCE]


def measure(threads: int, size: int, seconds: float = SECONDS) -> float:
    """Return the GB/s of `threads` processes together, in arrays of `size` bytes. UserError: they failed or took too long."""
    failed = "The bandwidth of memory could not be measured"
    return gemm.in_own_process("steelyard.measure.bandwidth", (threads, size, seconds), 1, failed)


def together(threads: int, size: int, seconds: float) -> float:
    """Return the GB/s of the best of `WINDOWS` windows, in which all processes work at the same time."""
    method = multiprocessing.get_context("spawn")
    barrier = method.Barrier(threads)
    with method.Pool(threads, initializer=_begin, initargs=(barrier,)) as pool:
        share = max(CHUNK, size // threads // FLOAT // CHUNK * CHUNK)
        found = pool.starmap(sweeps, [(share, seconds / WINDOWS)] * threads, chunksize=1)
    return max(map(sum, zip(*found, strict=True)))


_barrier: Barrier | None = None


def _begin(barrier: Barrier) -> None:
    global _barrier
    _barrier = barrier


def sweeps(scalars: int, window_s: float) -> list[float]:
    """Return the GB/s of this process in each window, in two arrays of this many float32 scalars (a multiple of CHUNK)."""
    import numpy as np

    a, b = (np.full(scalars, value, np.float32).reshape(-1, CHUNK) for value in (1.0, 2.0))
    scaled, factor = np.empty(CHUNK, np.float32), np.float32(1e-6)
    found = []
    for _ in range(WINDOWS):
        if _barrier:
            _barrier.wait(WAIT_S)
        began, moved, elapsed = time.perf_counter(), 0, 0.0
        while elapsed < window_s:
            for left, right in zip(a, b, strict=True):
                np.multiply(right, factor, out=scaled)
                np.add(left, scaled, out=left)
                moved += TRANSFERS * FLOAT * CHUNK
                elapsed = time.perf_counter() - began
                if elapsed >= window_s:
                    break
        found.append(moved / elapsed / 1e9)
    return found


if __name__ == "__main__":
    sys.stdout.write(f"{together(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])):.3f}\n")
