"""The results of a run for histories: one point per case and input."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from math import exp
from pathlib import Path

from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard.plan.run_plan import Group, Variant
from steelyard.results import record, round_results, run_folders, trials
from steelyard.results.facts import EnvironmentFacts, HostFacts
from steelyard.results.quantities import STEP_TIME
from steelyard.results.record import RunRecord
from steelyard.results.trials import Trial
from steelyard.statistics.intervals import logs, mean_and_error

LEAST_PROCESSES = 2


@dataclass(frozen=True)
class RunFacts:
    """The facts about a run that a history needs. `run`: its id in the store, or its name in a folder. `created`: ISO 8601.

    `code`: hash of the measuring code. `environments`: as in run.json, with the versions of all packages.
    """

    run: str
    name: str
    study: str
    created: str
    machine: str
    host: HostFacts
    method: int
    code: str
    environments: dict[str, EnvironmentFacts]

    @property
    def when(self) -> datetime:
        """The start of the run."""
        return record.moment(self.created)

    def packages(self, environment: str) -> dict[str, str]:
        """Return the versions of everything in an environment, by name."""
        found = self.environments.get(environment)
        return {"Python": found["python_version"], **found["packages"]} if found else {"Python": ""}


@dataclass(frozen=True)
class Point:
    """The time per step of one case on one input in one run: `processes_ns` has a value of each process, in ns.

    Only points with the same `line` are compared: the same case, schedule, method and machine.
    """

    run: str
    line: str
    group: str
    variant: str
    title: str
    input: str
    framework: str
    environment: str
    version: str
    processes_ns: tuple[float, ...]

    @property
    def step_ns(self) -> float:
        """The geometric mean over processes."""
        return exp(mean_and_error(logs(self.processes_ns))[0])


def facts(name: str, known: RunRecord) -> RunFacts:
    """Return the facts about a run with this record."""
    return RunFacts(
        name,
        name,
        known.study,
        known.created,
        known.machine,
        known.host,
        known.method,
        known.worker_hash,
        known.environments,
    )


def points(folder: Path, known: RunRecord, found: Iterable[Trial]) -> list[Point]:
    """Return the points of a run: certified cases with at least two processes, unless another run used the machine.

    Rounds that were used again belong to an earlier run and are left out. UserError: certificates.json is damaged.
    """
    if known.shared_machine or not known.machine:
        return []
    certificates = record.read_certificates(folder)
    results = round_results.collect(found, certificates)
    passed = (
        {key for key, each in certificates.items() if each["passed"]} - known.above_peak.keys() - results.failed.keys()
    )
    return [
        point
        for group in known.available.groups
        if group.name not in known.reused
        for variant in group.variants
        if variant.case.id in passed
        for point in _of_variant(folder.name, known, group, variant, results.finished.get(variant.case.id, {}))
    ]


def _of_variant(
    run: str, known: RunRecord, group: Group, variant: Variant, found: Mapping[int, Trial]
) -> Iterator[Point]:
    case = variant.case
    environment = known.environments.get(case.environment)
    same = (case.id, asdict(group.protocol.schedule), group.train_steps, known.machine, known.method)
    for source in group.protocol.schedule.inputs:
        values = tuple(STEP_TIME.of_rounds(dict(sorted(found.items())), source).values())
        if len(values) >= LEAST_PROCESSES:
            yield Point(
                run,
                atomic.key(*same, source),
                group.name,
                variant.name,
                variant.title,
                source,
                case.framework,
                case.environment,
                environment["version"] if environment else "",
                values,
            )


def read(folder: Path) -> tuple[RunFacts, list[Point]]:
    """Return the facts and the points of a run from its folder. UserError: its record is damaged."""
    known = record.read(folder)
    return facts(folder.name, known), points(folder, known, trials.read_all(folder)[0])


def read_all(runs: Path, left_out: list[str]) -> tuple[list[RunFacts], list[Point]]:
    """Return the facts and points of all runs in a folder; a sentence for each that cannot be read is added to `left_out`."""
    known: list[RunFacts] = []
    found: list[Point] = []
    for name in run_folders.names(runs):
        try:
            run, of_run = read(runs / name)
        except UserError as error:
            left_out.append(str(error))
        else:
            known.append(run)
            found += of_run
    return known, found
