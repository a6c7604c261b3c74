"""Merging runs relative to copying them; false alarms and found changes of histories; a history of 10,000 rows."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from datetime import UTC, datetime, timedelta
from math import log
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
from tests import recorded_trials

from benchmarks.rows import Row
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard.report import history_page
from steelyard.report.history import History, history, slower
from steelyard.results import merging, record
from steelyard.results.facts import HostFacts
from steelyard.results.points import Point, RunFacts
from steelyard.statistics.shifts import course

if TYPE_CHECKING:
    from collections.abc import Callable

WORKLOADS = Path(__file__).parents[1] / "tests" / "workloads"
RUNS, TRIALS, PAIRS = 1000, 15, 4
LINES, NIGHTS = 50, 200
HISTORIES, OF_LINES, RUNS_OF_EACH = 200, 5, 30
SCATTER = 0.02


def measure() -> list[Row]:
    """Return the rows."""
    return [_merging(), *_errors(), _page()]


def _merging() -> Row:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        _write_runs(root / "runs")
        pairs = [_pair(root, number) for number in range(PAIRS)]
        files = sum(path.is_file() for path in (root / "runs").rglob("*"))
    merged, copied = (median(times) for times in zip(*pairs, strict=True))
    how = f"{merged:.1f} s / {copied:.1f} s, {RUNS:,} runs of {files // RUNS} files, {PAIRS} pairs"
    return Row("merging runs / copying their files", median(a / b for a, b in pairs), 2.0, "at most", how)


def _write_runs(runs: Path) -> None:
    """Write a thousand different runs with the trials of one."""
    plan = resolve.plan(Options(workloads=("line",), frameworks=("fake",), workload_folders=(str(WORKLOADS),)))
    first = runs / "20260101-000000-line"
    first.mkdir(parents=True)
    record.write(first, record.new(plan, "steelyard run -w line", "0123"))
    for number in range(1, TRIALS + 1):
        trial = first / "trials" / f"r{number:02d}.0-fake"
        recorded_trials.write(trial, recorded_trials.job(trial, number), recorded_trials.events((1, 50, 100)))
    raw = json.loads((first / record.FILE).read_text(encoding="utf-8")) | {"state": "complete"}
    for number in range(RUNS):
        folder = runs / f"20260101-{number:06d}-line"
        if number:
            shutil.copytree(first, folder)
        (folder / record.FILE).write_text(json.dumps(raw | {"identity": f"{number:016x}"}), encoding="utf-8")


def _pair(root: Path, number: int) -> tuple[float, float]:
    """Merge and copy, in alternating order; returns the seconds of both."""
    works: list[tuple[Path, Callable[[Path], object]]] = [
        (root / "merged", lambda target: merging.merge([root / "runs"], target)),
        (root / "copied", lambda target: shutil.copytree(root / "runs", target)),
    ]
    seconds = {}
    for target, work in works if number % 2 else works[::-1]:
        os.sync()  # what was written before is not to be written now
        start = time.perf_counter()
        work(target)
        seconds[target.name] = time.perf_counter() - start
        shutil.rmtree(target)
    return seconds["merged"], seconds["copied"]


def _errors() -> list[Row]:
    """Return how often simulated studies show a change that is none, end a nightly check with 1, or hide one of 10 %."""
    alarms = failures = 0
    for number in range(HISTORIES):
        found = _history(OF_LINES, RUNS_OF_EACH, number)
        alarms += bool(found.changed)
        failures += bool(slower(found, 0.05))
    planted = [
        course(_noise(RUNS_OF_EACH, [number, 1]) + log(1.1) * (np.arange(RUNS_OF_EACH) >= 20), 0.05)
        for number in range(HISTORIES)
    ]
    there = sum(any(abs(shift.place - 20) <= 1 for shift in each.shifts) for each in planted)
    how = f"{HISTORIES} studies of {OF_LINES} lines with {RUNS_OF_EACH} runs, {SCATTER:.0%} scatter with heavy tails"
    return [
        Row("histories without a change that show one, %", 100 * alarms / HISTORIES, 5.0, "at most", how),
        Row("the same that end --fail-if-slower 5% with 1, %", 100 * failures / HISTORIES, 1.0, "at most", how),
        Row("changes of 10 % found where they are, %", 100 * there / HISTORIES, 95.0, "at least", "one line each"),
    ]


def _page() -> Row:
    _history(1, NIGHTS, 1)  # loads ruptures
    start = time.perf_counter()
    found = _history(LINES, NIGHTS, 1)
    text = history_page.render(found)
    seconds = time.perf_counter() - start
    rows = sum(len(line.runs) for line in found.lines)
    how = f"{rows:,} rows, page of {len(text) / 1e6:.1f} MB"
    return Row("changes and page of a history of 10,000 rows, s", seconds, 20.0, "at most", how)


def _noise(count: int, seed: list[int]) -> np.ndarray:
    random = np.random.default_rng(seed)
    return np.asarray(SCATTER * random.standard_t(5, count) * (3 / 5) ** 0.5)


def _history(lines: int, nights: int, seed: int) -> History:
    first = datetime(2026, 1, 1, 2, 0, tzinfo=UTC)
    host: HostFacts = {"cpu_model": "Simulated", "cores_usable": 2}
    runs = [
        RunFacts(str(n), f"run-{n}", "nightly", (first + timedelta(days=n)).isoformat(), "0123", host, 4, "c0de", {})
        for n in range(nights)
    ]
    points = [
        Point(
            str(night),
            f"line {line}",
            f"group {line // 5}",
            f"v{line}",
            f"V{line}",
            "cached",
            "v",
            "v",
            "1",
            (time_ns, time_ns),
        )
        for line in range(lines)
        for night, time_ns in enumerate((1e7 * np.exp(_noise(nights, [seed, line]))).tolist())
    ]
    return history(runs, points)
