"""Cell + inputs + plan -> the Job of one process. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from steelyard_worker.protocol import Job, Plan

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.inputs.group_inputs import GroupInputs
    from steelyard.plan.cells import Cell
    from steelyard.plan.resolve import RunPlan
    from steelyard_worker.protocol import Data


def trial_name(number: int, attempt: int, cell: Cell) -> str:
    """Return the name that ties a trial to its round, the attempt at that round, and its cell."""
    return f"{number}.{attempt}/{cell.key}"


def trial_folder(run: Path, number: int, attempt: int, cell: Cell) -> Path:
    """Return where a measuring process leaves its record; sorted by name is sorted by round."""
    return run / "trials" / f"r{number:02d}.{attempt}-{cell.slug}"


def measuring(plan: RunPlan, cell: Cell, inputs: GroupInputs, number: int, attempt: int, folder: Path) -> Job:
    """Return the job of one measuring process; only the first round trains to the evaluation."""
    shape = plan.protocol.plan
    sources = tuple(name for name in shape.inputs if inputs.data.prepared or name == "cached")
    fixed = shape.warmup != "adaptive"
    evaluate = bool(inputs.data.prepared) and "pipeline" in sources and (number == 1 or fixed)
    shape = replace(
        shape, inputs=sources, evaluate=evaluate, train_steps=plan.study.train_steps if evaluate else 0,
        loader_workers=plan.options.loader_workers,
    )  # fmt: skip
    return _job(plan, cell, inputs.weights, inputs.data, "measure", trial_name(number, attempt, cell), folder, shape)


def cached_only(job: Job) -> Job:
    """Return the job without data: one synthetic batch, no evaluation."""
    shape = replace(job.plan, inputs=("cached",), evaluate=False, train_steps=0)
    return replace(job, plan=shape)


def certifying(plan: RunPlan, cell: Cell, inputs: GroupInputs, folder: Path) -> Job:
    """Return the job that saves the tensors of a certificate, unperturbed."""
    return _job(plan, cell, inputs.weights, inputs.data, "certify", f"0.0/{cell.key}", folder, Plan())


def _job(plan: RunPlan, cell: Cell, weights: Path, data: Data, task: str, name: str, folder: Path, shape: Plan) -> Job:
    workload, preset = plan.preset(cell.group)
    return Job(
        task=task, trial=name, framework=cell.framework, workload=cell.workload, workload_folder=str(workload.folder),
        preset=cell.preset, sizes=preset.sizes, settings=cell.settings, optimizer=cell.optimizer, weights=str(weights),
        data=data, folder=str(folder), seed=plan.options.seed, metric=workload.metric, plan=shape,
    )  # fmt: skip
