"""A simulated cluster: several Ray nodes on this machine, each with a cache of its own; only the fake framework runs there."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATIENCE_S = 120  # much longer than anything takes on a quiet machine
WORKLOADS = Path(__file__).resolve().parent.parent / "workloads"
LINE = ("--workloads", str(WORKLOADS), "-w", "line", "--plain")
STORE_BYTES = 80 * 2**20


@dataclass
class Simulated:
    """The cluster; `nodes` are its nodes by name, `caches` the folders of their caches."""

    folder: Path
    cluster: Any = None
    nodes: dict[str, Any] = field(default_factory=dict)

    def add(self, name: str, **env: str) -> None:
        """Add a node."""
        variables = {"STEELYARD_CACHE": str(self.cache(name)), **env}
        self.nodes[name] = self.cluster.add_node(
            num_cpus=1, node_name=name, node_ip_address="127.0.0.1", env_vars=variables, object_store_memory=STORE_BYTES,
        )  # fmt: skip

    def kill(self, name: str) -> None:
        """Kill a node as if its machine had lost its power."""
        self.cluster.remove_node(self.nodes.pop(name), allow_graceful=False)

    def cache(self, name: str) -> Path:
        """Return the cache of a node."""
        return self.folder / name

    def workers(self) -> list[psutil.Process]:
        """Return the measuring processes on all nodes: those that run in a folder of a run on a node."""
        return [each for each in psutil.process_iter() if self._works(each)]

    def _works(self, process: psutil.Process) -> bool:
        try:
            return process.status() != psutil.STATUS_ZOMBIE and process.cwd().startswith(str(self.folder))
        except psutil.Error:
            return False


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    """Three nodes a, b and c, which tests may kill; a test that needs one that is gone adds it again."""
    pytest.importorskip("ray", reason="Ray is not installed; it comes with the extra steelyard[cluster]")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # stays on the loopback interface
        from ray.cluster_utils import Cluster

        # Ray's sockets lie in its folder, and their paths must be short.
        made = Simulated(tmp_path_factory.mktemp("nodes"))
        head = {"num_cpus": 0, "node_name": "head", "node_ip_address": "127.0.0.1", "object_store_memory": STORE_BYTES}
        made.cluster = Cluster(
            initialize_head=True,
            head_node_args={**head, "env_vars": {"STEELYARD_CACHE": str(made.cache("a"))}, "node_name": "a"},
        )
        for name in ("b", "c"):
            made.add(name)
        yield made
        made.cluster.shutdown()


class Running:
    """A running steelyard process whose output is read continuously."""

    def __init__(self, argv: list[str], env: dict[str, str]) -> None:
        self.process = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.lines.extend(iter(self.process.stderr.readline, ""))

    @property
    def stderr(self) -> str:
        """What was printed so far."""
        return "".join(self.lines)

    def wait_for(self, text: str) -> None:
        """Wait until standard error contains a text."""
        until(lambda: text in self.stderr or self.process.poll() is not None, f"{text!r} in {self.lines}")
        assert text in self.stderr, self.stderr

    def end(self) -> tuple[int, str]:
        """Wait for the end of the process; returns the exit code and standard output. A traceback fails the test."""
        assert self.process.stdout is not None
        out = self.process.stdout.read()
        code = self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        assert "Traceback" not in self.stderr, self.stderr
        return code, out


def until(true: Callable[[], bool], what: str) -> None:
    """Wait until something is true."""
    limit = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < limit, f"did not happen in time: {what}"
        time.sleep(0.05)


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
        running.process.kill()
        running.process.communicate()


def host_lock(cache: Path) -> Path:
    """Return the lock of the machine in a node's cache."""
    return cache / f"run-on-{os.uname().nodename or socket.gethostname()}.lock"
