"""Runs mutants, wrong and right ones: a copy of the worker with edits, in a process forked from one that has the framework."""

from __future__ import annotations

import json
import shutil
import subprocess
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock, Semaphore
from typing import TYPE_CHECKING, Any

import rounded
import rounded_by_size
import subjects

from steelyard.catalog import frameworks
from steelyard.certificates import inner
from steelyard.certificates.conclusion import conclude, next_tasks
from steelyard.certificates.dumps import is_done
from steelyard.certificates.plan import plan_certification
from steelyard.environments import clean_environ
from steelyard_worker import protocol
from steelyard_worker.case import TRAINING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pytest

    from steelyard.certificates.plan import Candidate, CertificationPlan, Task
    from steelyard.certificates.record import Certificate
    from steelyard_worker.protocol import Job

CONCURRENT_JOBS = 2
REFERENCE = "pytorch"
FORK_SERVER = Path(__file__).parent / "fork_server.py"
# What the processes of mutants read besides the worker, from the root of the repository.
BENCH_FILES = ("tests/certificates/fork_server.py",)


@dataclass(frozen=True)
class Mutant:
    """One bug: `edits` are (file in the worker, text, replacement), `names` is text that the certificate must contain.

    `inner`: the inner tensor that must be named as the first that differs; empty: inner tensors are not compared.
    """

    name: str
    workload: str
    preset: str
    framework: str
    edits: tuple[tuple[str, str, str], ...]
    names: str
    optimizer: dict[str, Any] | None = field(hash=False)
    knobs: dict[str, Any] = field(hash=False)
    seed: int = subjects.SEED
    escalated: bool = False
    batch: int = 0
    task: str = TRAINING
    inner: str = ""
    slow: bool = False

    @property
    def group(self) -> str:
        """Return the key of mutants with the same reference."""
        rule = self.optimizer or {}
        places = self.task, self.workload, self.preset, self.seed, self.batch
        return f"{places}-{rule.get('name')}-{rule.get('schedule')}"


def _edits(raw: dict[str, Any]) -> tuple[tuple[str, str, str], ...]:
    if "by_size" in raw:
        return rounded_by_size.edits(raw["framework"], *raw["by_size"])
    return tuple(map(tuple, raw["edits"])) if "edits" in raw else rounded.edits(raw["framework"], *raw["rounded"])


def mutant_of(raw: dict[str, Any]) -> Mutant:
    """Return the mutant of a table of a TOML file."""
    return Mutant(
        raw["name"],
        raw["workload"],
        raw["preset"],
        raw["framework"],
        _edits(raw),
        raw["names"],
        raw.get("optimizer"),
        raw.get("knobs", {}),
        raw.get("seed", subjects.SEED),
        raw.get("escalated", False),
        raw.get("batch", 0),
        raw.get("task", TRAINING),
        raw.get("inner", ""),
        raw.get("slow", False),
    )


def copy_worker(folder: Path) -> Path:
    copied = folder / "steelyard_worker"
    shutil.copytree(frameworks.WORKER, copied, ignore=shutil.ignore_patterns("__pycache__"))
    return copied


def mutate(worker: Path, mutant: Mutant) -> None:
    for name, text, replacement in mutant.edits:
        path = worker / name
        source = path.read_text(encoding="utf-8")
        assert source.count(text) == 1, (
            f"{mutant.name}: {name} contains {text!r} {source.count(text)} times instead of once. Correct the mutant."
        )
        path.write_text(source.replace(text, replacement), encoding="utf-8")


class Server:
    """A process that imports one framework once: `run` runs a job in a fork of it. Its log is in `folder`."""

    def __init__(self, framework: str, python: Path, folder: Path, cores: Semaphore) -> None:
        self._lock, self._cores = Lock(), cores
        # Mutants are compiled as references are, because compilation takes most of the time and a bug stays the same bug.
        variables = frameworks.framework(framework).reference_variables
        quick = {name: value.replace("{folder}", str(folder)) for name, value in variables.items()}
        # NumPy's thread pool would be forked, too.
        environ = clean_environ(python) | quick | {"OPENBLAS_NUM_THREADS": "1"}
        self._log = folder / f"{framework}.log"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(python), "-I", str(FORK_SERVER), framework],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environ,
                cwd=folder,
                text=True,
            )

    def run(self, job: Job, worker: Path = frameworks.WORKER) -> None:
        """Run one job and wait for it; its results are in its folder, as after `launch.launch`."""
        Path(job.folder).mkdir(parents=True, exist_ok=True)
        request = json.dumps([str(worker), protocol.to_line(job)])
        with self._lock, self._cores:
            assert self._process.stdin
            assert self._process.stdout
            print(request, file=self._process.stdin, flush=True)
            code = self._process.stdout.readline()
        assert code, f"The fork server of the framework ended: {self._log.read_text(encoding='utf-8')[-2000:]}"

    def close(self) -> None:
        """End the process, whether it was used or not."""
        self._process.communicate()


