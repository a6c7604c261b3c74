"""Check, before anything is created, whether the cases fit this machine's memory; estimated from the networks' descriptions."""

import math
from dataclasses import replace
from pathlib import Path

from steelyard.catalog import workloads
from steelyard.errors import UserError
from steelyard.host import available_memory_bytes
from steelyard.plan.run_plan import RunPlan, Variant
from steelyard_worker import accumulation
from steelyard_worker.case import NO_OPTIMIZER, Optimizer
from steelyard_worker.network import Network

# A framework with its libraries and an input pipeline; measured values are 250 to 700 MiB.
PROCESS_BYTES = 500 * 2**20
# Stored activations, their gradients and the kernels' workspaces, relative to the stored activations; measured on ResNet-18.
WORKING = 1.5
# The same of an inference, which stores nothing for a backward pass.
WORKING_INFERENCE = 0.25
FLOAT = 4
MOMENTS = {"sgd": 1, "adam": 2, "adamw": 2, "lamb": 2}


def needed_bytes(network: Network, rule: Optimizer, batch: int) -> int:
    """Return the estimated peak memory of one process: framework, weights, gradients, moments, inputs and activations.

    A network whose description does not count activations needs more than this.
    """
    total = sum(parameter.count for parameter in network.parameters)
    infers = rule == NO_OPTIMIZER
    trained = 0 if infers else network.trainable_count * (1 + MOMENTS.get(rule.name, 2))
    weights, working = FLOAT * (total + trained), WORKING_INFERENCE if infers else WORKING
    inputs = sum(math.prod(each.shape) for each in network.inputs)
    return PROCESS_BYTES + weights + round(FLOAT * (working * network.activations + inputs)) * batch


def fitting_batch(network: Network, rule: Optimizer, limit_bytes: int) -> int:
    """Return the largest batch that should fit a limit by estimate; 0 if none does."""
    fixed = needed_bytes(network, rule, 0)
    return max(0, (limit_bytes - fixed) // max(1, needed_bytes(network, rule, 1) - fixed))


def of_variant(plan: RunPlan, variant: Variant) -> int:
    """Return the estimated peak of main memory of one process of a variant, bytes."""
    case = variant.case
    return needed_bytes(_network(plan, variant), case.optimizer, case.batch)


def _network(plan: RunPlan, variant: Variant) -> Network:
    """Return the network of a variant, as far as it is in main memory."""
    case = variant.case
    network = workloads.described(Path(plan.workload_folders[case.workload]), case.sizes)
    parts = accumulation.parts_of(case.settings)  # of the batch, of which only one has activations at a time
    if case.settings.device == "cpu":
        return replace(network, activations=-(-network.activations // parts))
    return replace(network, parameters=(), activations=0)


def check(plan: RunPlan, free_bytes: int | None = None) -> None:
    """Reject a case that does not fit the free memory; the message gives the largest batch that fits.

    On devices with their own memory only the batch is counted, which is made in this machine's memory.
    """
    free = available_memory_bytes() if free_bytes is None else free_bytes
    for variant in plan.variants:
        case = variant.case
        if case.memory_limit > free:
            raise UserError(
                f"{variant.group} may use {case.memory_limit / 2**30:.1f} GiB of memory, but only {free / 2**30:.1f} GiB "
                "are free. Choose a lower memory limit."
            )
        if plan.group(variant.group).protocol.searches_batch:
            continue
        needed = of_variant(plan, variant)
        if needed <= free:
            continue
        most = fitting_batch(_network(plan, variant), case.optimizer, free)
        advice = f"Use --batch {most} or less" if most else "No batch fits; choose another preset"
        raise UserError(
            f"{variant.group} needs about {needed / 2**30:.1f} GiB of memory with a batch of {case.batch}, but only "
            f"{free / 2**30:.1f} GiB are free. {advice}."
        )
