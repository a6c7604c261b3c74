"""Fixtures: a simulated cluster, and processes of steelyard that know it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cluster.simulated import Running, Simulated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


HEAD, *OTHERS = "a", "b", "c"
# Nobody reads the logs of workers, and no nodes are to be started on demand: without the processes that do this.
ALONE = {"include_log_monitor": False, "no_monitor": True}


@pytest.fixture(scope="module")
def cluster_of_file(tmp_path_factory: pytest.TempPathFactory, machine_limits: Path) -> Iterator[Simulated]:
    """The cluster of all tests of a file. It ends with the file, because its processes compute all the time."""
    pytest.importorskip("ray", reason="Ray is not installed; it comes with the extra steelyard[cluster]")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # stays on the loopback interface
        patch.setenv("RAY_prestart_worker_first_driver", "0")  # no process that waits for work of which there is none
        from ray.cluster_utils import Cluster

        made = Simulated(tmp_path_factory.mktemp("nodes"), machine_limits)
        made.cluster = Cluster(initialize_head=True, head_node_args={**made.arguments(HEAD), **ALONE})
        yield made
        made.cluster.shutdown()


@pytest.fixture
def cluster(cluster_of_file: Simulated) -> Simulated:
    """Three nodes a, b and c. A test may kill b and c: before the next test they are added again."""
    for name in OTHERS:
        if name not in cluster_of_file.nodes:
            cluster_of_file.add(name)
    return cluster_of_file


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
