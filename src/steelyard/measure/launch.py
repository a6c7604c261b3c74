"""Start one worker process, watch it, and return its trial. Its events file remains, however the process ends."""

import contextlib
import itertools
import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from steelyard.catalog import frameworks
from steelyard.catalog.frameworks import WORKER
from steelyard.errors import UserError
from steelyard.files import json_lines, within
from steelyard.files.bounded_log import BoundedLog
from steelyard.measure import failing_ranks, kept_record, processes, watching
from steelyard.measure import hosts as places
from steelyard.measure.hosts import Hosts, Partners
from steelyard.measure.output import Output, left_behind, with_more
from steelyard.measure.watching import Watching
from steelyard.results import trials
from steelyard.results.trials import Trial
from steelyard_worker import job_kinds, protocol
from steelyard_worker.protocol import Job
from steelyard_worker.strategy import parts_of

Watch = Callable[[dict[str, Any]], None]

POLL_S = 0.05
# The outcome of a process that was stopped with its run. It is no failure of its framework, so the record has no error, and the
# run repeats the process when it is continued.
STOPPED = ("killed", "The worker was stopped with the run.")
# The time that a process has to end by itself after ranks on another node have ended too early.
GRACE_S = 5.0


@dataclass(frozen=True)
class Guard:
    """When to stop a worker: after `silence_s` seconds without an event, or if the run is stopped.

    The longest normal time without an event is that of a compilation.
    """

    silence_s: float = 600.0
    stopped: Callable[[], bool] = lambda: False  # polled while the worker runs: whether the run was interrupted


def launch(
    job: Job, python: Path, watch: Watch, guard: Guard, worker: Path = WORKER, partners: Partners | None = None
) -> Trial:
    """Run one job in a process group of its own; the returned Trial has `error` set when it did not finish.

    `partners`: the other nodes of a cluster, for strategies that need several.
    """
    job = _recorded(job, worker)
    folder, seen = Path(job.folder), Watching(job.spawned_ns)
    try:
        with places.of(job, partners) as hosts:
            verdict = _run(job, python, worker, watch, guard, hosts, partners, seen)
    except UserError as error:
        verdict = ("unsupported", str(error))
    verdict = kept_record.restored(job, seen.has_seen_events, verdict) or verdict
    try:
        trial = trials.read(folder)
    except UserError as error:  # what the process wrote is damaged; the others can still be measured
        return Trial(folder, job, error=("crash", str(error)))
    # The first rank's own error is often a consequence: it lost the connection to the rank that failed.
    told = trial.error and _processes(job) == 1
    if trial.done:
        return _watched(trial, seen) if job_kinds.of(job.kind).in_rounds else trial
    return trial if told else record_error(trial, verdict[0], with_more(verdict[1], left_behind(trial)))


def _watched(trial: Trial, seen: Watching) -> Trial:
    """Add the launcher's observations to the record of a finished trial, unless its framework has a scripted clock."""
    found = seen.record(several=_processes(trial.job) > 1)
    if found is None or frameworks.framework(trial.job.case.framework).scripted:
        return trial
    watching.append(trial.folder, found)
    return replace(trial, watched=found)


def refused(job: Job, kind: str, message: str) -> Trial:
    """Record a job whose process cannot be started for a known reason."""
    job = _recorded(job)
    (Path(job.folder) / protocol.LOG).write_text(f"{message}\n", encoding="utf-8")
    return record_error(Trial(Path(job.folder), job), kind, message)


def _recorded(job: Job, worker: Path = WORKER) -> Job:
    """Write the job into its folder; it has the time at which its process starts, and the hash of the worker."""
    _empty(Path(job.folder))
    adapter = frameworks.framework(job.case.framework).user_folder
    code = worker_hash(worker, adapter)
    job = replace(job, spawned_ns=time.perf_counter_ns(), worker_hash=code, adapter_folder=adapter)
    kept_record.write_job(job)
    return job


