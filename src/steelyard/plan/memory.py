"""Does a preset fit this machine? Estimated before anything is made, from what the network says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.errors import UserError
from steelyard.host import available_memory_bytes

if TYPE_CHECKING:
    from steelyard.plan.resolve import RunPlan
    from steelyard_worker.network import Network
    from steelyard_worker.protocol import Optimizer

# A framework with its libraries and an input pipeline, measured: 250 to 700 MiB.
PROCESS_BYTES = 500 * 2**20
# Gradients of activations and workspaces of kernels, over the activations kept for the backward pass; measured on ResNet-18.
WORKING = 1.5
FLOAT = 4
MOMENTS = {"sgd": 1, "adam": 2, "adamw": 2, "lamb": 2}


def needed_bytes(network: Network, rule: Optimizer, batch: int) -> int:
    """Return a rough peak of one process: the framework, weights, gradients, moments, and the batch's activations."""
    total = sum(parameter.count for parameter in network.parameters)
    weights = FLOAT * (total + network.trainable_count * (1 + MOMENTS.get(rule.name, 2)))
    return PROCESS_BYTES + weights + round(FLOAT * WORKING * network.activations * batch)


def check(plan: RunPlan, free_bytes: int | None = None) -> None:
    """Refuse a preset that this machine's free memory cannot hold, with the largest batch that it could.

    Networks that do not say what they keep are let pass, as are devices with a memory of their own.
    """
    free = available_memory_bytes() if free_bytes is None else free_bytes
    for group, cells in plan.groups.items():
        workload, preset = plan.preset(group)
        network, batch = workload.network(preset), preset.sizes["batch"]
        needed = needed_bytes(network, cells[0].optimizer, batch)
        if not free or not network.activations or cells[0].settings.device != "cpu" or needed <= free:
            continue
        fixed = needed_bytes(network, cells[0].optimizer, 0)
        most = max(0, int((free - fixed) / ((needed - fixed) / batch)))
        advice = f"--batch {most} would fit" if most else "no batch would fit; choose another preset"
        raise UserError(
            f"{group} needs about {needed / 2**30:.1f} GiB of memory at a batch of {batch}, but {free / 2**30:.1f} GiB "
            f"are free here: {advice}."
        )
