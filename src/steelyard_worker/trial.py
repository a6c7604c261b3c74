"""The work of one process: import the framework, build the network, measure or certify. Every failure becomes an event."""

from __future__ import annotations

import errno
import faulthandler
import inspect
import os
import platform
import signal
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard_worker import frames, imported, job_kinds, launcher, memory, protocol, timing, untouched, variables
from steelyard_worker.job_kinds import CERTIFY, SETTINGS
from steelyard_worker.kept_settings import BUILT, KeptSettings
from steelyard_worker.phases import Phase
from steelyard_worker.protocol import EVENTS, EventWriter, Job, Refusal
from steelyard_worker.ranks import Lost
from steelyard_worker.strategy import ALONE_RATE, without_hosts
from steelyard_worker.strategy_kinds import ALONE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard_worker.case import Optimizer
    from steelyard_worker.frameworks.base import Adapter
    from steelyard_worker.ranks import Ranks

PR_SET_PDEATHSIG = 1  # linux/prctl.h
EXIT_REFUSED = 3
EXIT_CRASHED = 4
EXIT_DISK_FULL = 5
EXIT_STOPPED = 6


def main(line: str) -> int:
    """Run the job given as JSON, or one rank of it; the exit code is 0 if `done` was written."""
    from steelyard_worker import ranks
    from steelyard_worker.frameworks import base

    _die_with_parent()
    job = protocol.from_line(line)
    own = ranks.of_environment(job.case.strategy, job.spread)
    if role := os.environ.get(ranks.ROLE):
        base.serve(job.case.framework, job.adapter_folder, role, own)
        return 0
    job = replace(job, folder=str(protocol.rank_folder(Path(job.folder), own.rank)))
    Path(job.folder).mkdir(exist_ok=True)
    events = EventWriter(Path(job.folder) / EVENTS, timing.monotonic)
    if own.count > 1:
        _answer_signals(events, Path(job.folder))
    try:
        _pin(job, own, events)
        watched = _Watched()
        _run(job, events, own, watched)
        watched.end(job, events)
        own.barrier()  # the other ranks may still need data of this one
        events.write("done")
        events.close()
    except Exception as error:  # top level of the process: every failure is recorded as an event
        traceback.print_exc()
        if isinstance(error, Refusal) and error.kind == untouched.KIND:
            _withdraw(job)
        return _record(events, error, job.adapter_folder)
    return 0


def _withdraw(job: Job) -> None:
    """Make the tensors that a process of a certificate has saved unusable: a folder without an index is incomplete."""
    from steelyard_worker.tensors import INDEX

    for index in Path(job.folder).glob(f"*/{INDEX}"):
        index.unlink()


def end(code: int, line: str) -> None:
    """End the process of a job, given as JSON, with the exit code of `main`.

    A single process that has recorded everything ends at once. Frameworks need up to a second to shut down, and the next process
    must wait for it. Loader processes and ranks, which share memory and connections, may still write.
    """
    job = protocol.from_line(line) if code == 0 else None
    if job and job_kinds.of(job.kind).ends_at_once and job.spread is None and not job.case.loader_workers:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        _flush_libraries()
        os._exit(code)
    sys.exit(code)


def _flush_libraries() -> None:
    """Write what C and C++ code of frameworks has printed but still buffers."""
    import ctypes

    ctypes.CDLL(None).fflush(None)


