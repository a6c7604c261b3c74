"""Which processes a certificate needs, as pure data: the candidate, its references, and what decides their keys."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.catalog import frameworks
from steelyard.certificates.method import (
    DRAW_DISTANCE,
    DRAWS,
    UNIT_ROUNDOFFS,
    VARIANTS,
    VERSION,
    Scope,
    likelihood_roundings,
    longest_sum,
    method,
)
from steelyard.certificates.sources import digest, implementation_hash, specification_hash
from steelyard_worker.case import Settings
from steelyard_worker.protocol import Certify, Job

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard_worker.case import Optimizer
    from steelyard_worker.network import Network

SUMS_VARIANT = 3
LIKELIHOOD_VARIANT = 7

FORMS = {
    "canonical": "",
    "epsilon-hat": "epsilon is added to the root of the uncorrected second moment",
}


@dataclass(frozen=True)
class Peer:
    """A framework in an environment: `packages` maps every installed distribution to its version."""

    framework: str
    environment: str
    mode: str
    version: str
    packages: Mapping[str, str]

    @property
    def title(self) -> str:
        """Name and version."""
        return f"{frameworks.framework(self.framework).title} {self.version}"


@dataclass(frozen=True)
class Subject:
    """What is to be certified.

    `job`: a certify job of the candidate, its folder set; `inputs`: hash of weights, data and order; `declared`: what
    the framework's native update rule does differently (form, correction); `exact`: whether it can compute in float64;
    `scope`: how many steps, and how much of each tensor.
    """

    job: Job
    network: Network
    peer: Peer
    inputs: str
    declared: Mapping[str, str]
    exact: bool = False
    scope: Scope = field(default_factory=Scope)


@dataclass(frozen=True)
class Task:
    """One process: a job and the environment it runs in."""

    environment: str
    job: Job


@dataclass(frozen=True)
class Proceedings:
    """All that one certificate needs. `references`: the first in three variants, the second unperturbed.

    The others are wanted only where rounding alone cannot decide (see `further_tasks`): `exact`, the candidate in float64, and
    `sums`, the first reference with noise as large as the longest sum may lose. A candidate without float64 has `likelihood`,
    where there is a recursion over log-probabilities: the first reference with noise as large as that may lose, which is known
    with its loss. And it has `draws`, the first reference and the candidate on other weights and batches, one after the other
    until one decides.
    """

    subject: Subject
    peers: tuple[Peer, ...]
    references: tuple[Task, ...]
    candidate: Task
    exact: Task
    sums: Task
    likelihood: Task
    draws: tuple[tuple[Task, Task], ...]
    reference_key: str
    key: str

    @property
    def further(self) -> tuple[Task, ...]:
        """All that may be wanted besides for this candidate."""
        if self.subject.exact:
            return self.exact, self.sums
        drawn = tuple(task for pair in self.draws for task in pair)
        return (self.likelihood, *drawn) if self.subject.network.recursion else drawn


def reference_optimizer(optimizer: Optimizer, declared: Mapping[str, str]) -> Optimizer:
    """Return the update rule written out by hand, in the form that a native rule declares."""
    form = declared if optimizer.implementation == "native" else {}
    return replace(
        optimizer,
        implementation="reference",
        form=form.get("form", "canonical"),
        correction=form.get("correction", "float64"),
    )


def jobs_for(subject: Subject, peers: Sequence[Peer], folder: Path) -> Proceedings:
    """Return the processes of a certificate; `folder` takes the references, `peers` are one or two frameworks."""
    wanted = method(subject.job.case.settings.precision)
    rule = reference_optimizer(subject.job.case.optimizer, subject.declared)
    tasks = tuple(
        Task(
            peer.environment, _reference_job(subject, peer, rule, folder, VARIANTS if not rank else (0,), wanted.noise)
        )
        for rank, peer in enumerate(peers)
    )
    candidate = replace(subject.job, kind="certify", certify=_certify(subject, (0,), wanted.noise))
    specification = specification_hash(replace(candidate, case=replace(candidate.case, optimizer=rule)))
    computing = [
        (peer.framework, peer.mode, dict(peer.packages), implementation_hash(task.job))
        for peer, task in zip(peers, tasks, strict=True)
    ]
    reference_key = digest(
        VERSION, wanted.noise, asdict(subject.scope), VARIANTS, subject.inputs, specification, computing
    )
    key = digest(
        reference_key, asdict(wanted), implementation_hash(candidate), asdict(candidate.case.settings),
        asdict(candidate.case.optimizer), subject.peer.version, dict(subject.peer.packages),
    )  # fmt: skip
    task = Task(subject.peer.environment, candidate)
    return Proceedings(
        subject, tuple(peers), tasks, task, _exact_task(task), _sums_task(subject, tasks[0]), _likelihood_task(subject, tasks[0]),
        tuple((_drawn_task(subject, tasks[0], each), _drawn_task(subject, task, each)) for each in DRAWS), reference_key, key,
    )  # fmt: skip


def _exact_task(candidate: Task) -> Task:
    job = candidate.job
    case = replace(job.case, settings=replace(job.case.settings, precision="float64"))
    return replace(candidate, job=replace(job, case=case, folder=str(Path(job.folder) / "float64")))


def _sums_task(subject: Subject, reference: Task) -> Task:
    job = reference.job
    noise = longest_sum(subject.network, job.case.batch) * UNIT_ROUNDOFFS[subject.job.case.settings.precision]
    wanted = _certify(subject, (SUMS_VARIANT,), noise)
    return replace(reference, job=replace(job, folder=str(Path(job.folder) / "sums"), certify=wanted))


def _likelihood_task(subject: Subject, reference: Task) -> Task:
    job = reference.job
    return replace(
        reference, job=replace(job, folder=str(Path(job.folder) / "likelihood"), certify=_certify(subject, (), 0.0))
    )


def likelihood_task(proceedings: Proceedings, loss: float) -> Task:
    """Return the reference's run with as much noise as a recursion over log-probabilities loses of this loss."""
    subject, task = proceedings.subject, proceedings.likelihood
    noise = likelihood_roundings(subject.network, loss) * UNIT_ROUNDOFFS[subject.job.case.settings.precision]
    return replace(task, job=replace(task.job, certify=_certify(subject, (LIKELIHOOD_VARIANT,), noise)))


def _drawn_task(subject: Subject, task: Task, draw: int) -> Task:
    job = task.job
    wanted = _certify(subject, (draw,), DRAW_DISTANCE)
    return replace(task, job=replace(job, folder=str(Path(job.folder) / f"draw{draw}"), certify=wanted))


def _reference_job(
    subject: Subject, peer: Peer, rule: Optimizer, folder: Path, variants: tuple[int, ...], noise: float
) -> Job:
    settings = Settings(peer.mode, threads=subject.job.case.settings.threads, precision="float64")
    case = replace(subject.job.case, framework=peer.framework, version="", settings=settings, optimizer=rule)
    return replace(
        subject.job, kind="certify", case=case, folder=str(folder / peer.framework),
        certify=_certify(subject, variants, noise),
    )  # fmt: skip


def _certify(subject: Subject, variants: tuple[int, ...], noise: float) -> Certify:
    return Certify(subject.scope.steps, subject.scope.sample, variants, noise)


def form_sentence(rule: Optimizer) -> str:
    """Say where a reference's update rule differs from the canonical formula; nothing where it does not."""
    differences = [FORMS[rule.form]] if FORMS[rule.form] else []
    if rule.correction != "float64":
        differences.append(f"bias correction is computed in {rule.correction}")
    return "As the framework's own rule does: " + ", ".join(differences) + "." if differences else ""
