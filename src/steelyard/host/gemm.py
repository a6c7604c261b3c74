"""The machine's arithmetic peak: the fastest matrix product, for the guard against impossible speeds.

A framework that seems to do more floating-point operations per second than any matrix product reached
here is not fast but wrongly measured. Run as `python -m steelyard.host.gemm float32 1.5`, it measures.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

from filelock import FileLock

from steelyard.environments.interpreter import clean_environ
from steelyard.errors import UserError
from steelyard.files.paths import cache_folder

SIZES = (512, 1024, 2048)
SECONDS = 1.5
OWN_SOURCE = "numpy"
# Other precisions NumPy multiplies without a library, or not at all: there the guard has only what
# frameworks' own products have reached.
OWN_DTYPES = ("float32", "float64")
# The record is the best of several products, yet clocks move, a framework's library may be better than
# NumPy's, and Winograd convolutions do with fewer operations than are counted (Lavin & Gray 2016).
MARGIN = 1.25
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


def peaks(machine: str, threads: int, dtype: str = "float32") -> dict[str, float]:
    """GFLOP/s by source (`numpy`, or an environment's name) known for a machine's fingerprint."""
    told = _read(machine).get(_key(dtype, threads), {})
    return {source: float(value) for source, value in told.items()}


def add_peak(machine: str, threads: int, dtype: str, source: str, gflops: float) -> None:
    """Remember what a source reached; only a better figure replaces its earlier one."""
    path = _path(machine)
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        record = _read(machine)
        known = record.setdefault(_key(dtype, threads), {})
        known[source] = max(gflops, known.get(source, 0.0))
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(record, indent=1, sort_keys=True), "utf-8")
        fresh.replace(path)


def ensure_peak(machine: str, threads: int, dtype: str = "float32") -> dict[str, float]:
    """As `peaks`; measures NumPy's product first when that is not known yet (about 3 s)."""
    if dtype in OWN_DTYPES and OWN_SOURCE not in peaks(machine, threads, dtype):
        add_peak(machine, threads, dtype, OWN_SOURCE, measure_peak(threads, dtype))
    return peaks(machine, threads, dtype)


def guard_limit(known: dict[str, float]) -> float | None:
    """GFLOP/s that no honest measurement passes: the best source's figure times `MARGIN`."""
    return max(known.values()) * MARGIN if known else None


def impossible(machine: str, threads: int, dtype: str, gflops: float) -> str:
    """One sentence when a speed is above what this machine's arithmetic allows, else nothing.

    A peak that was measured while others used the machine is too low, so a suspicion is checked by
    measuring it again.
    """
    limit = guard_limit(ensure_peak(machine, threads, dtype))
    if limit is not None and gflops > limit and dtype in OWN_DTYPES:
        add_peak(machine, threads, dtype, OWN_SOURCE, measure_peak(threads, dtype))
        limit = guard_limit(peaks(machine, threads, dtype))
    if limit is None or gflops <= limit:
        return ""
    best = max(peaks(machine, threads, dtype).values())
    return (
        f"{gflops:.0f} GFLOP/s is more than this machine can do (its best {dtype} matrix product reaches "
        f"{best:.0f}), so the time or the count of operations is wrong"
    )


def measure_peak(threads: int, dtype: str = "float32", seconds: float = SECONDS) -> float:
    """GFLOP/s of NumPy's best square product, in a process of its own with so many threads."""
    environ = {**clean_environ(), **dict.fromkeys(THREAD_VARIABLES, str(threads))}
    source = str(Path(__file__).parents[2])
    environ["PYTHONPATH"] = source
    command = [sys.executable, "-m", "steelyard.host.gemm", dtype, str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=120, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        raise UserError(f"The machine's arithmetic peak could not be measured; the process said: {last}")
    return float(done.stdout)


def best_product(dtype: str, seconds: float, sizes: tuple[int, ...] = SIZES) -> float:
    """GFLOP/s: the best single product of any size, after trying each size for its share of `seconds`."""
    import numpy as np

    random = np.random.default_rng(0)
    best = 0.0
    for size in sizes:
        left, right = (random.standard_normal((size, size)).astype(dtype) for _ in range(2))
        out = np.empty_like(left)
        np.matmul(left, right, out=out)
        end = time.perf_counter() + seconds / len(sizes)
        while (began := time.perf_counter()) < end:
            np.matmul(left, right, out=out)
            best = max(best, 2 * size**3 / (time.perf_counter() - began) / 1e9)
    return best


def _key(dtype: str, threads: int) -> str:
    return f"{dtype}, {threads} threads"


def _path(machine: str) -> Path:
    return cache_folder() / "machines" / f"{machine}.peaks.json"


def _read(machine: str) -> dict[str, dict[str, float]]:
    try:
        told = json.loads(_path(machine).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}


if __name__ == "__main__":
    sys.stdout.write(f"{best_product(sys.argv[1], float(sys.argv[2])):.3f}\n")
