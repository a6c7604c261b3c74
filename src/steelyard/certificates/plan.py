"""The processes that a certificate needs, as pure data: candidate, references, and the keys of everything that decides."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from steelyard.catalog import frameworks
from steelyard.certificates import kernels
from steelyard.certificates.method import (
    PERTURBATIONS,
    RANDOM_DRAW_NOISE,
    RANDOM_DRAWS,
    SMALL_STEPS,
    UNIT_ROUNDOFFS,
    VERSION,
    Scope,
    fills_the_batch,
    is_adaptive,
    likelihood_roundings,
    longest_sum,
    method_for,
    small_batch,
)
from steelyard.certificates.rule_plan import RulePlan
from steelyard.certificates.sources import digest, implementation_hash, implementation_of, specification_hash
from steelyard_worker import accumulation, records, tensors
from steelyard_worker.case import INFERENCE, Optimizer, Settings
from steelyard_worker.job_kinds import CERTIFY
from steelyard_worker.network import Network
from steelyard_worker.protocol import Certify, Job
from steelyard_worker.strategy import SINGLE, divisor_of, without_hosts

# Numbers of the perturbations of further runs; the number seeds the noise.
LONG_SUMS_PERTURBATION = 3
LIKELIHOOD_PERTURBATION = 7
SIGN_CHANGES_PERTURBATION = 8
# Above this, a reference's steps take longer than their compilation.
LARGE_STEP_FLOPS = 2e9
# Folder beside the references for what their processes may share, such as compiled programs.
SHARED = "shared"


@dataclass(frozen=True)
class Installation:
    """A framework in an environment: `packages` maps every installed distribution to its version.

    `contents`: hash of every file that the environment's interpreter can import.
    """

    framework: str
    environment: str
    mode: str
    version: str
    packages: Mapping[str, str]
    contents: str = ""

    @property
    def title(self) -> str:
        """Name and version."""
        return f"{frameworks.framework(self.framework).title} {self.version}"


@dataclass(frozen=True)
class Candidate:
    """The implementation to be certified.

    `job`: its certify job, with the folder set; `inputs`: hash of weights, data and order; `declared`: how the framework's
    native update rule differs from the canonical one (form, correction); `has_float64`: whether it can compute in float64;
    `scope`: how many steps, and how much of each tensor; `exporter`: what exports the network, if another framework does;
    `rule`: the check of its update rule by itself, None if there is none.
    """

    job: Job
    network: Network
    installation: Installation
    inputs: str
    declared: Mapping[str, str]
    has_float64: bool = False
    scope: Scope = field(default_factory=Scope)
    exporter: Installation | None = None
    rule: RulePlan | None = None


@dataclass(frozen=True)
class Task:
    """One process: a job and the environment it runs in. `is_reference`: it is what a candidate is compared with."""

    environment: str
    job: Job
    is_reference: bool = False


@dataclass(frozen=True)
class CertificationPlan:
    """All processes of one certificate, and the keys under which its results are cached.

    `references`: one or two frameworks that compute in float64, three where two disagreed. The first of `reference_tasks` runs
    unperturbed and with noise, the others unperturbed.

    The other tasks only run where rounding alone does not decide (see `escalation`). `float64_task` is the candidate
    in float64, `long_sums_task` the first reference with noise as large as the error of the longest sum. `small_tasks` are the
    first reference and the candidate, in its own precision, on a batch that a few random samples fill again and again; they run
    one pair after the other until one matches, first on the batch itself, then on draws close to it. After each pair may come
    that of the same place in `normalised_tasks`: the first reference with the batch statistics of the candidate.
    `small_likelihood_task` is as `likelihood_task`, on the small batch. A candidate without float64 has three others.
    `likelihood_task` is for networks with a recursion over log-probabilities: the first reference with noise as large as the
    error of that recursion, which depends on the loss and is set later. `sign_changes_task` is for adaptive optimizers: the
    first reference with as much noise as gradients may
    differ by, so that as many of its updates change sign. `draw_tasks` are the first reference and the candidate on other random
    draws of weights and batches; they run one pair after the other until one matches.
    """

    candidate: Candidate
    references: tuple[Installation, ...]
    reference_tasks: tuple[Task, ...]
    candidate_task: Task
    float64_task: Task
    long_sums_task: Task
    small_tasks: tuple[tuple[Task, Task], ...]
    normalised_tasks: tuple[Task, ...]
    small_likelihood_task: Task
    likelihood_task: Task
    sign_changes_task: Task
    draw_tasks: tuple[tuple[Task, Task], ...]
    reference_key: str
    key: str

    @property
    def further_tasks(self) -> tuple[tuple[Task, ...], ...]:
        """All tasks that this candidate may need where rounding alone does not decide.

        Those that are judged together are together; the last is the candidate's, if one of them is.
        """
        normalised = [(task,) for task in self.normalised_tasks]
        small = self._first_small_tasks, *self.small_tasks[1:], *normalised
        if self.candidate.has_float64:
            return (self.long_sums_task, self.float64_task), *small
        recursion = ((self.likelihood_task,),) if self.candidate.network.recursion else ()
        adaptive = ((self.sign_changes_task,),) if is_adaptive(self.candidate.job.case.optimizer) else ()
        return *recursion, *adaptive, *self.draw_tasks, *small

    @property
    def inseparable_tasks(self) -> tuple[Task, ...]:
        """The further tasks that run at the same time: none of them is judged without the others."""
        exact = (self.long_sums_task, self.float64_task) if self.candidate.has_float64 else ()
        return *exact, *self._first_small_tasks

    def normalised_task(self, pair: tuple[Task, Task]) -> Task | None:
        """Return the reference with the batch statistics of the candidate of this pair of the small batch; None without any."""
        found = zip(self.small_tasks, self.normalised_tasks, strict=bool(self.normalised_tasks))
        return next((task for each, task in found if each == pair), None)

    @property
    def _first_small_tasks(self) -> tuple[Task, ...]:
        first = self.small_tasks[0]
        return (self.small_likelihood_task, *first) if self.candidate.network.recursion else first


def plan_certification(candidate: Candidate, references: Sequence[Installation], folder: Path) -> CertificationPlan:
    """Return the processes of a certificate; the `references`, one to three, write below `folder`."""
    limits = method_for(candidate.job.case.settings.precision)
    rule = reference_optimizer(candidate.job.case.optimizer, candidate.declared)
    reference_tasks = tuple(
        _reference_task(candidate, reference, rule, folder, (0,) if rank else PERTURBATIONS, limits.noise)
        for rank, reference in enumerate(references)
    )
    job = replace(candidate.job, kind=CERTIFY, certify=_certify(candidate, (0,), limits.noise))
    task = Task(candidate.installation.environment, job)
    first = reference_tasks[0]
    by_rule = replace(job, case=replace(job.case, optimizer=rule))
    reference_key = _reference_key(candidate, references, reference_tasks, by_rule, limits.noise)
    key = digest(
        reference_key,
        asdict(limits),
        implementation_hash(job),
        records.plain(job.case.settings),
        records.plain(job.case.optimizer),
        candidate.installation.version,
        dict(candidate.installation.packages),
        candidate.installation.contents,
        *_exported_by(candidate),
        without_hosts(job.case.strategy),
        *([candidate.rule.key] if candidate.rule else []),
    )
    small_tasks = _small_tasks(candidate, first, task)
    return CertificationPlan(
        candidate=candidate,
        references=tuple(references),
        reference_tasks=reference_tasks,
        candidate_task=_logged(task),
        float64_task=_float64_task(task),
        long_sums_task=_long_sums_task(candidate, first),
        small_tasks=small_tasks,
        normalised_tasks=_normalised_tasks(candidate, small_tasks),
        small_likelihood_task=_likelihood_task(small_tasks[0][0]),
        likelihood_task=_likelihood_task(first),
        sign_changes_task=_in_subfolder(
            first, "signs", _certify(candidate, (SIGN_CHANGES_PERTURBATION,), limits.limit * limits.unit_roundoff)
        ),
        draw_tasks=tuple(
            (_draw_task(candidate, first, each), _draw_task(candidate, task, each)) for each in RANDOM_DRAWS
        ),
        reference_key=reference_key,
        key=key,
    )


def _logged(task: Task) -> Task:
    """Return the task of a process in which libraries log what they compute, at the batch that is timed."""
    return replace(task, job=replace(task.job, variables=task.job.variables | kernels.VARIABLES))


def _exported_by(candidate: Candidate) -> list[object]:
    """Return what decides how the network was exported; nothing where its own framework has it."""
    exporter, job = candidate.exporter, candidate.job
    if exporter is None:
        return []
    implementation = implementation_of(exporter.framework, Path(job.workload_folder), job.case.workload)
    return [implementation, exporter.version, dict(exporter.packages), exporter.contents]


def with_arbiter(plan: CertificationPlan, third: Installation) -> CertificationPlan:
    """Return the plan of the same certificate with a third reference, which decides between two that disagree.

    It comes first, because whichever of the two is right agrees with it. What the two have saved is used again.
    """
    folder = Path(plan.reference_tasks[0].job.folder).parent
    return plan_certification(plan.candidate, (third, *plan.references), folder)


def with_cores(task: Task, cores: int) -> Job:
    """Return the job of a task, on as many cores if it is a reference; a candidate keeps those of its case.

    The number of threads changes a reference by rounding in float64 alone.
    """
    case = task.job.case
    if not task.is_reference:
        return task.job
    settings = replace(case.settings, threads=max(cores, case.settings.threads))
    return replace(task.job, case=replace(case, settings=settings))


def reference_optimizer(optimizer: Optimizer, declared: Mapping[str, str]) -> Optimizer:
    """Return the reference implementation of the update rule, in the form that a native rule declares."""
    form = declared if optimizer.implementation == "native" else {}
    return replace(
        optimizer,
        implementation="reference",
        form=form.get("form", "canonical"),
        correction=form.get("correction", "float64"),
    )


def with_likelihood(plan: CertificationPlan, task: Task, loss: float) -> Task:
    """Return a likelihood task with noise as large as the error of a recursion over log-probabilities that ends in `loss`."""
    candidate = plan.candidate
    noise = likelihood_roundings(candidate.network, loss) * UNIT_ROUNDOFFS[candidate.job.case.settings.precision]
    return replace(task, job=replace(task.job, certify=replace(task.job.certify, noise=noise)))


def _reference_key(
    candidate: Candidate, references: Sequence[Installation], tasks: Sequence[Task], job: Job, noise: float
) -> str:
    """Hash everything that decides the results of the references; `job` is the candidate's, with the reference's update rule."""
    computing = [
        (
            reference.framework,
            reference.mode,
            task.job.case.settings.knobs,
            dict(reference.packages),
            reference.contents,
            implementation_hash(task.job),
            _reference_variables(candidate, reference.framework),
        )
        for reference, task in zip(references, tasks, strict=True)
    ]
    specification = specification_hash(job)
    folders = (job.data.adversarial, job.rates)
    inputs = candidate.inputs, *(tensors.identity(Path(folder)) if folder else "" for folder in folders)
    return digest(VERSION, noise, asdict(candidate.scope), PERTURBATIONS, inputs, specification, computing)


def _reference_task(
    candidate: Candidate,
    reference: Installation,
    rule: Optimizer,
    folder: Path,
    perturbations: tuple[int, ...],
    noise: float,
) -> Task:
    known = frameworks.framework(reference.framework)
    # References run side by side, one thread each. At full size they run one after the other.
    threads = candidate.job.case.settings.threads if candidate.scope.sample else 1
    settings = known.complete(
        Settings(reference.mode, threads=threads, precision="float64", knobs=known.reference_knobs)
    )
    shared = str(folder.parent / SHARED)
    own = _reference_variables(candidate, reference.framework)
    variables = candidate.job.variables | {name: value.replace("{folder}", shared) for name, value in own.items()}
    case = replace(
        candidate.job.case,
        framework=reference.framework,
        version="",
        settings=settings,
        optimizer=rule,
        strategy=SINGLE,
    )
    job = replace(
        candidate.job,
        kind=CERTIFY,
        case=case,
        spread=None,
        folder=str(folder / reference.framework),
        variables=variables,
        certify=_certify(candidate, perturbations, noise),
    )
    return Task(reference.environment, job, is_reference=True)


def _reference_variables(candidate: Candidate, framework: str) -> dict[str, str]:
    """Return the variables of a reference's process: those for a large step are about computing, the others about compiling."""
    known = frameworks.framework(framework)
    large = candidate.network.training_flops * candidate.job.case.batch > LARGE_STEP_FLOPS
    return known.reference_variables | (known.large_reference_variables if large else {})


