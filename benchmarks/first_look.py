"""Seconds of `steelyard run` with empty caches, and with environments, data and certificates cached."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from benchmarks.rows import Row
from steelyard.results import durations

EMPTY_S, CERTIFICATES_S, CACHED_S = 480.0, 90.0, 180.0


def measure() -> list[Row]:
    """Return the rows of two runs of the default study, the first with empty caches."""
    with TemporaryDirectory() as folder:
        environ = os.environ | {"STEELYARD_CACHE": f"{folder}/cache", "STEELYARD_RUNS": f"{folder}/runs"}
        first_s, first = _run(environ)
        cached_s, cached = _run(environ)
    certificates = first[durations.CERTIFICATES]
    return [
        Row("steelyard run, empty caches, s", first_s, EMPTY_S, "at most", durations.sentence(first)),
        Row("its certificates, s", certificates, CERTIFICATES_S, "at most", "without waiting for environments"),
        Row("steelyard run, everything cached, s", cached_s, CACHED_S, "at most", durations.sentence(cached)),
    ]


def _run(environ: dict[str, str]) -> tuple[float, dict[str, float]]:
    """Run the default study; returns its elapsed seconds, and those of its stages."""
    began = monotonic()
    subprocess.run([sys.executable, "-m", "steelyard", "run"], env=environ, check=True, capture_output=True)
    elapsed_s = monotonic() - began
    newest = max(Path(environ["STEELYARD_RUNS"]).glob("runs/*/run.json"))
    seconds: dict[str, float] = json.loads(newest.read_text(encoding="utf-8"))["seconds"]
    return elapsed_s, seconds
