"""The processes of a trial: how they are started, how much memory they have, how they are ended, and what an exit code says."""

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from steelyard.environments.interpreter import clean_environ, command
from steelyard.files import full, json_lines
from steelyard.files.bounded_log import BoundedLog
from steelyard.host import left_behind
from steelyard.host.left_behind import Origin
from steelyard.measure import spread_process
from steelyard.measure.hosts import Hosts
from steelyard_worker import protocol
from steelyard_worker.protocol import Job

LONGEST_MESSAGE = 400
# The worker's exit code for a full disk, and Python's for output that could not be written (the log is on the same disk).
FULL_CODES = (5, 120)
# The exit code for a framework's launcher that is missing.
NOT_FOUND = 119
# How much of the end of a log is searched for its last line.
TAIL_BYTES = 1 << 16
# The time that processes have to end by themselves after the first one has ended; those of libraries notice it within about a
# second.
PATIENCE_S = 3.0
# The warning in the record of a trial whose processes did not.
LEFT = "left-processes"
OUT_OF_MEMORY = "Unless you killed it, the machine probably ran out of memory."


@contextlib.contextmanager
def running(
    job: Job, python: Path, worker: Path, log: BoundedLog, hosts: Hosts, line: Path, record: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Run the process of a job, or its ranks, until the block ends. `log`: what they print; `line`: the file that holds the job;
    `record`: the folder of the first process's events.

    Their temporary files are in a folder that is removed afterwards: frameworks leave some behind, such as torchrun a folder for
    each start. Processes that are still alive are ended as well, and a warning in the record of the trial says so. Raises OSError
    if the process cannot be started.
    """
    environ = clean_environ(python) | job.variables | {"STEELYARD_PARENT": str(os.getpid())}
    with contextlib.ExitStack() as stack:
        own = ""
        with contextlib.suppress(OSError):  # no room for a folder: a process that needs one fails with its own reason
            temporary = tempfile.TemporaryDirectory(prefix="steelyard-", ignore_cleanup_errors=True)
            own = environ[left_behind.VARIABLE] = stack.enter_context(temporary)
        process = _start(job, python, worker, log, hosts, line, environ)
        stack.callback(_end_all, process, left_behind.origin(process.pid, own, job.folder), record)
        yield process


def _end_all(process: subprocess.Popen[bytes], origin: Origin, record: Path) -> None:
    """End the process, and everything that it has left behind. A process that has ended by itself did not end the others."""
    patience_s = PATIENCE_S if process.returncode is not None else 0.0
    kill(process)
    if names := left_behind.end(origin, patience_s):
        warning = {"event": "warning", "name": LEFT, "count": len(names), "programs": sorted(set(names))}
        with contextlib.suppress(OSError):  # a full disk, or a folder that the process has removed
            json_lines.append(record / protocol.EVENTS, v=protocol.VERSION, t_ns=time.perf_counter_ns(), **warning)


def _start(
    job: Job, python: Path, worker: Path, log: BoundedLog, hosts: Hosts, line: Path, environ: dict[str, str]
) -> subprocess.Popen[bytes]:
    started = [*command(python), str(worker / "__main__.py")]
    if job.spread:
        started, environ = spread_process.started(job, job.spread, python, worker, environ, hosts, line)
    process = subprocess.Popen(
        started,
        stdin=subprocess.PIPE,
        stdout=log.fileno(),
        stderr=subprocess.STDOUT,
        env=environ,
        cwd=job.folder,
        start_new_session=True,
    )
    assert process.stdin is not None
    # A broken pipe means that the process ended before it read its job; the exit code and the log show why.
    with contextlib.suppress(BrokenPipeError), process.stdin:
        process.stdin.write(protocol.to_line(job).encode() + b"\n")
    return process


def largest_resident_bytes(pid: int) -> int:
    """Return the resident memory of the largest among a process and those that it has started; 0 if it has ended."""
    return max(map(_bytes_of, _family(pid)), default=0)


def _bytes_of(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def _family(pid: int) -> list[psutil.Process]:
    try:
        first = psutil.Process(pid)
        return [first, *first.children(recursive=True)]
    except psutil.Error:
        return []


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and all that it has started: loader processes and ranks must not outlive their trial.

    Launchers may put their ranks into groups of their own.
    """
    family = _family(process.pid)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for each in family:
        with contextlib.suppress(psutil.Error):
            each.kill()
    process.wait()


def final_error(code: int, folder: Path) -> tuple[str, str]:
    """Return the (kind, message) of a process that ended with an exit code; `folder`: of its log."""
    if code in FULL_CODES:
        return "disk-full", full.sentence(folder)
    last = _last_line(folder / protocol.LOG)
    if code == -signal.SIGKILL:
        return "killed", f"The worker was killed (signal 9). {OUT_OF_MEMORY}"
    if code == NOT_FOUND:
        return "setting", f"{last} It comes with the framework: remove its environment, and --resume makes it again."
    if code < 0:
        return "killed", f"The worker was ended by {signal.Signals(-code).name}: {last}"
    return "crash", f"The worker ended with exit code {code}: {last}"


def _last_line(log: Path) -> str:
    """Return the last line of a log; the process may have removed it."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - TAIL_BYTES))
            lines = file.read().decode("utf-8", errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1][:LONGEST_MESSAGE] if lines else "there was no output"
