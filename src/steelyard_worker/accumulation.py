"""The knob `accumulate`: a batch is computed in parts, one after the other; their gradients are added before one update."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steelyard_worker.case import Settings
    from steelyard_worker.network import Network

KNOB = "accumulate"


def parts_of(settings: Settings) -> int:
    """Return into how many parts a step divides its batch; 1: it does not."""
    return int(settings.knobs.get(KNOB, 1))


def applied(settings: Settings) -> dict[str, Any]:
    """Return what an adapter reports whose trainers are made with this number; nothing where there is one part."""
    return {KNOB: parts_of(settings)} if KNOB in settings.knobs else {}


def parts_for(wanted: int, samples: int) -> int:
    """Return into how many equal parts a batch of so many samples is divided: as wanted, or fewer for a smaller batch.

    A batch of a training can be divided as wanted. One of a certificate may have fewer samples.
    """
    return math.gcd(wanted, samples)


def obstacle(parts: int, batch: int) -> str:
    """Return why a batch cannot be computed in so many parts; empty if it can."""
    if parts < 1:
        return f"A batch cannot be computed in {parts} parts. Choose a whole number from 1 for --accumulate."
    if batch % parts:
        return (
            f"A batch of {batch} cannot be divided into {parts} equal parts whose gradients are added. Choose another --batch or "
            "--accumulate."
        )
    return ""


def otherwise(parts: int, network: Network) -> str:
    """Return what a step in parts computes instead of one on the whole batch (P-59); empty where it computes the same."""
    if parts == 1:
        return ""
    if any(each.kind == "running_var" for each in network.parameters):
        return "batch normalisation computes with the statistics of each part of the batch, not of the whole batch"
    if network.mean_over != "samples":
        return f"the loss is a mean over {network.mean_over}, and every part of the batch has another number of them"
    return ""
