"""Build the job of one worker process from a plan, a case and its inputs. Nothing is run here."""

from dataclasses import replace
from pathlib import Path

from steelyard.catalog import frameworks
from steelyard.inputs import rates
from steelyard.inputs.case_inputs import CaseInputs
from steelyard.plan.run_plan import RunPlan, Variant
from steelyard.statistics import metrics
from steelyard.statistics.effort import FIRST_RATIO
from steelyard_worker.case import TRAINING
from steelyard_worker.job_kinds import CERTIFY, COMMUNICATION, GRAPH, KINDS, MEASURE, PROFILE
from steelyard_worker.protocol import Certify, Job, Length

ROUNDS_OF_ALL_INPUTS = 3
# Which inputs a process measures: those of its round, or the first alone.
OF_ROUND, FIRST = "of the round", "first"
# Certificates run several processes at once. OpenMP threads that wait busily would take the cores from those that compute.
PASSIVE = {"OMP_WAIT_POLICY": "PASSIVE"}


def trial_folder(run: Path, number: int, attempt: int, variant: Variant) -> Path:
    """Return the folder for the record of a measuring process; the names sort by round and attempt."""
    return run / KINDS[MEASURE].folder / f"r{number:02d}.{attempt}-{variant.file_name}"


def measuring(
    plan: RunPlan,
    variant: Variant,
    prepared: CaseInputs,
    number: int,
    attempt: int,
    folder: Path,
    noise_ratio: float = FIRST_RATIO,
    turns: bool = False,
    inputs: str = OF_ROUND,
) -> Job:
    """Return the job of one measuring process. `noise_ratio`: s_step / s_process, for the number of counted steps.

    `turns`: whether it takes turns with the others of its round, if its protocol has turns. `inputs`: OF_ROUND, or FIRST: only
    the input that verdicts rest on, without an evaluation.

    With an adaptive warm-up only round 1 trains and evaluates, and later rounds measure the first input alone: verdicts
    rest on it, and a process that needs half the time can run twice as often.
    """
    group = plan.group(variant.group)
    schedule = group.protocol.schedule
    sources = tuple(name for name in schedule.inputs if prepared.data.prepared or name == "cached")
    fixed = schedule.warmup.unit != "adaptive"
    if inputs == FIRST or (not fixed and number > ROUNDS_OF_ALL_INPUTS):
        sources = sources[:1]
    trained = variant.case.task == TRAINING and bool(prepared.data.prepared) and "pipeline" in sources
    scored = group.metric != metrics.NONE and prepared.meta.get("test_count") != 0
    evaluate = trained and scored and inputs == OF_ROUND and (number == 1 or fixed)
    schedule = replace(
        schedule,
        inputs=sources,
        evaluate=evaluate,
        noise_ratio=noise_ratio,
        train_steps=group.train_steps if evaluate else 0,
        turns=schedule.turns if turns else 0,
    )
    job = _job(MEASURE, plan, variant, prepared, folder)
    return replace(job, schedule=schedule, round=number, attempt=attempt, rates=str(prepared.rates or ""))


def profiling(plan: RunPlan, variant: Variant, inputs: CaseInputs, number: int, folder: Path) -> Job:
    """Return the job that runs steps under the framework's own profiler, on the input that verdicts rest on.

    `number`: of the variant's profiles, from 1.
    """
    known = frameworks.framework(variant.case.framework)
    job = measuring(plan, variant, inputs, number, 0, folder, inputs=FIRST)
    schedule = replace(job.schedule, warmup=Length(), counted=Length())
    return replace(job, kind=PROFILE, schedule=schedule, variables=known.profile_variables)


def counting(plan: RunPlan, variant: Variant, inputs: CaseInputs, folder: Path) -> Job:
    """Return the job that counts the operations of the graph of a step."""
    job = _job(GRAPH, plan, variant, inputs, folder)
    return replace(job, rates=str(inputs.rates or ""), variables=_untimed(variant))


def communicating(plan: RunPlan, variant: Variant, inputs: CaseInputs, folder: Path) -> Job:
    """Return the job that measures what the ranks of a strategy exchange, by itself."""
    return _job(COMMUNICATION, plan, variant, inputs, folder)


def certifying(plan: RunPlan, variant: Variant, inputs: CaseInputs, folder: Path, steps: int = Certify.steps) -> Job:
    """Return the job that saves the tensors of a certificate of some steps, unperturbed."""
    changing = rates.write_certificate(variant.case.optimizer, steps, inputs.steps_per_epoch)
    return replace(_job(CERTIFY, plan, variant, inputs, folder), variables=_untimed(variant), rates=changing)


def _untimed(variant: Variant) -> dict[str, str]:
    """Return the environment variables of a process in which nothing is timed, and beside which others run."""
    return PASSIVE | frameworks.framework(variant.case.framework).untimed_variables


def _job(kind: str, plan: RunPlan, variant: Variant, inputs: CaseInputs, folder: Path) -> Job:
    group = plan.group(variant.group)
    return Job(
        kind=kind,
        case=variant.case,
        workload_folder=plan.workload_folders[variant.case.workload],
        weights=str(inputs.weights),
        data=replace(inputs.data, evaluation_limit=group.evaluation_limit),
        folder=str(folder),
        metric=group.metric,
        spread=frameworks.framework(variant.case.framework).spread(variant.case.strategy),
    )
