"""Fixtures: a simulated cluster, and processes of steelyard that know it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cluster.simulated import Running, Simulated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, machine_limits: Path) -> Iterator[Simulated]:
    """Three nodes a, b and c, which tests may kill; a test that needs one that is gone adds it again."""
    pytest.importorskip("ray", reason="Ray is not installed; it comes with the extra steelyard[cluster]")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # stays on the loopback interface
        from ray.cluster_utils import Cluster

        made = Simulated(tmp_path_factory.mktemp("nodes"), machine_limits)
        made.cluster = Cluster(initialize_head=True, head_node_args=made.arguments("a"))
        for name in ("b", "c"):
            made.add(name)
        yield made
        made.cluster.shutdown()


@pytest.fixture
def start(
    command: list[str], cluster: Simulated, environ_for: Callable[..., dict[str, str]], data_folder: Path
) -> Iterator[Callable[..., Running]]:
    """Start a steelyard process that knows the cluster; processes still running after the test are killed."""
    started: list[Running] = []

    def run(*argv: str, **env: str) -> Running:
        # Ray warns in ways that are not ours to mend.
        known = {"RAY_ADDRESS": cluster.cluster.address, "PYTHONWARNINGS": "", **env}
        started.append(Running([*command, *argv], environ_for(data_folder, **known)))
        return started[-1]

    yield run
    for running in started:
        running.close()
