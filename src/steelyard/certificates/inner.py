"""The first layer that differs: inner tensors of a rejected candidate, compared with the reference's in network order.

They are saved by processes that run only after a rejection (`Certify.inner`).
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from steelyard.certificates import dumps, sentences
from steelyard.certificates.method import PERTURBATIONS, Method
from steelyard.certificates.plan import CertificationPlan, Task
from steelyard.certificates.tensors import ADVERSARIAL, Array, Tensors
from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard_worker.distances import l2_distance, l2_norm
from steelyard_worker.protocol import Certify

# Kinds of tensors (`tensors.Place`) whose deviation may come from the forward pass.
IN_THE_FORWARD_PASS = ("first statistics", "output", "inference output", "adversarial")
PREFIX = "inner/"
# Folder of these processes, below that of the task whose inner tensors they save.
FOLDER = "inner"


def tasks(plan: CertificationPlan, pair: tuple[Task, Task]) -> tuple[Task, Task]:
    """Return the processes that save the inner tensors of a reference, with noise, and of what differs from it."""
    reference, other = pair
    sample, noise = plan.candidate.scope.sample, plan.reference_tasks[0].job.certify.noise
    return (
        _saving(
            reference, Certify(1, sample, PERTURBATIONS, noise, inner=True, distinct=reference.job.certify.distinct)
        ),
        _saving(other, Certify(1, sample, (0,), noise, inner=True, distinct=other.job.certify.distinct)),
    )


def of_references(plan: CertificationPlan) -> tuple[Task, Task]:
    """Return the two references that are compared layer by layer where they disagree; a third one comes first in the plan."""
    one, other = plan.reference_tasks[-2:]
    return one, other


def next_tasks(plan: CertificationPlan, pair: tuple[Task, Task]) -> tuple[Task, ...]:
    """Return those of `tasks` that must still run: none where the network lists no probes, or after they ran.

    A network that was exported has none: its runtime does not know the names.
    """
    reference, other = tasks(plan, pair)
    if plan.candidate.exporter or not plan.candidate.network.probes or Path(other.job.folder).is_dir():
        return ()
    return (other,) if _is_done(reference) else (reference, other)


def sentence(plan: CertificationPlan, pair: tuple[Task, Task], limits: Method) -> str:
    """Return which inner tensor is the first that differs, or that none does; empty where nothing was saved."""
    reference, other = tasks(plan, pair)
    if not Path(other.job.folder).is_dir():
        return ""
    try:
        exact, *noisy = (dumps.read(reference, number) for number in PERTURBATIONS)
        own = dumps.read(other, 0)
    except UserError:
        failed = dumps.failure(other) or dumps.failure(reference)
        return sentences.no_inner_tensors(failed[1] if failed else "")
    return compare(plan.candidate.network.probes, exact, noisy, own, reference.job.certify.noise, limits)


def compare(
    probes: tuple[str, ...], exact: Tensors, noisy: list[Tensors], own: Tensors, noise: float, limits: Method
) -> str:
    """Return the result of comparing inner tensors: of the usual batch, then of the adversarial one.

    `exact`: the reference's tensors, which have sorted values, as the candidate's `own`. `noisy`: how far those of its runs with
    relative noise of standard deviation `noise` are from them.
    """
    known = [name for name in probes if PREFIX + name in exact and PREFIX + name in own]
    missing = [name for name in probes if name not in known]
    gap = sentences.missing_inner_tensors(missing) if missing else ""
    usual = {PREFIX + name: f'"{name}"' for name in known}
    labels = usual | {ADVERSARIAL + key: f"{name} on the adversarial batch" for key, name in usual.items()}
    before = ""
    for key in (key for key in labels if key in exact):
        error, allowed = _error(key, exact[key], noisy, own, noise, limits)
        if not error <= allowed:  # also for a NaN
            return sentences.first_inner_tensor(labels[key], error, before) + gap
        before = labels[key]
    return sentences.same_inner_tensors(known) + gap


def _error(
    key: str, exact: Array, noisy: list[Tensors], own: Tensors, noise: float, limits: Method
) -> tuple[float, float]:
    """Return the relative error of one tensor and the allowed one; infinite for another number of values."""
    norm = l2_norm(exact) or 1.0
    if key not in own or own[key].shape != exact.shape:
        return np.inf, 0.0
    amplification = max(1.0, *(float(run[key]) / norm / noise for run in noisy))
    return l2_distance(own[key], exact) / norm, max(
        limits.limit * limits.unit_roundoff * amplification, limits.allowance
    )


def _saving(task: Task, certify: Certify) -> Task:
    return replace(task, job=replace(task.job, folder=str(Path(task.job.folder) / FOLDER), certify=certify))


def _is_done(task: Task) -> bool:
    folder = Path(task.job.folder)
    return all(atomic.is_whole(folder / f"perturbation{number}") for number in task.job.certify.perturbations)
