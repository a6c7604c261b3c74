"""Networks that a framework exports for a runtime: made once per set of weights, cached, and verified before every use."""

import hashlib
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from steelyard.catalog import frameworks, workloads
from steelyard.catalog.frameworks import Exporter
from steelyard.environments import Environment, EnvironmentName
from steelyard.errors import notice
from steelyard.files import atomic
from steelyard.files.paths import cache_folder
from steelyard.inputs.data.synthetic import synthesise
from steelyard.measure import launch
from steelyard.results import imported
from steelyard.results.trials import Trial
from steelyard_worker import job_kinds, records, tensors
from steelyard_worker.case import Case, Settings
from steelyard_worker.job_kinds import CERTIFY, EXPORT
from steelyard_worker.protocol import Certify, Job

FOLDER = "networks"
# Inputs on which the runtime is compared with the exporting framework: at least this many, in whole batches.
COMPARED_SAMPLES = 100
COMPARED_SEED = 100

Run = Callable[[Job, Path], Trial]


class ExportError(Exception):
    """A network could not be exported; `kind` is that of the exporting process's error."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def with_networks(job: Job, environments: Mapping[str, Environment], folder: Path, run: Run) -> Job:
    """Return the job with the networks that it runs; those of a framework that has its own are returned as they are.

    `folder`: of the record of the exporting process. `run` runs a job in an interpreter. Raises ExportError.
    """
    exporter = frameworks.exporter(job.case)
    if not exporter:
        return job
    # Measuring and certifying the same weights share one export.
    certify = replace(job.certify if job.kind == CERTIFY else Certify(), steps=0, sample=0)
    compared = _fixed_inputs(job)
    exporting = replace(
        job,
        kind=EXPORT,
        case=_of_exporter(job.case, exporter),
        compared=str(compared),
        certify=certify,
        schedule=type(job.schedule)(),
        round=0,
        attempt=0,
        rates="",
        folder=str(folder),
    )
    environment = environments[exporter.environment]
    place = cache_folder() / FOLDER / _key(exporting, environment)

    def fill(partial: Path) -> None:
        trial = run(exporting, environment.python)
        if trial.error:
            raise ExportError(*trial.error)
        shutil.copytree(trial.folder, partial, dirs_exist_ok=True)

    if atomic.is_intact(place) and imported.changed(imported.of_process(place)):
        shutil.rmtree(place)  # of other files that the implementation imports
    if atomic.is_intact(place) and not _is_unaltered(place):
        notice(f"{place} was changed or damaged after it was written, so it is not used.")
        shutil.rmtree(place)
    return replace(job, networks=str(atomic.place(place, fill)), compared=str(compared) if _compares(job) else "")


def _compares(job: Job) -> bool:
    """Whether a process compares its outputs with those of the exporting framework, after everything that is timed."""
    return job_kinds.of(job.kind).in_rounds and job.round == 1


def _fixed_inputs(job: Job) -> Path:
    case = job.case
    network = workloads.described(Path(job.workload_folder), case.sizes)
    samples = -(-COMPARED_SAMPLES // case.batch) * case.batch
    return synthesise(network, samples, COMPARED_SEED, case.specification)


def _of_exporter(case: Case, exporter: Exporter) -> Case:
    """Return the case of an exporting process: with its framework's defaults, in the precision of the runtime."""
    framework, version = EnvironmentName.parse(exporter.environment)
    known, settings = frameworks.framework(framework), case.settings
    own = Settings(known.default_mode, threads=settings.threads, precision=settings.precision, knobs=exporter.knobs)
    return replace(case, framework=framework, version=version, settings=known.complete(own), inputs="")


def _key(job: Job, environment: Environment) -> str:
    """Return a hash of everything that decides the files."""
    case, certify = job.case, job.certify
    folders = (job.weights, job.data.synthetic, job.data.adversarial, job.compared)
    return atomic.key(
        "networks",
        launch.worker_hash(adapter_folder=frameworks.framework(case.framework).user_folder),
        frameworks.files_hash(Path(job.workload_folder)),
        case.workload,
        case.specification,
        sorted(case.sizes.items()),
        case.framework,
        records.plain(replace(case.settings, threads=0)),
        environment.version,
        environment.packages,
        environment.contents,
        [tensors.identity(Path(each)) if each else "" for each in folders],
        certify.perturbations,
        certify.noise if any(certify.perturbations) else 0,
    )


def _is_unaltered(folder: Path) -> bool:
    """Report whether every file has the content that was written."""
    files = tensors.read_meta(folder)["networks"].values()
    return all(_sha256(folder / each["name"]) == each["sha256"] for each in files)


def _sha256(path: Path) -> str:
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
