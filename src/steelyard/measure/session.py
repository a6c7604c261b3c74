"""What all stages of a run share once environments and inputs exist, and how one process is run for them."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar

from steelyard.errors import UserError
from steelyard.files import json_lines
from steelyard.inputs.case_inputs import recipe
from steelyard.measure import launch
from steelyard.results.record import ROUNDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from steelyard.console import Screen
    from steelyard.environments import Environment
    from steelyard.inputs.case_inputs import CaseInputs
    from steelyard.plan.run_plan import RunPlan
    from steelyard.results.store import Store
    from steelyard.results.trials import Trial
    from steelyard_worker.case import Case
    from steelyard_worker.protocol import Job

Item = TypeVar("Item")

SPARE_BYTES = 200 * 2**20


@dataclass(frozen=True)
class Session:
    """One run in progress. `folder` is the run's folder, which holds the trials; `inputs` are by their recipe."""

    plan: RunPlan
    folder: Path
    environments: dict[str, Environment]
    inputs: dict[str, CaseInputs]
    store: Store
    screen: Screen
    stop: Event = field(default_factory=Event)

    def inputs_of(self, case: Case) -> CaseInputs:
        """Return what was prepared for a case."""
        return self.inputs[recipe(case)]

    def side_by_side(self, work: Callable[[Item], object], items: Iterable[Item], most: int) -> None:
        """Do the work for several items, at most `most` at a time; an interrupt stops running processes and starts no others."""
        with ThreadPoolExecutor(most) as pool:
            try:
                list(pool.map(work, items))
            except BaseException:
                self.stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def run_trial(self, job: Job) -> Trial:
        """Run one process and index its record; a full disk ends the run, as every later process would fail too."""
        self.check_disk()
        guard = launch.Guard(self.plan.options.silence_s)
        trial = launch.launch(job, self.environments[job.case.environment].python, self.screen.event, guard)
        if trial.error and trial.error[0] == "disk-full":
            raise UserError(trial.error[1])
        self.store.add_trial(self.folder.name, trial)
        self.screen.finished(trial)
        return trial

    def run_aside(self, job: Job) -> Trial:
        """Run a process whose result is not part of the run (certificates, calibration): it is not indexed."""
        self.check_disk()
        guard = launch.Guard(self.plan.options.silence_s, self.stop.is_set)
        return launch.launch(job, self.environments[job.case.environment].python, _ignore, guard)

    def check_disk(self) -> None:
        """Stop the run before a process whose record would not fit on the disk."""
        free = shutil.disk_usage(self.folder).free
        if free < SPARE_BYTES:
            raise UserError(
                f"The disk that holds {self.folder} has {free / 2**20:.0f} MiB left. Free at least "
                f"{SPARE_BYTES / 2**20:.0f} MiB, then go on with: steelyard run --resume {self.folder.name}"
            )

    def note_round(self, **values: Any) -> None:
        """Append to rounds.jsonl whether a round counts, and the host noise during it."""
        json_lines.append(self.folder / ROUNDS, **values)

    def noted_rounds(self) -> list[dict[str, Any]]:
        """Return what `note_round` has written so far."""
        return json_lines.read(self.folder / ROUNDS)


def _ignore(event: dict[str, Any]) -> None:
    """Processes outside the rounds are not shown in the live view."""