class Bench:
    """Runs mutants in sequence for each framework, two frameworks at a time, and each reference once."""

    def __init__(self, folder: Path, interpreters: Mapping[str, Path]) -> None:
        self._folder, self._interpreters = folder, interpreters
        self._cores = Semaphore(CONCURRENT_JOBS)
        self._sharing = Lock()
        self._servers: dict[str, Server] = {}
        self._queues: dict[str, ThreadPoolExecutor] = {}
        self._references: dict[str, tuple[Path, Future[None]]] = {}
        self.certificates: dict[Mutant, Future[Certificate]] = {}

    def submit(self, mutant: Mutant) -> None:
        folder = self._folder / str(len(self.certificates))
        found = subjects.candidate(
            mutant.framework,
            mutant.workload,
            mutant.preset,
            folder,
            mutant.optimizer,
            seed=mutant.seed,
            batch=mutant.batch,
            task=mutant.task,
        )
        settings = replace(found.job.case.settings, knobs=found.job.case.settings.knobs | mutant.knobs)
        job = replace(found.job, case=replace(found.job.case, settings=settings))
        found = replace(found, job=job, has_float64="float64" in frameworks.framework(mutant.framework).precisions)
        shared, ready = self._reference(f"{mutant.group} {sorted(found.declared.items())}", found)
        plan = plan_certification(found, [subjects.installation(REFERENCE)], shared)
        server = self._server(mutant.framework)
        self.certificates[mutant] = self._queues[mutant.framework].submit(
            self._certify, plan, mutant, server, folder, ready
        )

    def close(self) -> None:
        for queue in self._queues.values():
            queue.shutdown(cancel_futures=True)
        for server in self._servers.values():
            server.close()

    def _server(self, framework: str) -> Server:
        if framework not in self._servers:
            self._servers[framework] = Server(framework, self._interpreters[framework], self._folder, self._cores)
            self._queues[framework] = ThreadPoolExecutor(1)
        return self._servers[framework]

    def _reference(self, form: str, found: Candidate) -> tuple[Path, Future[None]]:
        if form not in self._references:
            shared = self._folder / "references" / str(len(self._references))
            task = plan_certification(found, [subjects.installation(REFERENCE)], shared).reference_tasks[0]
            server = self._server(REFERENCE)
            self._references[form] = shared, self._queues[REFERENCE].submit(server.run, task.job)
        return self._references[form]

    def _certify(
        self, plan: CertificationPlan, mutant: Mutant, server: Server, folder: Path, ready: Future[None]
    ) -> Certificate:
        """Run the mutated worker and conclude; the reference was submitted earlier, so waiting for it cannot deadlock."""
        worker = copy_worker(folder)
        mutate(worker, mutant)

        def run_mutated(task: Task) -> None:
            server.run(replace(task.job, workload_folder=str(worker / "workloads" / mutant.workload)), worker)

        def run_all(tasks: tuple[Task, ...]) -> None:
            for task in tasks:
                if Path(task.job.folder).is_relative_to(folder):
                    run_mutated(task)
                else:
                    with self._sharing:  # mutants share it, and those of two frameworks run at the same time
                        if not is_done(task):
                            self._servers[REFERENCE].run(task.job)

        run_mutated(plan.candidate_task)
        ready.result()
        while mutant.escalated and (further := next_tasks(plan)):
            run_all(further)
        if mutant.inner and not mutant.escalated:
            run_all(inner.tasks(plan, (plan.reference_tasks[0], plan.candidate_task)))
        return conclude(plan)


def running(
    module: str, request: pytest.FixtureRequest, folder: Path, interpreter: Callable[[str], Path]
) -> Iterator[Bench]:
    """Yield a bench that runs the mutants of all chosen tests of a module, and close it."""
    chosen = [
        item.callspec.params["mutant"]
        for item in request.session.items
        if "bench" in getattr(item, "fixturenames", ()) and item.module.__name__ == module
    ]
    # All before the first job: while an environment is looked for, STEELYARD_CACHE is the user's, also for the jobs' threads.
    interpreters = {name: interpreter(name) for name in {REFERENCE, *(mutant.framework for mutant in chosen)}}
    found = Bench(folder, interpreters)
    try:
        for mutant in chosen:
            found.submit(mutant)
        yield found
    finally:
        found.close()
