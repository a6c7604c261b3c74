"""A session whose processes write synthetic tensors that agree, except where a test adds an error."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import synthetic
from measure.scripted_session import Screen

from steelyard.catalog import workloads
from steelyard.environments import Environment
from steelyard.environments.pending import already
from steelyard.inputs.case_inputs import CaseInputs, recipe
from steelyard.measure.session import Session
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard.results.trials import Trial
from steelyard_worker import protocol, tensors
from steelyard_worker.protocol import Data

if TYPE_CHECKING:
    from steelyard.measure.launch import Watch
    from steelyard_worker.protocol import Job

WORKLOADS = Path(__file__).parents[1] / "workloads"

# Job -> tensors that replace those of the reference; an error as (kind, message): the process saves none.
Errors = "Callable[[Job], synthetic.Dump | tuple[str, str]]"


@dataclass
class Shown(Screen):
    """Stores the progress and the stages too."""

    progressed: list[tuple[str, float, float]] = field(default_factory=list)
    stages: list[str] = field(default_factory=list)

    def stage(self, title: str) -> None:
        self.stages.append(title)

    def progress(self, label: str, done: float, total: float, note: str = "") -> None:
        self.progressed.append((label, done, total))


@dataclass(frozen=True)
class Scripted(Session):
    """A session whose processes write synthetic tensors; `started` has their jobs, `at_once` the most at any time."""

    errors: Any = field(kw_only=True)
    started: list[Job] = field(default_factory=list)
    running: list[Job] = field(default_factory=list)
    at_once: list[int] = field(default_factory=list)
    slow_s: list[float] = field(default_factory=list)

    def run(self, job: Job, turn: Watch | None = None) -> Trial:
        del turn
        self.started.append(job)
        self.running.append(job)
        self.at_once.append(len(self.running))
        time.sleep(sum(self.slow_s))
        found = self.errors(job)
        if isinstance(found, tuple):
            write_error(Path(job.folder), *found)
        else:
            write_dumps(job, found)
        self.running.remove(job)
        return Trial(Path(job.folder), job, error=found if isinstance(found, tuple) else None)

    @property
    def shown(self) -> Shown:
        return cast("Shown", self.screen)

    def folders(self) -> list[str]:
        """Return the folders of the processes, relative to the run's, sorted."""
        return sorted(str(Path(job.folder).relative_to(self.folder / "certificates")) for job in self.started)


def write_dumps(job: Job, changed: synthetic.Dump) -> None:
    network = workloads.described(Path(job.workload_folder), job.case.sizes)
    runs = synthetic.dumps(network=network)
    wanted = [runs[number] if number in (1, 2) else runs[0] | changed for number in job.certify.perturbations]
    for number, run in zip(job.certify.perturbations, synthetic.as_saved(wanted), strict=True):
        tensors.write(Path(job.folder) / f"perturbation{number}", run)
    (Path(job.folder) / protocol.EVENTS).write_text("")


def write_error(folder: Path, kind: str, message: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    event = {"v": protocol.VERSION, "event": "error", "t_ns": 0, "kind": kind, "message": message}
    (folder / protocol.EVENTS).write_text(json.dumps(event) + "\n", encoding="utf-8")


def environment(name: str) -> Environment:
    return Environment(name, name, "1.0", Path(sys.executable), "3.11.7", {"numpy": "1"})


def session(
    folder: Path, errors: Any = lambda _: {}, chosen: tuple[str, ...] = ("fake", "dummy"), **options: Any
) -> Scripted:
    """Return a session of the smallest workload with the environments of the chosen frameworks."""
    wanted = Options(workloads=("line",), frameworks=chosen, workload_folders=(str(WORKLOADS),))
    plan = resolve.plan(replace(wanted, **options))
    folder.mkdir(parents=True, exist_ok=True)
    inputs = CaseInputs(Path("/weights"), Data("/synthetic"), "", {}, "identity")
    shared = {recipe(variant.case): inputs for variant in plan.variants}
    made = already({name: environment(name) for name in chosen})
    return Scripted(plan, folder, made, shared, cast("Any", None), cast("Any", Shown()), errors=errors)


def ids(run: Scripted) -> dict[str, str]:
    """Return {framework: case id}."""
    return {variant.case.framework: variant.case.id for variant in run.plan.variants}


def wrong(framework: str, **tensors_of: float) -> Any:
    """Return the errors of one framework: tensors that are off by a factor."""

    def errors(job: Job) -> synthetic.Dump:
        if job.case.framework != framework or job.case.settings.precision == "float64":
            return {}
        network = workloads.described(Path(job.workload_folder), job.case.sizes)
        reference = synthetic.dumps(network=network)[0]
        return {key: np.asarray(reference[key] * factor) for key, factor in tensors_of.items()}

    return errors
