"""A million step samples: the time to store them relative to raw writing of the same bytes."""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks import written_runs
from benchmarks.rows import Row
from benchmarks.written_runs import Process
from steelyard.measure import jobs
from steelyard.results import trials
from steelyard.results.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steelyard.plan.run_plan import RunPlan

STEPS = written_runs.STEPS
PAIRS = 15


def measure() -> list[Row]:
    """Return one row: storing relative to raw writing."""
    plan, processes = written_runs.a_million_steps()
    with tempfile.TemporaryDirectory() as name:
        pairs = [_pair(plan, processes, Path(name), number) for number in range(PAIRS + 1)][1:]
    ours, raw = (median(times) for times in zip(*pairs, strict=True))
    how = (
        f"{ours * 1e3:.0f} ms / {raw * 1e3:.0f} ms, {PAIRS} pairs, both in blocks of {STEPS:,} steps, then synchronised"
    )
    return [Row("10^6 samples stored / same bytes raw", median(a / b for a, b in pairs), 2.0, "at most", how)]


def _pair(plan: RunPlan, processes: list[Process], root: Path, number: int) -> tuple[float, float]:
    """Store one run and write it raw, in alternating order; returns the seconds of both."""
    folder, raw = written_runs.new_folder(plan, root / f"{number}-synthetic"), root / f"raw-{number}"
    raw.mkdir()
    store = Store(root)
    with closing(store):
        store.add_run(folder)
        for process in processes:
            written_runs.prepare(plan, folder, process.variant, process.number)
        works = (lambda: _store(folder, store, processes), lambda: _write(raw, processes))
        times = {place: _seconds(works[place]) for place in ((0, 1) if number % 2 else (1, 0))}
    return times[0], times[1]


def _seconds(work: Any) -> float:
    os.sync()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _store(folder: Path, store: Store, processes: list[Process]) -> None:
    """Do what the worker and then the orchestrator do to store the blocks of each process."""
    for process in processes:
        trial = jobs.trial_folder(folder, process.number, 0, process.variant)
        written_runs.keep(trial, process.blocks)
        store.add_trial(folder.name, trials.read(trial))
    _synchronise(folder.glob("trials/*/*"))


def _write(folder: Path, processes: list[Process]) -> None:
    """Write the same bytes block by block, each flushed, as every recorder must do to lose no block if it is killed."""
    for place, process in enumerate(processes):
        with (folder / f"{place}.samples").open("wb") as samples, (folder / f"{place}.losses").open("wb") as losses:
            for block in process.raw:
                for file, content in zip((samples, losses), block, strict=True):
                    file.write(content)
                    file.flush()
    _synchronise(folder.iterdir())


def _synchronise(paths: Iterable[Path]) -> None:
    """Wait until the files are on the disk."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
