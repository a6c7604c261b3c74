"""The processes beside the ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steelyard_worker.ranks import Ranks


def serve(role: str, ranks: Ranks) -> None:
    """Be the parameter server until this process is ended."""
    from steelyard_worker.frameworks.tensorflow import cluster

    cluster.start(ranks, cluster.of_servers(ranks), role, 0, 1).join()
