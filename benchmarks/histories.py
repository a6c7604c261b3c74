"""Merging runs relative to copying; a first history; false alarms of a year; changes and creeps found; a page of 10,000 rows."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import log
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
from tests import recorded_trials
from tests.statistics import simulated_histories
from tests.statistics.simulated_histories import SCATTER

from benchmarks.rows import Row
from steelyard.analysis.history import ERROR, History, history
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard.report import small_page
from steelyard.report.sections import histories
from steelyard.results import merging, record
from steelyard.results.facts import HostFacts
from steelyard.results.points import Point, RunFacts
from steelyard.statistics.shifts import course

if TYPE_CHECKING:
    from collections.abc import Callable

WORKLOADS = Path(__file__).parents[1] / "tests" / "workloads"
RUNS, TRIALS, PAIRS = 1000, 15, 4
DTYPES = {".i64": "<i8", ".f32": "<f4"}
FIRST = datetime(2026, 1, 1, 2, 0, tzinfo=UTC)
LINES, NIGHTS = 50, 200
YEARS, NIGHTS_OF_A_YEAR, OF_LINES = 20, 365, 5
HISTORIES = 200


def measure() -> list[Row]:
    """Return the rows."""
    return [_merging(), _first_history(), *_false_alarms(), *_found(), _page()]


def _merging() -> Row:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        _write_runs(root / "runs")
        pairs = [_pair(root, number) for number in range(PAIRS)]
        files = sum(path.is_file() for path in (root / "runs").rglob("*"))
    merged, copied = (median(times) for times in zip(*pairs, strict=True))
    how = f"{merged:.1f} s / {copied:.1f} s, {RUNS:,} runs of {files // RUNS} files, {PAIRS} pairs"
    return Row("merging runs / copying their files", median(a / b for a, b in pairs), 2.0, "at most", how)


def _first_history() -> Row:
    """Return the CPU time of a history that reads every run, with all its processes, over that of parsing the same files.

    Elapsed time depends on other programs, and so does CPU time where they share a core. Both sides are slowed alike.
    """
    with tempfile.TemporaryDirectory() as name:
        runs = Path(name)
        _write_runs(runs)
        before = _parsing(runs)
        seconds = _history_of(runs)
        parsing = (before + _parsing(runs)) / 2
    how = f"{seconds:.1f} s / {parsing:.1f} s of CPU time, {RUNS:,} runs of {TRIALS} trials, with all processes"
    return Row("first history of 1,000 runs / parsing their files", seconds / parsing, 4.0, "at most", how)


def _history_of(runs: Path) -> float:
    """Return the CPU time of the command and all its processes in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "steelyard", "history", "--runs", str(runs)]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime


