"""What a cluster costs: dispatch of a trial through Ray, three nodes against one machine, and the driver of a long queue.

The nodes are simulated on this machine, and their processes sleep, so that three of them do not compete for its cores.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from benchmarks.rows import Row
from steelyard.host.machine_lock import VARIABLE
from steelyard.results import durations, record

LINE = Path(__file__).parents[1] / "tests" / "workloads" / "line"
NODES = "abc"
SLEEP_S = 20.0
ROUNDS = 3
TRIALS = 2 * ROUNDS
USUAL_TRIAL_S = 60.0
QUEUED_ROUNDS = 500
SETTLED_S, WATCHED_S = 10.0, 30.0
START_LIMIT_S = 120.0


def measure() -> list[Row]:
    """Return the rows: overhead of a trial, share of the ideal time on three nodes, memory and CPU of the driver."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        workload = _sleeping(root)
        local_s = _rounds_s(root, workload, "local", "")
        with cluster(root, NODES[:1]) as address:
            one_s = _rounds_s(root, workload, "one", address)
        with cluster(root, NODES) as address:
            three_s = _rounds_s(root, workload, "three", address)
            megabytes, cores = _driver(root, workload, address)
    overhead_s = (one_s - local_s) / TRIALS
    how = f"{TRIALS} trials that sleep {SLEEP_S:g} s"
    return [
        Row(
            "dispatch through Ray / a trial of 60 s",
            overhead_s / USUAL_TRIAL_S,
            0.02,
            "at most",
            f"{overhead_s:.2f} s, {how}",
        ),
        Row(
            "3 nodes / a third of one machine's time",
            3 * three_s / local_s,
            1.1,
            "at most",
            f"{three_s:.1f} s / {local_s / 3:.1f} s, {how}",
        ),
        Row("driver of 1,000 queued trials, MB", megabytes, 200.0, "at most", "resident, interpreter and Ray included"),
        Row("driver of 1,000 queued trials, cores", cores, 0.01, "at most", f"over {WATCHED_S:g} s"),
    ]


def _sleeping(root: Path) -> Path:
    """Return a folder of workloads whose processes sleep before they compute."""
    folder = root / "workloads"
    shutil.copytree(LINE, folder / "line")
    for path in (folder / "line").glob("*.py"):
        if path.name != "network.py":
            text = path.read_text(encoding="utf-8")
            path.write_text(f"{text}\nimport time  # noqa: E402\n\ntime.sleep({SLEEP_S})\n", encoding="utf-8")
    return folder


@contextmanager
def cluster(root: Path, names: str) -> Iterator[str]:
    """Yield the address of a simulated cluster that stays on the loopback interface, with a node for each letter of `names`."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    from ray.cluster_utils import Cluster

    nodes: list[dict[str, Any]] = [
        {
            "num_cpus": 1,
            "node_name": name,
            "node_ip_address": "127.0.0.1",
            "object_store_memory": 80 * 2**20,
            "env_vars": {"STEELYARD_CACHE": str(root / name), VARIABLE: ""},
            "include_dashboard": False,
            "include_log_monitor": False,
        }
        for name in names
    ]
    cluster = Cluster(initialize_head=True, head_node_args=nodes[0])
    for node in nodes[1:]:
        cluster.add_node(**node)
    try:
        yield cluster.address
    finally:
        cluster.shutdown()  # type: ignore[no-untyped-call]


def _start(root: Path, workload: Path, name: str, address: str, rounds: int) -> subprocess.Popen[str]:
    where = ["--on", "ray"] if address else []
    options = ["--no-guard", "--no-certify", "--plain", "--protocol", "fixed:1+1", "--rounds", str(rounds)]
    command = [
        sys.executable,
        "-m",
        "steelyard",
        "run",
        "--workloads",
        str(workload),
        "-w",
        "line",
        "-f",
        "fake",
        "-f",
        "dummy",
    ]
    env = {
        **os.environ,
        "STEELYARD_CACHE": str(root / "home"),
        "STEELYARD_RUNS": str(root / name),
        "RAY_ADDRESS": address,
    }
    return subprocess.Popen(
        [*command, *options, *where],
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=(root / f"{name}.log").open("w"),
        text=True,
    )


def _rounds_s(root: Path, workload: Path, name: str, address: str) -> float:
    """Return the seconds of all rounds of a run."""
    code = _start(root, workload, name, address, ROUNDS).wait()
    if code:
        raise RuntimeError((root / f"{name}.log").read_text(encoding="utf-8"))
    (folder,) = (path.parent for path in root.glob(f"{name}/runs/*/run.json"))
    return record.read(folder).seconds[durations.ROUNDS]


def _driver(root: Path, workload: Path, address: str) -> tuple[float, float]:
    """Return the resident megabytes and the cores of the command while its first rounds of many run."""
    started = _start(root, workload, "queue", address, QUEUED_ROUNDS)
    limit_s = time.monotonic() + START_LIMIT_S
    while "round 1" not in (root / "queue.log").read_text(encoding="utf-8"):
        if time.monotonic() > limit_s or started.poll() is not None:
            raise RuntimeError((root / "queue.log").read_text(encoding="utf-8"))
        time.sleep(0.5)
    time.sleep(SETTLED_S)
    driver = psutil.Process(started.pid)
    before, began_s = driver.cpu_times(), time.monotonic()
    time.sleep(WATCHED_S)
    after = driver.cpu_times()
    used_s = after.user + after.system - before.user - before.system
    cores, megabytes = used_s / (time.monotonic() - began_s), driver.memory_info().rss / 1e6
    started.terminate()
    started.wait()
    return megabytes, cores
