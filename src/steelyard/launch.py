"""Start one worker, guard it, and return what became of it; its events file stays behind whatever happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from steelyard import trials
from steelyard.environments import clean_environ
from steelyard.frameworks import WORKER
from steelyard_worker import protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.trials import Trial
    from steelyard_worker.protocol import Job

    Watch = Callable[[dict[str, Any]], None]

POLL_S = 0.05
LAST_WORDS = 400


@dataclass(frozen=True)
class Guard:
    """When a silent worker is given up; its longest silence is a compilation."""

    silence_s: float = 600.0


def launch(job: Job, python: Path, watch: Watch, guard: Guard, worker: Path = WORKER) -> Trial:
    """Run one job in its own process group; returns the Trial, with `error` set when it did not finish."""
    folder = Path(job.folder)
    folder.mkdir(parents=True, exist_ok=True)
    job = replace(job, spawned_ns=time.perf_counter_ns(), worker_hash=worker_hash(worker))
    (folder / trials.JOB).write_text(json.dumps(asdict(job), indent=1), encoding="utf-8")
    with (folder / protocol.LOG).open("ab") as log:
        process = _start(job, python, worker, log)
        try:
            verdict = _wait(process, folder, watch, guard)
        finally:
            _kill(process)
    trial = trials.read(folder)
    if trial.done or trial.error:
        return trial
    kind, message = verdict or _last_words(process.returncode, folder)
    return _record(trial, kind, message)


def worker_hash(worker: Path = WORKER) -> str:
    """Hash of every source file of the worker: part of each row, as it is part of each measurement."""
    digest = sha256()
    for path in sorted(worker.rglob("*")):
        if path.suffix in (".py", ".toml"):
            digest.update(str(path.relative_to(worker)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _start(job: Job, python: Path, worker: Path, log: BinaryIO) -> subprocess.Popen[bytes]:
    environ = clean_environ(python)
    process = subprocess.Popen(
        [str(python), "-I", str(worker / "__main__.py")], stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT,
        env=environ, cwd=job.folder, start_new_session=True,
    )  # fmt: skip
    assert process.stdin is not None
    try:
        process.stdin.write(protocol.to_line(job).encode() + b"\n")
        process.stdin.close()
    except BrokenPipeError:
        pass  # it died before it listened; its exit code and its log say why
    return process


def _wait(process: subprocess.Popen[bytes], folder: Path, watch: Watch, guard: Guard) -> tuple[str, str] | None:
    """Pass events on as they come; returns what the guard decided, or None when the process ended by itself."""
    tail = _Tail(folder / protocol.EVENTS)
    heard = time.monotonic()
    while process.poll() is None:
        for event in tail.new():
            heard = time.monotonic()
            watch(event)
        if time.monotonic() - heard > guard.silence_s:
            return "hung", f"The worker said nothing for {guard.silence_s:.0f} s and was stopped."
        time.sleep(POLL_S)
    for event in tail.new():
        watch(event)
    return None


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the whole group: loader processes of a framework must not outlive their trial."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def _last_words(code: int, folder: Path) -> tuple[str, str]:
    if code == 5:
        return "disk-full", f"The disk that holds {folder} is full. Free some space, then use --resume."
    lines = (folder / protocol.LOG).read_text(encoding="utf-8", errors="replace").strip().splitlines()
    words = lines[-1][:LAST_WORDS] if lines else "it left no output"
    if code == -signal.SIGKILL:
        return "killed", "The worker was killed (signal 9); when nobody did it by hand, the machine ran out of memory."
    if code < 0:
        return "killed", f"The worker died of {signal.Signals(-code).name}: {words}"
    return "crash", f"The worker ended with exit code {code}: {words}"


def _record(trial: Trial, kind: str, message: str) -> Trial:
    """Write the launcher's finding into the record, after cutting off a line that the worker could not finish."""
    path = trial.folder / protocol.EVENTS
    try:
        whole = path.read_bytes() if path.exists() else b""
        keep = whole[: whole.rfind(b"\n") + 1]
        line = json.dumps({"v": protocol.VERSION, "event": "error", "t_ns": time.perf_counter_ns(), "kind": kind, "message": message})
        path.write_bytes(keep + line.encode() + b"\n")
    except OSError:
        pass  # a full disk: the sentence still reaches the person
    return replace(trial, error=(kind, message))


class _Tail:
    """Read the lines that have been added to a growing file since last time."""

    def __init__(self, path: Path) -> None:
        self._path, self._position = path, 0

    def new(self) -> list[dict[str, Any]]:
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._position)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._position += len(whole)
        return [json.loads(line) for line in whole.splitlines()]
