"""A rough estimate of the time that a plan takes."""

from collections.abc import Callable
from typing import Any

from steelyard.plan.protocols import Protocol
from steelyard.plan.run_plan import RunPlan, Variant

# Rough figures for planning only, from runs on two cores: seconds, and the share of one core's 75 GFLOP/s that is reached.
START_S = 4.0
CERTIFY_S = 8.0
ENVIRONMENT_S = 15.0
CORE_FLOPS = 75e9
SHARE_OF_PEAK = 0.25
SMALLEST_STEP_S = 0.003
ADAPTIVE_STEPS = 30


def estimate(plan: RunPlan) -> dict[str, float]:
    """Estimate the seconds of each stage from FLOPs and fixed costs, to within a factor of about two.

    `environments`: if all must be created; `rounds`: for the fewest rounds, `most_rounds`: for the most.
    """
    certificates = CERTIFY_S * (len(plan.variants) + 2 * len(plan.groups)) / 2 if plan.options.certify else 0.0
    return {
        "environments": ENVIRONMENT_S * len(plan.environments), "certificates": certificates,
        "rounds": _rounds_s(plan, lambda protocol: protocol.rounds_min),
        "most_rounds": _rounds_s(plan, lambda protocol: protocol.rounds_max),
    }  # fmt: skip


def step_s(plan: RunPlan, variant: Variant) -> float:
    """Return the estimated time of one step in seconds."""
    case = variant.case
    flops = float(plan.group(variant.group).training_flops * case.batch)
    return max(SMALLEST_STEP_S, flops / (CORE_FLOPS * max(1, case.settings.threads or 1) * SHARE_OF_PEAK))


def _rounds_s(plan: RunPlan, rounds: Callable[[Protocol], int]) -> float:
    return sum(_process_s(plan, each) * rounds(plan.group(each.group).protocol) for each in plan.variants)


def _process_s(plan: RunPlan, variant: Variant) -> float:
    group = plan.group(variant.group)
    schedule = group.protocol.schedule
    steps = group.train_steps / max(1, group.protocol.rounds_min)
    for length in (schedule.warmup, schedule.counted):
        steps += length.count if length.unit == "steps" else ADAPTIVE_STEPS
    return START_S + steps * step_s(plan, variant) * len(schedule.inputs)


def as_dict(plan: RunPlan) -> dict[str, Any]:
    """Return plan and estimate as plain values, for scripts."""
    cases = [
        {"case": each.key, "id": each.case.id, "framework": each.case.framework, "mode": each.case.settings.mode}
        for each in plan.variants
    ]
    skipped = [{"group": each.group, "environment": each.environment, "reason": each.reason} for each in plan.skipped]
    return {
        "study": plan.study.name, "protocols": [each.name for each in plan.protocols], "cases": cases, "skipped": skipped,
        "estimate_s": estimate(plan),
    }  # fmt: skip