def _float64_task(task: Task) -> Task:
    job = task.job
    case = replace(job.case, settings=replace(job.case.settings, precision="float64"))
    return replace(task, job=replace(job, case=case, folder=str(Path(job.folder) / "float64")))


def _long_sums_task(candidate: Candidate, task: Task) -> Task:
    roundings = longest_sum_of(candidate)
    noise = roundings * UNIT_ROUNDOFFS[candidate.job.case.settings.precision]
    return _in_subfolder(task, "sums", _certify(candidate, (LONG_SUMS_PERTURBATION,), noise))


def longest_sum_of(candidate: Candidate) -> int:
    """Return the number of terms in the longest sum of a candidate: an inference adds up nothing over the batch."""
    case = candidate.job.case
    return longest_sum(candidate.network, 1 if case.task == INFERENCE else case.batch)


def _likelihood_task(task: Task) -> Task:
    certify = replace(task.job.certify, perturbations=(LIKELIHOOD_PERTURBATION,), noise=0.0)
    return _in_subfolder(task, "likelihood", certify)


def _small_tasks(candidate: Candidate, first: Task, task: Task) -> tuple[tuple[Task, Task], ...]:
    """Return the first reference and the candidate on a few samples of the synthetic batch, and on draws close to them."""
    few = replace(candidate, scope=replace(candidate.scope, steps=SMALL_STEPS))
    job = candidate.job
    divisor = divisor_of(job.case.strategy, job.case.settings.knobs, job.spread.kind if job.spread else SINGLE)
    divisor = math.lcm(divisor, accumulation.parts_of(job.case.settings))
    samples = -(-small_batch(candidate.network, job.case.batch) // divisor) * divisor
    filled = fills_the_batch(candidate.network)
    distinct = samples if filled else 0
    reference, own = (
        _in_subfolder(
            _without_data(each, 0 if filled else samples),
            f"small{samples}",
            replace(each.job.certify, distinct=distinct),
        )
        for each in (first, task)
    )
    noise = own.job.certify.noise
    measured = replace(reference, job=replace(reference.job, certify=_certify(few, PERTURBATIONS, noise, distinct)))
    plain = replace(own, job=replace(own.job, certify=_certify(few, (0,), noise, distinct)))
    draws = ((_draw_task(few, reference, each), _draw_task(few, own, each)) for each in RANDOM_DRAWS)
    return (measured, plain), *draws


def _without_data(task: Task, samples: int) -> Task:
    """Return the task on the synthetic batch; `samples`: of a batch of that size, 0: of its own."""
    job = task.job
    sizes = job.case.sizes | ({"batch": samples} if samples else {})
    data = replace(job.data, prepared="", order="")
    return replace(task, job=replace(job, case=replace(job.case, sizes=sizes), data=data))


def _normalised_tasks(candidate: Candidate, pairs: tuple[tuple[Task, Task], ...]) -> tuple[Task, ...]:
    """Return the reference of each pair with the batch statistics of its candidate; none where no statistics are trained."""
    norms = any(each.kind == "running_mean" for each in candidate.network.parameters)
    if candidate.job.case.task == INFERENCE or not norms or not fills_the_batch(candidate.network):
        return ()
    found = []
    for reference, own in pairs:
        (number,) = own.job.certify.perturbations
        saved = str(Path(own.job.folder) / f"perturbation{number}")
        certify = replace(reference.job.certify, perturbations=(number,), normalised=saved)
        # Beside other runs of the reference, in a folder of this candidate's own.
        task = _in_subfolder(reference, f"normalised-{digest(saved)[:8]}", certify)
        found.append(replace(task, is_reference=False))
    return tuple(found)


def _draw_task(candidate: Candidate, task: Task, draw: int) -> Task:
    certify = _certify(candidate, (draw,), RANDOM_DRAW_NOISE, task.job.certify.distinct)
    return _in_subfolder(task, f"draw{draw}", certify)


def _in_subfolder(task: Task, name: str, certify: Certify) -> Task:
    return replace(task, job=replace(task.job, folder=str(Path(task.job.folder) / name), certify=certify))


def _certify(candidate: Candidate, perturbations: tuple[int, ...], noise: float, distinct: int = 0) -> Certify:
    return Certify(candidate.scope.steps, candidate.scope.sample, perturbations, noise, distinct=distinct)
