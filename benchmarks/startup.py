"""The time of `steelyard --help` and of `import steelyard` relative to the start of a bare interpreter, in pairs."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from benchmarks.rows import Row

PAIRS = 25
BARE = [sys.executable, "-c", "pass"]


def measure() -> list[Row]:
    """Return a row with the median ratio of each."""
    command = Path(sys.executable).with_name("steelyard")
    return [
        _against_bare("steelyard --help", [str(command), "--help"], 2.5),
        _against_bare("import steelyard", [sys.executable, "-c", "import steelyard"], 1.5),
    ]


def _against_bare(name: str, command: list[str], limit: float) -> Row:
    ratios = [_seconds(command) / _seconds(BARE) for _ in range(PAIRS + 1)][1:]
    return Row(f"{name} / bare interpreter", median(ratios), limit, "at most", f"median of {PAIRS} pairs")


def _seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start
