"""The batch script runs with stand-ins for srun and scontrol, which start everything on this machine."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import psutil
import pytest
from cluster.simulated import LINE, until
from machine_limits import share_limits

from steelyard.cluster import slurm
from steelyard.results import record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LIMIT_S = 300
SCONTROL = """#!/bin/bash
[ "$1 $2 $3" = "show hostnames node[1-2]" ] && printf 'node1\\nnode2\\n'
"""
# Every node has a cache of its own. The address is a loopback address that Ray does not take for that of a single machine.
SRUN = """#!/bin/bash
echo "srun $*" >> "$STAND_INS/log"
while [ "${1:0:2}" = -- ]; do
    case $1 in --nodelist=*) node=${1#--nodelist=};; esac
    shift
done
[ "$1" = hostname ] && { echo 127.0.0.2; exit; }
export STEELYARD_CACHE=$STAND_INS/$node
exec "$@"
"""


@pytest.mark.end_to_end
def test_the_script_measures_on_all_nodes_and_leaves_nothing_running(
    tmp_path: Path, machine_limits: Path, environ_for: Callable[..., dict[str, str]]
) -> None:
    pytest.importorskip("ray", reason="Ray is not installed; it comes with the extra steelyard[cluster]")
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    stand_ins = tmp_path / "bin"
    stand_ins.mkdir()
    python = f'#!/bin/sh\nexec "{sys.executable}" -m steelyard "$@"\n'
    ray = f'#!/bin/sh\nexec "{sys.executable}" -m ray.scripts.scripts "$@"\n'
    for name, text in (("scontrol", SCONTROL), ("srun", SRUN), ("steelyard", python), ("ray", ray)):
        (stand_ins / name).write_text(text)
        (stand_ins / name).chmod(0o755)
    study = [*(word for word in LINE if word != "--plain"), "-f", "fake", "-f", "dummy", "--rounds", "2", "--no-guard"]
    script = tmp_path / "study.sbatch"
    script.write_text(slurm.script(study, 2, 90, str(tmp_path / "runs")))
    env = environ_for(
        tmp_path,
        PATH=f"{stand_ins}:{os.environ['PATH']}",
        SLURM_JOB_NODELIST="node[1-2]",
        STAND_INS=str(tmp_path),
        STEELYARD_RAY_PORT=str(port),
        PYTHONWARNINGS="",
    )
    for node in ("node1", "node2"):
        share_limits(tmp_path / node, machine_limits)
    done = subprocess.run(["bash", str(script)], env=env, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr
    (run,) = (path.parent for path in tmp_path.glob("runs/*/run.json"))
    assert record.read(run).nodes == ("node1", "node2")
    assert {note["node"] for note in record.read_rounds(run)[0]} == {"node1", "node2"}
    steps = (tmp_path / "log").read_text().splitlines()
    assert sum("ray start" in line for line in steps) == 2
    until(lambda: not _of_ray(port), "the end of Ray")


def _of_ray(port: int) -> list[str]:
    found = []
    for process in psutil.process_iter():
        try:
            words = " ".join(process.cmdline())
        except psutil.Error:
            continue
        if f":{port}" in words and "raylet" in words:
            found.append(words)
    return found


def test_the_script_asks_for_the_nodes_exclusively_and_quotes_what_it_is_given() -> None:
    text = slurm.script(["my study.toml", "--rounds", "3"], 4, 90, "/shared/my runs")
    assert "#SBATCH --nodes=4\n" in text
    assert "#SBATCH --exclusive\n" in text
    assert "#SBATCH --time=01:30:00\n" in text
    assert "steelyard run 'my study.toml' --rounds 3 --on ray" in text
    assert "RUNS='/shared/my runs'" in text
    assert not re.search("@[A-Z]+@", text)
    assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0