def _die_with_parent() -> None:
    """Make the kernel kill this process if the orchestrator is killed, so that no worker is left running (prctl(2)).

    The same holds for loader processes that it forks. A worker that is stopped until its turn comes could not notice by itself
    that its parent has ended.
    """
    if sys.platform != "linux":
        return
    import ctypes

    set_option = ctypes.CDLL(None).prctl
    set_option(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.register_at_fork(after_in_child=lambda: set_option(PR_SET_PDEATHSIG, signal.SIGKILL))
    # Removed, because it differs in every process and is no variable that decides anything.
    parent = os.environ.pop(launcher.PARENT, None)
    if parent not in (None, str(os.getppid())):  # it was killed before this process could ask
        sys.exit(EXIT_STOPPED)


def _answer_signals(events: EventWriter, folder: Path) -> None:
    """On SIGTERM, which launchers send to all ranks when one has failed, record that and end.

    On SIGUSR1, write where every thread of this process is.
    """

    def stop(number: int, frame: object) -> None:
        del frame
        events.write("stopped", signal=number)
        os._exit(EXIT_STOPPED)

    signal.signal(signal.SIGTERM, stop)
    faulthandler.register(signal.SIGUSR1, (folder / protocol.PLACE).open("w"), all_threads=True)


def _pin(job: Job, own: Ranks, events: EventWriter) -> None:
    """Use as many cores as there are threads, each rank its own, where a strategy has a number of parts.

    Otherwise ranks would be compared with a process that uses cores which they share. Where there are fewer cores, they do
    share them, with a warning.
    """
    wanted, parts = job.case.settings.threads, own.parts
    together = len(launcher.ranks_of_host(parts)) if own.count > 1 else parts
    if ":" not in job.case.strategy or job.case.settings.device != "cpu" or not wanted or sys.platform != "linux":
        return
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < wanted * together:
        events.write("warning", name="cores-shared", count=len(cores))
    first, needed = (own.place * wanted, wanted) if own.count > 1 else (0, wanted * parts)
    os.sched_setaffinity(0, {cores[place % len(cores)] for place in range(first, first + needed)})


def _record(events: EventWriter, error: Exception, adapter_folder: str) -> int:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return EXIT_DISK_FULL
    if isinstance(error, Lost):  # the record of the other rank says why
        events.write("stopped", message=str(error))
        return EXIT_STOPPED
    kind, text = classify(error)
    if isinstance(error, Refusal):
        events.write("error", kind=kind, message=text)
        return EXIT_REFUSED
    events.write("error", kind=kind, message=text + frames.place_in(error, adapter_folder))
    return EXIT_CRASHED


def classify(error: Exception) -> tuple[str, str]:
    """Return (kind, message in one line) of an exception. Frameworks raise their own types if memory runs out."""
    text = " ".join(str(error).split())[:400] or type(error).__name__
    if isinstance(error, Refusal):
        return error.kind, text
    lowered = f"{type(error).__name__} {text}".lower()
    memory = (
        "out of memory",
        "memoryerror",
        "bad_alloc",
        "can't allocate memory",
        "resource_exhausted",
        "resourceexhausted",
        "cannot allocate memory",
        "failed to allocate",
        "unable to allocate",
    )
    if any(sign in lowered for sign in memory):
        return "out-of-memory", text
    return "crash", f"{type(error).__name__}: {text}"


def _run(job: Job, events: EventWriter, own: Ranks, watched: _Watched) -> None:
    from steelyard_worker import exchange, network
    from steelyard_worker.frameworks import base

    if job.kind not in job_kinds.KINDS:
        raise Refusal("unsupported", f"There is no kind of job '{job.kind}' in this version of steelyard.")
    events.write(
        "hello",
        python=platform.python_version(),
        pid=os.getpid(),
        executable=sys.executable,
        method=protocol.METHOD,
        worker_hash=job.worker_hash,
    )
    if job.schedule.batch:
        job = replace(job, case=replace(job.case, sizes=job.case.sizes | {"batch": job.schedule.batch}))
    peaks = memory.Peaks(job.case.memory_limit if job_kinds.of(job.kind).limited else 0)
    with Phase(events, "import", peaks):
        adapter = base.load(job.case.framework, job.case.settings, job.adapter_folder, own)
    peaks.of_device(adapter)
    with Phase(events, "read-back", peaks) as read_back:
        kept = _check_applied(job, adapter, events)
        watched.begin()
    if job.kind == SETTINGS:
        return
    # Reading the settings back may build and trace probes. Users do not pay for that, so it is no part of the start-up time.
    job = replace(job, spawned_ns=job.spawned_ns + read_back.elapsed_ns if job.spawned_ns else 0)
    own.meet(adapter.libraries())
    sizes = own.sizes(job.case.sizes)
    described = network.describe(job.workload_folder, job.case.sizes)
    implementation: Any = (
        exchange.Networks(Path(job.networks))
        if job.networks
        else network.load_implementation(job.workload_folder, job.case.workload, job.case.framework, job.adapter_folder)
    )

    def build_trainer(
        weights: Mapping[str, Any],
        optimizer: Optimizer = job.case.optimizer,
        method: str = "trainer",
        scale: float = 1.0,
    ) -> Any:
        factor = ALONE_RATE if own.name == ALONE else 1.0
        rates = _rates(job, adapter, factor * scale) if optimizer.schedule.changes else ()
        optimizer = replace(optimizer, learning_rate=optimizer.learning_rate * factor)
        built = getattr(adapter, method)(implementation, sizes, described, weights, optimizer, *rates)
        kept.check(BUILT)
        return built

    def build_predictor(weights: Mapping[str, Any]) -> Any:
        if not hasattr(adapter, "predictor"):
            raise Refusal(
                "unsupported", f"The adapter of {job.case.framework} has no predictor(), which inference needs."
            )
        built = adapter.predictor(implementation, job.case.sizes, described, weights)
        kept.check(BUILT)
        return built

    def read_checkpoint(path: Path) -> dict[str, Any]:
        if not hasattr(adapter, "checkpoint"):
            reason = f"The adapter of {job.case.framework} has no checkpoint(), which reads a file of its weights."
            raise Refusal("unsupported", reason)
        found: dict[str, Any] = adapter.checkpoint(implementation, sizes, described, path)
        return found

    from steelyard_worker.work import Work, run_kind

    run_kind(Work(job, described, adapter, events, own, peaks, kept, build_trainer, build_predictor, read_checkpoint))


def _check_applied(job: Job, adapter: Adapter, events: EventWriter) -> KeptSettings:
    """Record the settings that the framework reports, and return those that must stay.

    Refusal: a requested setting did not take effect.
    """
    applied = adapter.applied()
    # A certificate's float64 runs are only compared with others; settings of float32 products do not reach them.
    watched = job.kind != CERTIFY or job.case.settings.precision != "float64"
    kept = KeptSettings(adapter, events, job.case.workload if watched else "")
    events.write(
        "applied",
        applied=applied,
        libraries=adapter.libraries(),
        variables=variables.deciding(os.environ),
        arithmetic=kept.arithmetic,
    )
    settings = job.case.settings
    requested = {
        "mode": settings.mode,
        "device": settings.device,
        "precision": settings.precision,
        "deterministic": settings.deterministic,
        **settings.knobs,
    }
    # On a GPU or NPU, a framework may have no threads that compute.
    if settings.threads and (settings.device == "cpu" or "threads" in applied):
        requested["threads"] = settings.threads
    if job.spread:
        requested["strategy"] = without_hosts(job.case.strategy)
    for name, value in requested.items():
        if name == "deterministic" and applied.get(name) == protocol.ALWAYS:
            continue
        if applied.get(name, "nothing") != value:
            raise Refusal(
                "setting", f"{name} was set to {value!r}, but {job.case.framework} reports {applied.get(name)!r}."
            )
    return kept


def _rates(job: Job, adapter: Adapter, factor: float) -> tuple[Any]:
    """Return the learning rate of every step, times a factor; Refusal: the adapter takes none."""
    from steelyard_worker import tensors

    if "rates" not in inspect.signature(adapter.trainer).parameters:
        name = job.case.framework
        raise Refusal("unsupported", f"The adapter of {name} takes no learning rates per step (`rates` of `trainer`).")
    rates = tensors.read(Path(job.rates))["rates"]
    return (rates * rates.dtype.type(factor),)


class _Watched:
    """Observes what an implementation imports, and whether it replaces functions that measure and record."""

    def __init__(self) -> None:
        self._environment: frozenset[str] = frozenset()
        self._known: untouched.Known = {}

    def begin(self) -> None:
        """Look at the process as it is before an implementation is loaded."""
        # Loaded here, because what is loaded later could be made of replaced parts.
        from steelyard_worker import work  # noqa: F401

        self._environment, self._known = imported.environment(), untouched.known()

    def end(self, job: Job, events: EventWriter) -> None:
        """Record what was imported; Refusal: something was replaced."""
        untouched.check(self._known)
        imported.report(job, self._environment, events)
