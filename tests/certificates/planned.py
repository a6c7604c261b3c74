"""A candidate, the plan of its certificate, and the results that its processes would have written."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import subjects
import synthetic

from steelyard.certificates.conclusion import next_tasks
from steelyard.certificates.plan import CertificationPlan, plan_certification
from steelyard_worker import protocol, tensors

if TYPE_CHECKING:
    from steelyard.certificates.plan import Candidate, Task

REFERENCES = [subjects.installation("pytorch"), subjects.installation("jax")]


def fill(task: Task, runs: list[synthetic.Dump]) -> None:
    """Write what the worker would have written for the perturbations of a task."""
    for number, run in zip(task.job.certify.perturbations, synthetic.as_saved(runs), strict=True):
        tensors.write(Path(task.job.folder) / f"perturbation{number}", run)


def filled(plan: CertificationPlan, errors: synthetic.Dump) -> list[synthetic.Dump]:
    """Fill the references with synthetic dumps that agree, and the candidate with the given changes."""
    runs = synthetic.dumps(network=plan.candidate.network)
    first, second = plan.reference_tasks
    fill(first, runs)
    fill(second, runs[:1])
    fill(plan.candidate_task, [runs[0] | errors])
    return runs


def changed(runs: list[synthetic.Dump], key: str, relative: float) -> synthetic.Dump:
    return {key: runs[0][key] + synthetic.shift(runs[0][key], relative, np.random.default_rng(0))}


def undecided(plan: CertificationPlan) -> tuple[Task, ...]:
    """Return the next tasks that decide the certificate; processes that save inner tensors only name the layer."""
    return tuple(task for task in next_tasks(plan) if not task.job.certify.inner)


def inaccurate(plan: CertificationPlan, definition: float, sums: float, small: float = 0.0) -> CertificationPlan:
    """Fill all folders for a candidate with an error of 1e-4 in float32, `definition` in float64, and `small` on the small batch.

    Noise of long sums causes `sums`.
    """
    runs = synthetic.dumps(network=plan.candidate.network)
    filled(plan, changed(runs, "output/logits", 1e-4))
    fill(plan.float64_task, [runs[0] | changed(runs, "output/logits", definition)])
    fill(plan.long_sums_task, [runs[0] | {key: runs[0][key] * (1 + sums) for key in runs[0]}])
    fill_small(plan, 0, small)
    return replace(plan, candidate=replace(plan.candidate, has_float64=True))


def fill_small(plan: CertificationPlan, number: int, error: float) -> None:
    """Fill a pair of the small batch, whose tensors are other ones, with this error of the candidate."""
    runs = synthetic.dumps(seed=1, network=plan.candidate.network)
    reference, own = plan.small_tasks[number]
    fill(reference, runs[: len(reference.job.certify.perturbations)])
    fill(own, [runs[0] | changed(runs, "output/logits", error)])


def noisy(candidate: Candidate, amplified: float, errors: synthetic.Dump) -> CertificationPlan:
    """Return a plan whose references agree, with amplified noise, and whose candidate has the given changes."""
    plan = plan_certification(candidate, REFERENCES, Path(candidate.job.folder).parent / "references")
    runs = synthetic.dumps(network=candidate.network, amplified=amplified)
    for task, dumps in zip(plan.reference_tasks, (runs, runs[:1]), strict=True):
        fill(task, dumps)
    fill(plan.candidate_task, [runs[0] | errors])
    return plan


def write_error(folder: Path, kind: str, message: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    event: dict[str, Any] = {"v": protocol.VERSION, "event": "error", "t_ns": 0, "kind": kind, "message": message}
    (folder / protocol.EVENTS).write_text(json.dumps(event) + "\n", encoding="utf-8")
