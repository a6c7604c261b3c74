"""The plan as a person reads it before anything is done, with a rough time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steelyard.catalog import frameworks

if TYPE_CHECKING:
    from steelyard.plan.cells import Cell
    from steelyard.plan.resolve import RunPlan

# Rough figures for planning only, from runs on two cores: seconds, and the share of one core's 75 GFLOP/s reached.
START_S = 4.0
CERTIFY_S = 8.0
ENVIRONMENT_S = 15.0
CALIBRATION_S = 70.0
CORE_FLOPS = 75e9
SHARE_OF_PEAK = 0.25
SMALLEST_STEP_S = 0.003


@dataclass(frozen=True)
class Estimate:
    """Seconds per stage, for the fewest and the most rounds; environments only when they must be made."""

    environments_s: float
    certificates_s: float
    rounds_s: float
    most_rounds_s: float


def estimate(plan: RunPlan) -> Estimate:
    """Estimate from FLOPs and fixed costs; good to a factor of two or so."""
    per_round = sum(_process_s(plan, cell) for cell in plan.cells)
    certificates = CERTIFY_S * (len(plan.cells) + 2 * len(plan.groups)) / 2 if plan.options.certify else 0.0
    calibration = CALIBRATION_S if plan.options.calibrate and plan.protocol.sequential else 0.0
    return Estimate(
        ENVIRONMENT_S * len(plan.environments),
        certificates + calibration,
        per_round * plan.protocol.rounds_min,
        per_round * plan.protocol.rounds_max,
    )


def step_s(plan: RunPlan, cell: Cell) -> float:
    """Return a guess of one step's time."""
    workload, preset = plan.preset(cell.group)
    flops = float(workload.network(preset).training_flops * preset.sizes["batch"])
    return max(SMALLEST_STEP_S, flops / (CORE_FLOPS * max(1, cell.settings.threads or 1) * SHARE_OF_PEAK))


def _process_s(plan: RunPlan, cell: Cell) -> float:
    shape = plan.protocol.plan
    steps = plan.study.train_steps / max(1, plan.protocol.rounds_min)
    for part in (shape.warmup, shape.counted):
        kind, _, number = part.partition(":")
        steps += int(number) if kind == "steps" else 30
    return START_S + steps * step_s(plan, cell) * len(shape.inputs)


def show(plan: RunPlan, as_json: bool = False) -> None:
    """Print the plan."""
    if as_json:
        print(json.dumps(as_dict(plan), indent=1))
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    found = estimate(plan)
    console.print(f"[bold]{plan.study.title}[/]: {plan.study.question}")
    console.print(f"Protocol {plan.protocol.name}: {plan.protocol.summary}. Threads per framework: {_threads(plan)}.")
    table = Table(
        "workload",
        "framework",
        "mode",
        "settings",
        "parameters",
        "batch",
        "step, roughly",
        box=None,
        pad_edge=False,
    )
    for cell in plan.cells:
        workload, preset = plan.preset(cell.group)
        knobs = ", ".join(f"{key}={value}" for key, value in cell.settings.knobs.items()) or "as it comes"
        table.add_row(
            cell.group,
            cell.title,
            cell.settings.mode,
            knobs,
            f"{workload.network(preset).trainable_count:,}",
            str(preset.sizes["batch"]),
            f"{step_s(plan, cell) * 1e3:.0f} ms",
        )
    console.print(table)
    for gap in plan.gaps:
        console.print(f"[dim]{gap.group}, {gap.environment}: not measured. {escape(gap.reason)}[/]")
    low = found.certificates_s + found.rounds_s
    high = low - found.rounds_s + found.most_rounds_s + found.environments_s
    console.print(
        f"About {low / 60:.0f} minutes when everything is decided early and environments exist, at most about {high / 60:.0f}."
    )


def as_dict(plan: RunPlan) -> dict[str, Any]:
    """Return the plan as plain values."""
    found = estimate(plan)
    return {
        "study": plan.study.name,
        "protocol": plan.protocol.name,
        "cells": [{"cell": cell.key, "framework": cell.framework, "mode": cell.settings.mode} for cell in plan.cells],
        "gaps": [{"group": gap.group, "environment": gap.environment, "reason": gap.reason} for gap in plan.gaps],
        "estimate_s": {
            "environments": found.environments_s,
            "certificates": found.certificates_s,
            "rounds": found.rounds_s,
            "most_rounds": found.most_rounds_s,
        },
    }


def _threads(plan: RunPlan) -> str:
    count = plan.cells[0].settings.threads
    return str(count) if count else "as each framework comes"


def notes(plan: RunPlan) -> list[str]:
    """Return what is known against the frameworks that take part, such as that one is retired."""
    return [
        f"{known.title}: {known.note}"
        for name in plan.environments
        if (known := frameworks.framework(name.partition("@")[0])).note
    ]
