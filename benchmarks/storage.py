"""A million step samples: the time to store them relative to raw writing of the same bytes, and the report of them."""

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

from benchmarks.rows import Row
from steelyard import host
from steelyard.inputs.case_inputs import CaseInputs
from steelyard.measure import jobs
from steelyard.measure.launch import worker_hash
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard.results import record, trials
from steelyard.results.store import Store
from steelyard_worker.protocol import EVENTS, Data, EventWriter
from steelyard_worker.timing import Block, Recorder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steelyard.plan.run_plan import RunPlan, Variant

WORKLOADS = Path(__file__).parents[1] / "tests" / "workloads"
FRAMEWORKS = ("fake", "dummy")
ROUNDS, BLOCKS, STEPS = 5, 100, 1000
STEP_NS = 10_000_000
PAIRS = 15
REPORTS = 3


class Losses:
    """A trainer that has done its steps; their handles are their losses."""

    def step(self, batch: Any) -> Any:
        """Do nothing: the steps are done."""

    def synchronise(self) -> None:
        """Do nothing."""

    def losses(self, handles: Any) -> Any:
        """Return the handles."""
        return handles


@dataclass(frozen=True)
class Process:
    """The measured blocks of one process. `raw`: samples and losses of each block as bytes."""

    variant: Variant
    number: int
    blocks: list[Block]
    raw: list[tuple[bytes, bytes]]


def measure() -> list[Row]:
    """Return the rows: storing relative to raw writing, seconds of a report, and its memory."""
    plan = resolve.plan(Options(workloads=("line",), frameworks=FRAMEWORKS, workload_folders=(str(WORKLOADS),)))
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        processes = [_process(variant, number) for number in range(1, ROUNDS + 1) for variant in plan.variants]
        pairs = [_pair(plan, processes, root, number) for number in range(PAIRS + 1)][1:]
        ours, raw = (median(times) for times in zip(*pairs, strict=True))
        reports = [_report(root) for _ in range(REPORTS)]
    how = (
        f"{ours * 1e3:.0f} ms / {raw * 1e3:.0f} ms, {PAIRS} pairs, both in blocks of {STEPS:,} steps, then synchronised"
    )
    seconds, megabytes = (min(values) for values in zip(*reports, strict=True))
    return [
        Row("10^6 samples stored / same bytes raw", median(a / b for a, b in pairs), 2.0, "at most", how),
        Row("report of 10^6 samples, s", seconds, 2.0, "at most", f"page and table, best of {REPORTS}"),
        Row("report of 10^6 samples, peak MB", megabytes, 500.0, "at most", "resident, interpreter included"),
    ]


def _process(variant: Variant, number: int) -> Process:
    """Generate plausible steps: 1 % noise, and one step in a thousand twice as long."""
    random = np.random.default_rng([number, len(variant.key), ord(variant.case.framework[0])])
    steps = STEP_NS * random.normal(1, 0.01, (BLOCKS, STEPS)) * (1 + (random.random((BLOCKS, STEPS)) < 1e-3))
    stamps = np.cumsum(steps.astype(np.int64).ravel()).reshape(BLOCKS, STEPS)
    starts = [0, *stamps[:-1, -1].tolist()]
    losses = random.random((BLOCKS, STEPS)).astype(np.float32)
    blocks = [
        Block(start, int(row[-1]) - start, int(row[-1]) - start, array("q", row.tobytes()), loss)
        for start, row, loss in zip(starts, stamps, losses, strict=True)
    ]
    return Process(
        variant, number, blocks, [(row.tobytes(), loss.tobytes()) for row, loss in zip(stamps, losses, strict=True)]
    )


def _pair(plan: RunPlan, processes: list[Process], root: Path, number: int) -> tuple[float, float]:
    """Store one run and write it raw, in alternating order; returns the seconds of both."""
    folder, raw = _run_folder(plan, root, number), root / f"raw-{number}"
    raw.mkdir()
    store = Store(root)
    with closing(store):
        store.add_run(folder)
        for process in processes:
            _prepare(plan, folder, process)
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
        events = EventWriter(trial / EVENTS, time.perf_counter_ns)
        recorder = Recorder(trial, events)
        for block in process.blocks:
            recorder.keep(Losses(), block, "cached", "counted")
        events.write("done")
        recorder.close()
        events.close()
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


def _run_folder(plan: RunPlan, root: Path, number: int) -> Path:
    folder = root / f"{number}-synthetic"
    folder.mkdir()
    record.write(folder, record.new(plan, "steelyard run", worker_hash()))
    machine = host.describe()
    record.update(folder, machine=machine.fingerprint(), host=asdict(machine), state="complete")
    passed = {variant.case.id: {"passed": True, "sentence": "Not checked here."} for variant in plan.variants}
    (folder / record.CERTIFICATES).write_text(json.dumps(passed), encoding="utf-8")
    return folder


def _prepare(plan: RunPlan, folder: Path, process: Process) -> None:
    trial = jobs.trial_folder(folder, process.number, 0, process.variant)
    trial.mkdir(parents=True)
    inputs = CaseInputs(Path("weights"), Data("synthetic"), "", {}, "")
    job = jobs.measuring(plan, process.variant, inputs, process.number, 0, trial)
    (trial / trials.JOB).write_text(json.dumps(asdict(job)), encoding="utf-8")


def _report(root: Path) -> tuple[float, float]:
    """Write a report in a new process; returns (seconds, peak MB)."""
    command = [sys.executable, "-m", "steelyard", "report", "latest", "--runs", str(root)]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    elapsed = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit("The report failed.")
    return elapsed, usage.ru_maxrss * 1024 / 1e6
