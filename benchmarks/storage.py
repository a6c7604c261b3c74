"""A million step samples: stored by the real recorder next to the same bytes written raw, and the report made of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from array import array
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
from steelyard.inputs.group_inputs import GroupInputs

from benchmarks.rows import Row
from steelyard import host
from steelyard.measure import jobs
from steelyard.plan import resolve as plan
from steelyard.plan.options import Options
from steelyard.results import record, trials
from steelyard.results.store import Store
from steelyard_worker.measure import Block, Recorder
from steelyard_worker.protocol import EVENTS, Data, EventWriter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steelyard.plan.cells import Cell

    from steelyard.plan.resolve import RunPlan

WORKLOADS = Path(__file__).parents[1] / "tests" / "workloads"
FRAMEWORKS = ("fake", "dummy")
ROUNDS, BLOCKS, STEPS = 5, 100, 1000
STEP_NS = 10_000_000
PAIRS = 15
REPORTS = 3


class Losses:
    """A trainer as far as the recorder knows it: the handles of the steps are their losses."""

    def losses(self, handles: Any) -> Any:
        """Return them as they are."""
        return handles


@dataclass(frozen=True)
class Process:
    """What one process has in its hands when its blocks are over; `raw`: samples and losses of each block as bytes."""

    cell: Cell
    number: int
    blocks: list[Block]
    raw: list[tuple[bytes, bytes]]


def measure() -> list[Row]:
    """Return the rows: storing over raw writing, seconds of a report, its memory."""
    planned = plan.plan(Options(workloads=("line",), frameworks=FRAMEWORKS, workload_folders=(str(WORKLOADS),)))
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        processes = [_process(cell, number) for number in range(1, ROUNDS + 1) for cell in planned.cells]
        pairs = [_pair(planned, processes, root, number) for number in range(PAIRS + 1)][1:]
        ours, raw = (median(times) for times in zip(*pairs, strict=True))
        reports = [_report(root) for _ in range(REPORTS)]
    how = (
        f"{ours * 1e3:.0f} ms / {raw * 1e3:.0f} ms, {PAIRS} pairs, both in blocks of {STEPS:,} steps, then synchronised"
    )
    seconds, megabytes = (min(values) for values in zip(*reports, strict=True))
    return [
        Row("10^6 samples stored / same bytes raw", median(a / b for a, b in pairs), 2.0, "at most", how),
        Row("report of 10^6 samples, s", seconds, 2.0, "at most", f"page and table, best of {REPORTS}"),
        Row("report of 10^6 samples, peak MB", megabytes, 500.0, "at most", "cached, interpreter included"),
    ]


def _process(cell: Cell, number: int) -> Process:
    """Draw plausible steps: 1 % noise, and a spike now and then."""
    draw = np.random.default_rng([number, len(cell.key), ord(cell.framework[0])])
    steps = STEP_NS * draw.normal(1, 0.01, (BLOCKS, STEPS)) * (1 + (draw.random((BLOCKS, STEPS)) < 1e-3))
    stamps = np.cumsum(steps.astype(np.int64).ravel()).reshape(BLOCKS, STEPS)
    starts = [0, *stamps[:-1, -1].tolist()]
    losses = draw.random((BLOCKS, STEPS)).astype(np.float32)
    blocks = [
        Block(start, int(row[-1]) - start, array("q", row.tobytes()), loss)
        for start, row, loss in zip(starts, stamps, losses, strict=True)
    ]
    return Process(
        cell, number, blocks, [(row.tobytes(), loss.tobytes()) for row, loss in zip(stamps, losses, strict=True)]
    )


def _pair(planned: RunPlan, processes: list[Process], root: Path, number: int) -> tuple[float, float]:
    """Store one run and write it raw, in alternating order; returns the seconds of both."""
    folder, raw = _run_folder(planned, root, number), root / f"raw-{number}"
    raw.mkdir()
    store = Store(root)
    with closing(store):
        store.add_run(folder)
        for process in processes:
            _prepare(planned, folder, process)
        works = (lambda: _store(folder, store, processes), lambda: _write(raw, processes))
        times = {place: _seconds(works[place]) for place in ((0, 1) if number % 2 else (1, 0))}
    return times[0], times[1]


def _seconds(work: Any) -> float:
    os.sync()
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _store(folder: Path, store: Store, processes: list[Process]) -> None:
    """Do what a worker does with its blocks, and the orchestrator with what the worker left."""
    for process in processes:
        home = jobs.trial_folder(folder, process.number, 0, process.cell)
        events = EventWriter(home / EVENTS, time.perf_counter_ns)
        recorder = Recorder(home, events)
        for block in process.blocks:
            recorder.keep(Losses(), block, "cached", "counted")
        events.write("done")
        recorder.close()
        events.close()
        store.add_trial(folder.name, trials.read(home))
    _synchronise(folder.glob("trials/*/*"))


def _write(folder: Path, processes: list[Process]) -> None:
    """Write the same bytes as they come: no recorder may keep a block to itself, for a killed worker must not lose it."""
    for place, process in enumerate(processes):
        with (folder / f"{place}.samples").open("wb") as samples, (folder / f"{place}.losses").open("wb") as losses:
            for block in process.raw:
                for file, content in zip((samples, losses), block, strict=True):
                    file.write(content)
                    file.flush()
    _synchronise(folder.iterdir())


def _synchronise(paths: Iterable[Path]) -> None:
    """Wait until files are on the disk."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def _run_folder(planned: RunPlan, root: Path, number: int) -> Path:
    folder = root / f"{number}-synthetic"
    folder.mkdir()
    record.write(folder, record.new(planned, "steelyard run"))
    machine = host.describe()
    record.update(folder, machine=machine.fingerprint(), host=asdict(machine), state="complete")
    passed = {cell.key: {"passed": True, "sentence": "Taken for granted here."} for cell in planned.cells}
    (folder / record.CERTIFICATES).write_text(json.dumps(passed), encoding="utf-8")
    return folder


def _prepare(planned: RunPlan, folder: Path, process: Process) -> None:
    home = jobs.trial_folder(folder, process.number, 0, process.cell)
    home.mkdir(parents=True)
    nothing = GroupInputs(Path("weights"), Data("synthetic"), "", {}, "")
    job = jobs.measuring(planned, process.cell, nothing, process.number, 0, home)
    (home / trials.JOB).write_text(json.dumps(asdict(job)), encoding="utf-8")


def _report(root: Path) -> tuple[float, float]:
    """Make a report in a process of its own; returns (seconds, peak MB)."""
    command = [sys.executable, "-m", "steelyard", "report", "latest", "--runs", str(root)]
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    elapsed = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit("The report could not be made.")
    return elapsed, usage.ru_maxrss * 1024 / 1e6
