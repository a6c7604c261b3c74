"""The largest batch that a case trains within its memory: powers of two, then bisection. What passed has to pass once more.

Every batch that is tried is a process of its own; its record is in the folder `probes` of the run.
"""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from steelyard.catalog import workloads
from steelyard.measure.session import Session
from steelyard.plan.memory import fitting_batch
from steelyard.results.trials import Trial
from steelyard_worker.protocol import Job

PROBES = "probes"
OUT_OF_MEMORY = "out-of-memory"
# The result is known to this share of the power of two below it.
SHARE = 8
# No memory of today holds more samples of a network, so a search ends here even if nothing fails.
MOST = 2**20

Fits = Callable[[int], bool]


def find(session: Session, job: Job) -> Trial:
    """Return the trial of a measuring job at its largest batch, which a probe has passed before.

    If not even one sample fits, it is the failed trial of that; if a process fails for another reason than memory, it is that
    of its batch.
    """
    name, crashed = session.plan.by_id[job.case.id].key, list[int]()

    def fits(batch: int) -> bool:
        trial = session.run_probe(_probe(job, batch, session.folder))
        if trial.error and trial.error[0] != OUT_OF_MEMORY:
            crashed.append(batch)
        session.screen.say(f"{name}: a batch of {batch} {'fits' if trial.done else 'does not fit'}.")
        return trial.done

    passed, failed = search(fits, _first(session, job), lambda: bool(crashed))
    while True:
        below = max(1, failed - max(1, failed // SHARE)) if failed else 1
        batch = crashed[0] if crashed else max((each for each in passed if not failed or each < failed), default=below)
        schedule = replace(job.schedule, batch=batch, failed_batch=0 if crashed else failed)
        trial = session.run_trial(replace(job, schedule=schedule))
        if not trial.error or trial.error[0] != OUT_OF_MEMORY or crashed or batch == 1:
            return trial
        session.screen.say(f"{name}: a batch of {batch} fitted once, but not again.")
        failed = batch
        shutil.move(trial.folder, session.folder / PROBES / f"{trial.folder.name}-batch{batch}-again")


def search(fits: Fits, first: int, stopped: Callable[[], bool] = lambda: False) -> tuple[list[int], int]:
    """Return the batches that fit, and the smallest that does not; 0 if all did.

    From `first`, a power of two, the batch is doubled or halved until one fits and its double does not; the range between them is
    halved until it is an eighth of the lower one, or one sample. It also ends when `stopped` says so.
    """
    passed: list[int] = []
    failed, batch = 0, first
    while not stopped():
        if fits(batch):
            passed.append(batch)
            if failed or batch >= MOST:
                break
            batch *= 2
        else:
            failed = batch
            if passed or batch == 1:
                break
            batch //= 2
    if not passed or not failed:
        return passed, failed
    step = max(1, max(passed) // SHARE)
    while failed - max(passed) > step and not stopped():
        middle = (max(passed) + failed) // 2
        if fits(middle):
            passed.append(middle)
        else:
            failed = middle
    return passed, failed


def _first(session: Session, job: Job) -> int:
    """Return the power of two below the batch that should fit by estimate; without a limit, below the case's own."""
    case = job.case
    batch = case.batch
    if case.memory_limit:
        network = workloads.described(Path(session.plan.workload_folders[case.workload]), case.sizes)
        batch = fitting_batch(network, case.optimizer, case.memory_limit)
    return 1 << min(max(batch, 1), MOST).bit_length() - 1


def _probe(job: Job, batch: int, run: Path) -> Job:
    folder = run / PROBES / f"{Path(job.folder).name}-batch{batch}"
    return replace(job, kind="probe", folder=str(folder), schedule=replace(job.schedule, batch=batch))
