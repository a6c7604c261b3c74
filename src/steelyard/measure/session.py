"""What every station of a run shares once environments and inputs exist, and how one process is run for it."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar

from steelyard.errors import UserError
from steelyard.measure import launch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from steelyard.console import Screen
    from steelyard.environments import Environment
    from steelyard.inputs.group_inputs import GroupInputs
    from steelyard.plan.cells import Cell
    from steelyard.plan.resolve import RunPlan
    from steelyard.results.store import Store
    from steelyard.results.trials import Trial
    from steelyard_worker.protocol import Job

Item = TypeVar("Item")

ROUNDS = "rounds.jsonl"
SPARE_BYTES = 200 * 2**20


@dataclass(frozen=True)
class Session:
    """One run in progress. `folder` is the run's folder; trials live below it."""

    plan: RunPlan
    folder: Path
    environments: dict[str, Environment]
    inputs: dict[str, GroupInputs]
    store: Store
    screen: Screen
    stop: Event = field(default_factory=Event)

    def side_by_side(self, work: Callable[[Item], object], items: Iterable[Item], most: int) -> None:
        """Do the same for several things, `most` at a time; an interrupt ends running processes and starts no other."""
        with ThreadPoolExecutor(most) as pool:
            try:
                list(pool.map(work, items))
            except BaseException:
                self.stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def run_trial(self, cell: Cell, job: Job) -> Trial:
        """Run one process and index what it left; a full disk ends the run, as everything after would fail too."""
        self.check_disk()
        guard = launch.Guard(self.plan.options.silence_s)
        trial = launch.launch(job, self.environments[cell.environment].python, self.screen.event, guard)
        if trial.error and trial.error[0] == "disk-full":
            raise UserError(trial.error[1])
        self.store.add_trial(self.folder.name, trial)
        self.screen.finished(trial)
        return trial

    def run_aside(self, environment: str, job: Job) -> Trial:
        """Run a process that is no result of the run (certificates, calibration): recorded in its folder, not indexed."""
        self.check_disk()
        guard = launch.Guard(self.plan.options.silence_s, self.stop.is_set)
        return launch.launch(job, self.environments[environment].python, _nobody, guard)

    def check_disk(self) -> None:
        """Stop before a process whose record would not fit."""
        free = shutil.disk_usage(self.folder).free
        if free < SPARE_BYTES:
            raise UserError(
                f"The disk that holds {self.folder} has {free / 2**20:.0f} MiB left. Free at least "
                f"{SPARE_BYTES / 2**20:.0f} MiB, then go on with: steelyard run --resume {self.folder.name}"
            )

    def note_round(self, **values: Any) -> None:
        """Append what the machine was like during a round."""
        with (self.folder / ROUNDS).open("a+b") as file:
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)  # a kill may have cut the last line short
            file.write(json.dumps(values).encode() + b"\n")

    def noted_rounds(self) -> list[dict[str, Any]]:
        """Return what `note_round` has written so far."""
        path = self.folder / ROUNDS
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]


def _nobody(event: dict[str, Any]) -> None:
    """Processes beside the rounds are not watched."""
