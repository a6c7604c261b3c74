"""The machine's arithmetic peak: the speed of the fastest matrix product, and the check that nothing exceeds it.

A framework that seems to do more floating-point operations per second than the fastest matrix product on this
machine has been measured wrongly. `python -m steelyard.measure.gemm float32 1.5` measures the peak for 1.5 s.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

from filelock import FileLock

from steelyard.environments.interpreter import clean_environ
from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard.files.paths import cache_folder
from steelyard_worker import records

SIZES = (512, 1024, 2048)
SECONDS = 1.5
LIMIT_S = 120
OWN_SOURCE = "numpy"
# NumPy multiplies other precisions without an optimised library, or not at all. For them, only the peaks that
# frameworks have reached are used.
OWN_DTYPES = ("float32", "float64")
# Speeds up to this multiple of the peak are plausible: clocks vary, a framework's library may be faster than
# NumPy's, and Winograd convolutions need fewer operations than are counted (Lavin & Gray 2016).
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
    """Return the stored peaks of a machine's fingerprint: {source: GFLOP/s}, with `numpy` or an environment as source."""
    known = _read(machine).get(_key(dtype, threads), {})
    return {source: float(value) for source, value in known.items()}


def add_peak(machine: str, threads: int, dtype: str, source: str, gflops: float) -> None:
    """Store the GFLOP/s that a source reached, unless a higher figure of the same source is stored.

    `measure.bandwidth` stores GB/s in the same way, with a kind of its own in place of `dtype`.
    """
    path = _path(machine)
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        record = _read(machine)
        known = record.setdefault(_key(dtype, threads), {})
        known[source] = max(gflops, known.get(source, 0.0))
        atomic.write_text(path, json.dumps(record, indent=1, sort_keys=True))


def ensure_peak(machine: str, threads: int, dtype: str = "float32") -> dict[str, float]:
    """Return `peaks`, after measuring NumPy's product if it is not stored yet (about 3 s).

    UserError: the product could not be measured.
    """
    if dtype in OWN_DTYPES and OWN_SOURCE not in peaks(machine, threads, dtype):
        add_peak(machine, threads, dtype, OWN_SOURCE, measure_peak(threads, dtype))
    return peaks(machine, threads, dtype)


def plausible_limit(known: dict[str, float]) -> float | None:
    """Return the highest plausible GFLOP/s, which is the best source's peak times `MARGIN`; None without a peak."""
    return max(known.values()) * MARGIN if known else None


def peak_check(machine: str, threads: int, dtype: str, gflops: float) -> str:
    """Return a sentence if a speed exceeds what is plausible on this machine, otherwise an empty text.

    A peak measured while other programs used the machine is too low, so it is measured again before a speed is
    rejected. UserError: the peak could not be measured.
    """
    limit = plausible_limit(ensure_peak(machine, threads, dtype))
    if limit is not None and gflops > limit and dtype in OWN_DTYPES:
        add_peak(machine, threads, dtype, OWN_SOURCE, measure_peak(threads, dtype))
        limit = plausible_limit(peaks(machine, threads, dtype))
    if limit is None or gflops <= limit:
        return ""
    best = max(peaks(machine, threads, dtype).values())
    return (
        f"{gflops:.0f} GFLOP/s is more than this machine can do (its best {dtype} matrix product reaches "
        f"{best:.0f}), so the measured time or the number of operations is wrong"
    )


def measure_peak(threads: int, dtype: str = "float32", seconds: float = SECONDS) -> float:
    """Return the GFLOP/s of NumPy's best square product, measured in a new process with `threads` threads.

    UserError: the process failed, or took longer than two minutes.
    """
    failed = "The machine's arithmetic peak could not be measured with NumPy"
    return in_own_process("steelyard.measure.gemm", (dtype, seconds), threads, failed)


def in_own_process(module: str, arguments: tuple[object, ...], threads: int, failed: str) -> float:
    """Return the number that a module prints in a new process whose libraries use `threads` threads.

    UserError, which begins with `failed`: the process failed, or took longer than two minutes.
    """
    environ = {**clean_environ(), **dict.fromkeys(THREAD_VARIABLES, str(threads))}
    environ["PYTHONPATH"] = str(Path(__file__).parents[2])
    command = [sys.executable, "-m", module, *map(str, arguments)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        raise UserError(f"{failed} within {LIMIT_S} s.") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise UserError(f"{failed}: {last}")
    return float(done.stdout)


def best_product(dtype: str, seconds: float, sizes: tuple[int, ...] = SIZES) -> float:
    """Return the GFLOP/s of the fastest single product; each size is tried for an equal share of `seconds`."""
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
        stored = records.parse(records.read_text(_path(machine)))
        found: dict[str, dict[str, float]] = records.convert(dict[str, dict[str, float]], stored, "peaks")
    except (OSError, ValueError):
        return {}
    return found


if __name__ == "__main__":
    sys.stdout.write(f"{best_product(sys.argv[1], float(sys.argv[2])):.3f}\n")