def _parsing(runs: Path) -> float:
    """Return the CPU time in seconds of parsing every file of the runs, without any check."""
    start = time.process_time()
    for path in runs.glob("*/**/*"):
        if path.suffix == ".json":
            json.loads(path.read_text(encoding="utf-8"))
        elif path.suffix == ".jsonl":
            [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        elif path.suffix in DTYPES:
            np.fromfile(path, DTYPES[path.suffix])
    return time.process_time() - start


def _write_runs(runs: Path) -> None:
    """Write a thousand different runs, one a day, with the trials of one."""
    plan = resolve.plan(Options(workloads=("line",), frameworks=("fake",), workload_folders=(str(WORKLOADS),)))
    first = runs / "20260101-000000-line"
    first.mkdir(parents=True)
    record.write(first, record.new(plan, "steelyard run -w line", "0123"))
    for number in range(1, TRIALS + 1):
        trial = first / "trials" / f"r{number:02d}.0-fake"
        job = replace(recorded_trials.job(trial, number), case=plan.variants[0].case)
        recorded_trials.write(trial, job, recorded_trials.events((1, 50, 100)))
    passed = {plan.variants[0].case.id: {"passed": True, "sentence": "Not checked here."}}
    (first / record.CERTIFICATES).write_text(json.dumps(passed), encoding="utf-8")
    raw = json.loads((first / record.FILE).read_text(encoding="utf-8")) | {"state": "complete", "machine": "0123"}
    for number in range(RUNS):
        folder = runs / f"20260101-{number:06d}-line"
        if number:
            shutil.copytree(first, folder)
        created = (FIRST + timedelta(days=number)).isoformat()
        own = {"identity": f"{number:016x}", "created": created}
        (folder / record.FILE).write_text(json.dumps(raw | own), encoding="utf-8")


def _pair(root: Path, number: int) -> tuple[float, float]:
    """Merge and copy, in alternating order; returns the seconds of both."""
    works: list[tuple[Path, Callable[[Path], object]]] = [
        (root / "merged", lambda target: merging.merge([root / "runs"], target)),
        (root / "copied", lambda target: shutil.copytree(root / "runs", target)),
    ]
    seconds = {}
    for target, work in works if number % 2 else works[::-1]:
        os.sync()  # earlier writes must not take part in this measurement
        start = time.perf_counter()
        work(target)
        seconds[target.name] = time.perf_counter() - start
        shutil.rmtree(target)
    return seconds["merged"], seconds["copied"]


def _false_alarms() -> list[Row]:
    """Return how often simulated lines without a change show one, or fail a nightly check, at any look of a year."""
    rows = []
    how = f"a look each night of {YEARS} years of one line, at the error of one of {OF_LINES}; {SCATTER:.0%} scatter"
    for kind in simulated_histories.KINDS:
        alarms = failures = 0
        for year in range(YEARS):
            series = simulated_histories.noise(kind, NIGHTS_OF_A_YEAR, year)
            found = list(simulated_histories.looks(series, ERROR / OF_LINES))
            alarms += any(each.shifts or each.creep for each in found)
            failures += any(map(simulated_histories.is_slower, found))
        rows += [
            Row(
                f"lines without a change that show one in a year, {kind}, %", 100 * alarms / YEARS, 5.0, "at most", how
            ),
            Row(
                f"the same that end --fail-if-slower 5% with 1, {kind}, %", 100 * failures / YEARS, 5.0, "at most", how
            ),
        ]
    return rows


def _found() -> list[Row]:
    """Return how often a planted step or creep is found."""
    rows = []
    for nights in (4, 7, 14):
        found = [
            course(_noise(30, number) + log(1.1) * (np.arange(30) >= 30 - nights), ERROR) for number in range(HISTORIES)
        ]
        share = sum(any(abs(shift.place - (30 - nights)) <= 1 for shift in each.shifts) for each in found) / HISTORIES
        how = f"{HISTORIES} histories of 30 nights, normal noise of {SCATTER:.0%}"
        rows.append(Row(f"changes of 10 % found that {nights} nights have, %", 100 * share, 85.0, "at least", how))
    for weeks, limit in ((12, 75.0), (26, 98.0)):
        count = 7 * weeks
        found = [
            course(_noise(count, number) + simulated_histories.creep(count, 0, 1.005), ERROR)
            for number in range(HISTORIES)
        ]
        share = sum(bool(each.creep) for each in found) / HISTORIES
        how = f"{HISTORIES} histories, normal noise of {SCATTER:.0%}"
        rows.append(Row(f"creeps of 0.5 % a week found after {weeks} weeks, %", 100 * share, limit, "at least", how))
    return rows


def _page() -> Row:
    _history(1, NIGHTS, 1)  # loads ruptures
    start = time.perf_counter()
    found = _history(LINES, NIGHTS, 1)
    text = small_page.render(histories.page(found))
    seconds = time.perf_counter() - start
    rows = sum(len(line.runs) for line in found.lines)
    how = f"{rows:,} rows, page of {len(text) / 1e6:.1f} MB"
    return Row("changes and page of a history of 10,000 rows, s", seconds, 20.0, "at most", how)


def _noise(count: int, seed: int) -> np.ndarray:
    return simulated_histories.noise("normal", count, seed)


def _history(lines: int, nights: int, seed: int) -> History:
    host: HostFacts = {"cpu_model": "Simulated", "cores_usable": 2}
    runs = [
        RunFacts(str(n), f"run-{n}", "nightly", (FIRST + timedelta(days=n)).isoformat(), "0123", host, 4, "c0de", {})
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
        for night, time_ns in enumerate((1e7 * np.exp(_noise(nights, 1000 * seed + line))).tolist())
    ]
    return history(runs, points)
