"""A simulated cluster: several Ray nodes on this machine, each with a cache of its own; and processes that are watched."""

from __future__ import annotations

import platform
import subprocess
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from filelock import FileLock
from machine_limits import share_limits

from steelyard.host import holders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATIENCE_S = 300  # much longer than anything takes on a quiet machine
WORKLOADS = Path(__file__).resolve().parent.parent / "workloads"
LINE = ("--workloads", str(WORKLOADS), "-w", "line", "--plain")
ON_RAY = ("--on", "ray")
STORE_BYTES = 80 * 2**20


@dataclass
class Simulated:
    """The cluster; `nodes` are its nodes by name, `folder` has their caches, which share `machine_limits`."""

    folder: Path
    machine_limits: Path
    cluster: Any = None
    nodes: dict[str, Any] = field(default_factory=dict)

    def add(self, name: str, **env: str) -> None:
        """Add a node."""
        self.nodes[name] = self.cluster.add_node(**self.arguments(name, **env))

    def arguments(self, name: str, **env: str) -> dict[str, Any]:
        """Return the arguments of Ray for a node."""
        if not self.cache(name).exists():
            share_limits(self.cache(name), self.machine_limits)
        variables = {"STEELYARD_CACHE": str(self.cache(name)), **env}
        return {
            "num_cpus": 1,
            "node_name": name,
            "node_ip_address": "127.0.0.1",
            "env_vars": variables,
            "object_store_memory": STORE_BYTES,
            "include_dashboard": False,
        }

    def kill(self, name: str) -> None:
        """Kill a node as if its machine had lost its power; returns when the cluster knows, so that its name is free again."""
        self.cluster.remove_node(self.nodes.pop(name), allow_graceful=False)
        until(lambda: not self._is_alive(name), f"the cluster to miss {name}")

    def _is_alive(self, name: str) -> bool:
        return any(node["Alive"] and node["NodeName"] == name for node in self.cluster.global_state.node_table())

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
        until(lambda: text in self.stderr or self.process.poll() is not None, repr(text), lambda: self.stderr)
        assert text in self.stderr, self.stderr

    def end(self) -> tuple[int, str]:
        """Wait for the end of the process; returns the exit code and standard output. A traceback fails the test."""
        assert self.process.stdout is not None
        out = self.process.stdout.read()
        code = self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        assert "Traceback" not in self.stderr, self.stderr
        return code, out

    def close(self) -> None:
        """Kill the process if it still runs, and close its pipes."""
        self.process.kill()
        self._reader.join(PATIENCE_S)
        self.process.communicate()


def until(true: Callable[[], bool], what: str, instead: Callable[[], str] = str) -> None:
    """Wait until something is true. `instead`: returns what is there when time is up."""
    limit = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < limit, f"did not happen in time: {what}\n{instead()}"
        time.sleep(0.1)


@contextmanager
def used_by(cache: Path, name: str) -> Iterator[None]:
    """Have the turn of a node as another run of this name would; it is taken within a moment in which the node is free."""
    lock = FileLock(host_lock(cache))
    with lock.acquire(poll_interval=0.001), pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEELYARD_CACHE", str(cache))
        with holders.noted(f"steelyard run {name}", name):
            yield


def host_lock(cache: Path) -> Path:
    """Return the lock of the machine in a node's cache."""
    return cache / f"run-on-{platform.node()}.lock"
