"""The ranks of a trial on a further node: they start when the first node asks for them, and end with it."""

import contextlib
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from steelyard.catalog import frameworks
from steelyard.catalog.frameworks import WORKER
from steelyard.files import atomic
from steelyard.files.bounded_log import BoundedLog
from steelyard.measure import failing_ranks, processes
from steelyard.measure.hosts import Hosts
from steelyard.results.trials import Trial
from steelyard_worker import protocol
from steelyard_worker.protocol import Job, Schedule, rank_folder
from steelyard_worker.strategy import parts_of

POLL_S = 0.05
# The first node says that a trial is over when its own ranks have ended; others may still be writing their last event.
GRACE_S = 5.0
# Folder of a run that holds the jobs of parts; the record of the trial has the job of its first rank.
JOBS = "parts"


@dataclass(frozen=True)
class Order:
    """A request to a further node to run its ranks of a job, with everything that the first node has decided.

    `number`: of the round. Everything else is the same on all nodes.
    """

    case: str
    number: int
    attempt: int
    schedule: Schedule


def run(job: Job, python: Path, hosts: Hosts, stopped: Callable[[], bool], line: Path) -> Trial:
    """Run this node's ranks of a job to their end, or until they are `stopped`. The returned trial has no times.

    `line`: a file for the job, outside the trial's folder, which holds nothing but the folders of these ranks. `error` is set
    if a rank ended too early.
    """
    ranks = parts_of(job.case.strategy)
    folder = Path(job.folder)
    first = rank_folder(folder, hosts.number * ranks // hosts.count)
    first.mkdir(parents=True, exist_ok=True)
    line.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_text(line, protocol.to_line(job))
    with (
        BoundedLog(first / protocol.LOG) as log,
        processes.running(job, python, WORKER, log, hosts, line, first) as process,
    ):
        while not stopped():
            try:
                code = process.wait(POLL_S)
            except subprocess.TimeoutExpired:
                log.bound()
                continue
            log.end()
            error = failing_ranks.cause(folder, ranks, processes.final_error(code, first)) if code else None
            return Trial(folder, job, error=error, done=not code)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
        return Trial(folder, job)


def ordered(job: Job, order: Order) -> Job:
    """Return this node's job with what the first node has decided."""
    adapter = frameworks.framework(job.case.framework).user_folder
    return replace(job, schedule=order.schedule, spawned_ns=time.perf_counter_ns(), adapter_folder=adapter)
