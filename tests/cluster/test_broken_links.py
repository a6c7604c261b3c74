"""A network that fails for half a minute between two hosts, each of which has a node."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cluster.records import counted, kept_nodes, only_run
from cluster.simulated import LINE, ON_RAY, STORE_BYTES, Running, until

from steelyard.host import links
from steelyard.results import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.end_to_end

# After a shorter break the connections go on by themselves; after one of more than a minute Ray gives the node up.
BROKEN_S = 30
RAY = str(Path(sys.executable).with_name("ray"))
TWO = (*LINE, "--no-guard", "-f", "fake", "--knob", "fake.step_us=10000,12000", "--protocol", "fixed:5+10000")


@contextmanager
def linked(folder: Path) -> Iterator[tuple[list[str], str, dict[str, str]]]:
    """Start a cluster of the nodes `near` and `far` on two hosts with a link between them.

    Yields the command that runs another on the near host, the namespace of the far one, and variables.
    """
    pytest.importorskip("ray", reason="Ray is not installed; it comes with the extra steelyard[cluster]")
    if why_not := links.obstacle():
        pytest.skip(why_not)
    variables = {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONWARNINGS": ""}
    head, *_ = addresses = links.ADDRESSES
    ways = (["--head", "--port=6379", "--include-dashboard=false"], [f"--address={head}:6379"])
    with links.hosts("1gbit") as hosts:
        inside = [["ip", "netns", "exec", host] for host in hosts]
        try:
            for enter, address, way, name in zip(inside, addresses, ways, ("near", "far"), strict=True):
                log, env = folder / f"{name}.log", {**os.environ, **variables, "STEELYARD_CACHE": str(folder / name)}
                size = f"--object-store-memory={STORE_BYTES}"
                started = [
                    RAY,
                    "start",
                    *way,
                    f"--node-ip-address={address}",
                    f"--node-name={name}",
                    "--num-cpus=1",
                    size,
                ]
                with log.open("w") as file:
                    done = subprocess.run([*enter, *started], env=env, stdout=file, stderr=file, check=False)
                assert done.returncode == 0, log.read_text()
            yield inside[0], hosts[1], {**variables, "RAY_ADDRESS": f"{head}:6379"}
        finally:
            for host in hosts:
                pids = subprocess.run(["ip", "netns", "pids", host], capture_output=True, text=True, check=True).stdout
                for pid in map(int, pids.split()):
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)


def test_a_network_that_fails_for_half_a_minute_costs_no_round(
    command: list[str], environ_for: Callable[..., dict[str, str]], data_folder: Path, tmp_path: Path
) -> None:
    with linked(tmp_path) as (enter, far, variables):
        argv = [*enter, *command, "run", *TWO, "--rounds", "6", *ON_RAY]
        with closing(Running(argv, environ_for(data_folder, **variables))) as running:
            running.wait_for(", on far")
            subprocess.run(["ip", "-n", far, "link", "set", links.INTERFACE, "down"], check=True)
            others = len(running.lines)
            until(lambda: any(", on near" in line for line in running.lines[others:]), "the other node goes on")
            time.sleep(BROKEN_S)
            during = len(running.lines)
            subprocess.run(["ip", "-n", far, "link", "set", links.INTERFACE, "up"], check=True)
            code, _ = running.end()
    assert code == 0, running.stderr
    assert not any(", on far" in line for line in running.lines[others + 1 : during])
    assert "was given up" not in running.stderr
    run = only_run(data_folder)
    assert all(note["kept"] for note in record.read_rounds(run)[0])
    assert kept_nodes(run) == {"near", "far"}
    assert len(counted(run)) == 12