def worker_hash(worker: Path = WORKER, adapter_folder: str = "") -> str:
    """Return a hash of every source file of the worker, and of a user's own adapter: all of them can move a measurement.

    It is stored with each trial (16 hexadecimal digits).
    """
    digest = sha256(frameworks.files_hash(Path(adapter_folder)).encode() if adapter_folder else b"")
    for path in sorted(worker.rglob("*")):
        if path.suffix in (".py", ".toml"):
            digest.update(str(path.relative_to(worker)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _empty(folder: Path) -> None:
    """Create a trial's folder. An existing one, from an interrupted process, is renamed and never overwritten.

    UserError: it is a link, or has one, so that a process would write elsewhere.
    """
    within.check(folder.parent, folder)
    if (folder / protocol.EVENTS).exists():
        earlier = (folder.with_name(f"{folder.name}.earlier{number}") for number in itertools.count(1))
        folder.rename(next(path for path in earlier if not path.exists()))
    folder.mkdir(parents=True, exist_ok=True)
    if link := next((path for path in folder.rglob("*") if path.is_symlink()), None):
        raise within.refusal(link)


def _run(
    job: Job,
    python: Path,
    worker: Path,
    watch: Watch,
    guard: Guard,
    hosts: Hosts,
    partners: Partners | None,
    seen: Watching,
) -> tuple[str, str]:
    """Run the process to its end; returns the error to record if the worker did not record one itself."""
    others = partners if hosts.are_nodes else None
    folder = Path(job.folder)
    count = _processes(job)
    with BoundedLog(folder / protocol.LOG) as log, contextlib.ExitStack() as stack:
        try:
            started = processes.running(job, python, worker, log, hosts, folder / trials.JOB, folder)
            process = stack.enter_context(started)
        except OSError as error:
            reason = f"The interpreter {python} could not be started ({error.strerror})."
            return "crash", f"{reason} --resume recreates a missing environment."
        if others:
            stack.callback(others.end)
            others.begin(job, hosts.meeting)
        limit = job.case.memory_limit if job_kinds.of(job.kind).limited else 0
        bounded = Output(log, job)
        stopped = _wait(process, folder, watch, guard, limit, count, others, seen, bounded)
        said = bounded.end()
        if stopped or count == 1:
            kind, message = stopped or processes.final_error(process.returncode, folder)
            return (kind, message) if stopped == STOPPED else (kind, with_more(message, said))
        if others and process.returncode and (failed := _failure_elsewhere(folder, count, others)):
            return failed
        return failing_ranks.cause(folder, count, processes.final_error(process.returncode, folder))


def _failure_elsewhere(folder: Path, ranks: int, others: Partners) -> tuple[str, str] | None:
    """Return why ranks on another node have failed, if the end of those here may follow from it."""
    limit = time.monotonic() + GRACE_S
    while failing_ranks.own_error(folder, ranks) is None and time.monotonic() < limit:
        if failed := others.failure():
            return failed
        time.sleep(POLL_S)
    return None


def _processes(job: Job) -> int:
    """Return the number of ranks that are processes of their own."""
    return parts_of(job.case.strategy) if job.spread and job.spread.several_processes else 1


def _wait(
    process: subprocess.Popen[bytes],
    folder: Path,
    watch: Watch,
    guard: Guard,
    limit: int,
    ranks: int,
    others: Partners | None,
    seen: Watching,
    output: Output,
) -> tuple[str, str] | None:
    """Forward events as they arrive; returns the error of a process that was stopped, None if it ended by itself.

    Of several ranks, the first one's events are those of the trial. `others`: the nodes that have some of the ranks.
    """
    tail = _Tail(folder / protocol.EVENTS, seen)
    heard = time.monotonic()
    while not seen.has_ended(process):
        for event in tail.new():
            watch(event)  # which may take long, where the process waits for its turn
            heard = time.monotonic()
        if guard.stopped():
            return STOPPED
        if endless := output.look():
            return "crash", endless
        if tail.is_gone:
            return "crash", "The record of the process is gone."
        if time.monotonic() - heard > guard.silence_s:
            message = f"The worker wrote no event for {guard.silence_s:.0f} s and was stopped."
            where = failing_ranks.places(folder, ranks) if ranks > 1 else ""
            return "hung", f"{message[:-1]}: {where}." if where else message
        if others and (failed := others.failure()):
            with contextlib.suppress(subprocess.TimeoutExpired):  # it may have failed first, and be about to say why
                process.wait(GRACE_S)
            return failing_ranks.own_error(folder, ranks) or failed
        # The limit is that of each process: of every rank, as each may have a device of its own, and not of all together.
        if limit and (used := processes.largest_resident_bytes(process.pid)) > limit:
            who, most = (
                "A rank or a server" if ranks > 1 else "The process",
                f"more than its limit of {limit / 1e9:g} GB",
            )
            return "out-of-memory", f"{who} used {used / 1e9:.2f} GB of memory, {most}, and was stopped."
        time.sleep(POLL_S)
    for event in tail.new():
        watch(event)
    return None


def record_error(trial: Trial, kind: str, message: str) -> Trial:
    """Append the launcher's error to the events; an incomplete last line of the worker is removed first.

    If a process was stopped with its run, the error is shown, but not recorded.
    """
    if (kind, message) == STOPPED:
        return replace(trial, error=STOPPED)
    event = {"v": protocol.VERSION, "event": "error", "t_ns": time.perf_counter_ns(), "kind": kind, "message": message}
    # On a full disk the line cannot be written. The user still gets the message, and earlier events remain.
    with contextlib.suppress(OSError):
        json_lines.append(trial.folder / protocol.EVENTS, **event)
    return replace(trial, error=(kind, message))


class _Tail:
    """Return the events that were appended to a growing file since the last call."""

    def __init__(self, path: Path, seen: Watching) -> None:
        self._path, self._position, self._seen = path, 0, seen
        self.is_gone = False

    def new(self) -> list[dict[str, Any]]:
        self._seen.looks()
        if not self._path.is_file():
            # A process that waits for its turn would wait for ever, because nobody would read its event.
            self.is_gone = self._position > 0 or not self._path.parent.is_dir()
            return []
        try:
            with self._path.open("rb") as file:
                file.seek(self._position)
                text = file.read()
        except OSError:  # the process has just removed it
            return []
        complete = text[: text.rfind(b"\n") + 1]
        self._position += len(complete)
        found = [event for line in complete.splitlines() if (event := _event(line))]
        for event in found:
            self._seen.found(event)
        return found


def _event(line: bytes) -> dict[str, Any]:
    """Return the event of a line. A damaged line is ignored here and becomes an error when the trial is read."""
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) and "event" in event else {}
