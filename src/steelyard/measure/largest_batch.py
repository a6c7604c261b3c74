"""The largest batch that a case trains within its memory: powers of two, then bisection, then a second pass.

If the batch that was found does not pass a second time, the search continues below it, because processes of a framework differ in
their memory.

Every batch that is tried is a process of its own; its record is in the folder `probes` of the run.
"""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from steelyard.catalog import workloads
from steelyard.files import within
from steelyard.measure.session import Session
from steelyard.plan.memory import fitting_batch
from steelyard.results.trials import Trial
from steelyard_worker.job_kinds import KINDS, PROBE
from steelyard_worker.protocol import Job

OUT_OF_MEMORY = "out-of-memory"
# The result is known to this share of the power of two below it.
SHARE = 8
# No memory of today holds more samples of a network, so a search ends here even if nothing fails.
MOST = 2**20

Fits = Callable[[int], bool]
Stopped = Callable[[], bool]


def find(session: Session, job: Job) -> Trial:
    """Return the trial of a measuring job at its largest batch, which a probe has passed before.

    If not even one sample fits, return the failed trial of one sample; if a process fails for another reason than memory, return
    its trial.
    """
    name, crashed = session.plan.by_id[job.case.id].key, list[int]()

    def fits(batch: int) -> bool:
        trial = session.run(_probe(job, batch, session.folder))
        if trial.error and trial.error[0] != OUT_OF_MEMORY:
            crashed.append(batch)
        session.screen.say(f"{name}: a batch of {batch} {'fits' if trial.done else 'does not fit'}.")
        return trial.done

    def stopped() -> bool:
        return bool(crashed)

    passed, failed = search(fits, _first(session, job), stopped)
    while True:
        batch = crashed[0] if crashed else max(passed, default=1)
        schedule = replace(job.schedule, batch=batch, failed_batch=0 if crashed else failed)
        trial = session.run(replace(job, schedule=schedule))
        if not trial.error or trial.error[0] != OUT_OF_MEMORY or crashed or batch == 1:
            return trial
        session.screen.say(f"{name}: a batch of {batch} fitted once, but not again.")
        kept = session.folder / KINDS[PROBE].folder / f"{trial.folder.name}-batch{batch}-again"
        shutil.move(trial.folder, within.check(session.folder, kept))
        passed, failed = search_below(fits, batch, [each for each in passed if each < batch], stopped)


def search(fits: Fits, first: int, stopped: Stopped = lambda: False) -> tuple[list[int], int]:
    """Return the batches that fit, and the smallest that does not; 0 if all did.

    From `first`, a power of two, the batch is doubled or halved until one fits and its double does not; the range between them is
    halved until it is an eighth of the lower one, or one sample. It also ends when `stopped` says so.
    """
    passed: list[int] = []
    batch = first
    while not stopped():
        if not fits(batch):
            return search_below(fits, batch, passed, stopped)
        passed.append(batch)
        if batch >= MOST:
            break
        batch *= 2
    return passed, 0


def search_below(fits: Fits, failed: int, passed: list[int], stopped: Stopped = lambda: False) -> tuple[list[int], int]:
    """Return the batches that fit, and the smallest that does not, where `failed` does not and those that `passed` do.

    Without any that passed, the batch is halved until one fits. The range below the one that failed is halved as in `search`.
    """
    passed = list(passed)
    while not passed and failed > 1 and not stopped():
        batch = failed // 2
        if fits(batch):
            passed.append(batch)
        else:
            failed = batch
    while passed and failed - max(passed) > max(1, _power_below(max(passed)) // SHARE) and not stopped():
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
    return _power_below(min(max(batch, 1), MOST))


def _power_below(number: int) -> int:
    """Return the largest power of two that is not above a number of at least 1."""
    return 1 << number.bit_length() - 1


def _probe(job: Job, batch: int, run: Path) -> Job:
    folder = run / KINDS[PROBE].folder / f"{Path(job.folder).name}-batch{batch}"
    return replace(job, kind=PROBE, folder=str(folder), schedule=replace(job.schedule, batch=batch))
