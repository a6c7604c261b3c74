"""Processes beside the ranks: the scheduler of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard_worker.frameworks.mindspore import distributed
from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from steelyard_worker.ranks import Ranks


def serve(role: str, ranks: Ranks) -> None:
    """Do the work of a role; returns when the ranks have left the cluster."""
    if role != distributed.SCHEDULER:
        raise Refusal("unsupported", f"MindSpore has no role {role!r} here.")
    distributed.schedule(ranks)
