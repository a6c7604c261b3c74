"""The time of `steelyard --help` relative to the start of a bare interpreter, in alternating pairs."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from benchmarks.rows import Row

PAIRS = 25
LIMIT = 2.5


def measure() -> list[Row]:
    """Return one row with the median ratio."""
    command = Path(sys.executable).with_name("steelyard")
    bare, ours = [sys.executable, "-c", "pass"], [str(command), "--help"]
    ratios = [_seconds(ours) / _seconds(bare) for _ in range(PAIRS + 1)][1:]
    return [
        Row(
            "steelyard --help / bare interpreter",
            median(ratios),
            LIMIT,
            "at most",
            f"median of {PAIRS} pairs",
        )
    ]


def _seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start
