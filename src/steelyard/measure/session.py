"""The state that all stages of a run share once environments and inputs exist, and running one process for them."""

import shutil
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

from steelyard.console import Screen
from steelyard.environments.pending import Arriving
from steelyard.errors import ResumableError
from steelyard.files import json_lines, paths, within
from steelyard.inputs.case_inputs import CaseInputs, recipe
from steelyard.measure import compiled, exports, launch
from steelyard.measure.hosts import Partners
from steelyard.measure.output import left_behind
from steelyard.plan.run_plan import RunPlan
from steelyard.results.durations import PROCESSES, Durations
from steelyard.results.record import ROUNDS, read_rounds
from steelyard.results.store import Store
from steelyard.results.trials import Trial
from steelyard_worker import job_kinds
from steelyard_worker.case import Case
from steelyard_worker.protocol import Job

Item = TypeVar("Item")

SPARE_BYTES = 200 * 2**20


@dataclass(frozen=True)
class Session:
    """A run in progress. `folder` holds the run; `inputs` maps `recipe(case)` to the prepared inputs.

    `node`: the name of the node of a cluster on which this part of the run takes place; empty without a cluster. `partners`: the
    other nodes that take part in its trials, if any.
    """

    plan: RunPlan
    folder: Path
    environments: Arriving
    inputs: dict[str, CaseInputs]
    store: Store
    screen: Screen
    stop: Event = field(default_factory=Event)
    durations: Durations = field(default_factory=Durations)
    node: str = ""
    partners: Partners | None = None

    def inputs_of(self, case: Case) -> CaseInputs:
        """Return the inputs that were prepared for a case."""
        return self.inputs[recipe(case)]

    def side_by_side(self, work: Callable[[Item], object], items: Iterable[Item], most: int) -> None:
        """Process items in parallel, at most `most` at a time. An interrupt stops running processes and starts no more."""
        with ThreadPoolExecutor(most) as pool:
            try:
                list(pool.map(work, items))
            except BaseException:
                self.stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def run(self, job: Job, turn: launch.Watch | None = None) -> Trial:
        """Run the process of a job. Its kind says whether it is shown, counts as time of processes, and is indexed.

        `turn` takes the events of a process that lets others go first. Such processes run beside each other, so who started them
        counts their time and keeps their trials. ResumableError: the disk is full, so that later processes would fail as well.
        """
        if not job_kinds.of(job.kind).shown:
            return self._launch(job, lambda _: None)
        if turn:
            return self._shown(job, turn)
        with self.durations.of(PROCESSES):
            trial = self._shown(job, lambda _: None)
        if job_kinds.of(job.kind).in_rounds:
            self.keep(trial)
        return trial

    def keep(self, trial: Trial) -> None:
        """Index a trial, and show that it has ended."""
        self.store.add_trial(self.folder.name, trial)
        self.screen.finished(trial)

    def _shown(self, job: Job, turn: launch.Watch) -> Trial:
        def watch(event: dict[str, Any]) -> None:
            self.screen.event(event)
            turn(event)

        trial = self._launch(job, watch)
        if trial.error and trial.error[0] == "disk-full":
            raise ResumableError(trial.error[1])
        return trial

    def _launch(self, job: Job, watch: launch.Watch) -> Trial:
        guard = launch.Guard(self.plan.options.silence_s, self.stop.is_set)
        self.check_disk()
        networks = self.folder / exports.FOLDER / Path(job.folder).name
        for folder in (Path(job.folder), networks):
            if folder.is_relative_to(self.folder):
                within.check(self.folder, folder)
        try:
            job = exports.with_networks(
                job,
                self.environments,
                networks,
                lambda each, python: launch.launch(each, python, lambda _: None, guard),
            )
        except exports.ExportError as error:
            return launch.refused(job, error.kind, str(error))
        environment = self.environments[job.case.environment]
        trial = compiled.launched(
            job,
            environment,
            lambda each: launch.launch(each, environment.python, watch, guard, partners=self.partners),
        )
        if left := left_behind(trial):
            self.screen.say(f"   {job.case.framework} on {job.case.workload}: {left}")
        return trial

    def check_disk(self, command: str = "run --resume") -> None:
        """Check that the disk has room for the record of one more process; ResumableError: it does not.

        `command`: what continues the work, before the name of the run.
        """
        free = shutil.disk_usage(self.folder).free
        if free < SPARE_BYTES:
            raise ResumableError(
                f"The disk that holds {self.folder} has {free / 2**20:.0f} MiB left. Free at least "
                f"{SPARE_BYTES / 2**20:.0f} MiB, then continue with: steelyard {command} {paths.named(self.folder)}"
            )

    def check_room(self, what: str, needed_bytes: int, free_bytes: int) -> None:
        """Check that the disk has room for what is saved; ResumableError: it does not. `what`: as it begins the sentence."""
        if needed_bytes + SPARE_BYTES > free_bytes:
            raise ResumableError(
                f"{what} save up to {needed_bytes / 1e9:.1f} GB, and the disk that holds {self.folder} has "
                f"{free_bytes / 1e9:.1f} GB left. Free some, then continue with: "
                f"steelyard run --resume {paths.named(self.folder)}"
            )

    def note_round(self, **values: Any) -> None:
        """Append an entry about one round to rounds.jsonl: whether it counts, and the host noise during it."""
        json_lines.append(self.folder / ROUNDS, **values)

    def noted_rounds(self) -> list[dict[str, Any]]:
        """Return the entries that `note_round` has written; damaged ones are named and left out."""
        found, damaged = read_rounds(self.folder)
        for sentence in damaged:
            self.screen.say(sentence)
        return found
