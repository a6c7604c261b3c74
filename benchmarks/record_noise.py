"""Record the noise of this machine: the times of identical contenders in twelve rounds, for the simulations of `decisions`.

Run as `python -m benchmarks.record_noise STATE [--busy]`. The processes are new and warmed up, and are timed one after the other,
with the framework's own input pipeline. STATE says in a few words what else the machine does. With `--busy`, another program
computes on one core in bursts meanwhile. The recording is added to recorded_noise.json, or replaces the one with the same machine
and state.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks import noises
from benchmarks.implementations import inputs_for
from benchmarks.installed import interpreters
from steelyard.host import machine
from steelyard.measure.jobs import measuring
from steelyard.measure.launch import Guard, launch
from steelyard.plan import resolve
from steelyard.plan.options import Options

if TYPE_CHECKING:
    from collections.abc import Iterator

CONTENDERS = 3
FRAMEWORK, GROUP = "pytorch", "resnet18:digits"
LIMIT_S = 120.0
# Bursts of a second with pauses of two, on average; both last as long as chance has it.
BURSTS = """
import random, time
while True:
    end = time.monotonic() + random.expovariate(1)
    while time.monotonic() < end:
        sum(range(10_000))
    time.sleep(random.expovariate(0.5))
"""


def recorded() -> list[list[float]]:
    """Return the milliseconds per step of each contender in each round."""
    ((_, python),) = interpreters([FRAMEWORK])
    plan = resolve.plan(Options(workloads=(GROUP,), frameworks=(FRAMEWORK,), protocol="sequential:pipeline"))
    (variant,) = plan.variants
    inputs, draw = inputs_for(plan), Random(1)
    rounds = []
    for number in range(1, noises.ROUNDS + 1):
        times = [0.0] * CONTENDERS
        for contender in draw.sample(range(CONTENDERS), CONTENDERS):
            with TemporaryDirectory() as folder:
                # Of a second round, because only the first is evaluated.
                job = measuring(plan, variant, inputs, 2, contender, Path(folder, "trial"))
                trial = launch(job, python, lambda _: None, Guard(LIMIT_S))
            if trial.error:
                raise SystemExit(f"A process failed: {trial.error[1]}")
            counted = [block for block in trial.blocks if block.phase == "counted"]
            times[contender] = sum(block.elapsed_ns for block in counted) / sum(block.steps for block in counted) / 1e6
        rounds.append([round(each, 3) for each in times])
        print(f"round {number} of {noises.ROUNDS}: {rounds[-1]} ms per step", file=sys.stderr)
    return rounds


@contextmanager
def bursts(wanted: bool) -> Iterator[None]:
    """Let another program compute on one core in bursts, if wanted."""
    other = subprocess.Popen([sys.executable, "-c", BURSTS]) if wanted else None
    try:
        yield
    finally:
        if other:
            other.kill()
            other.wait()


def main() -> None:
    """Record, and store the recording."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("state", metavar="STATE", help="what else this machine does, such as 'nothing else runs'")
    parser.add_argument("--busy", action="store_true", help="let another program compute in bursts")
    arguments = parser.parse_args()
    with bursts(arguments.busy):
        rounds = recorded()
    here = machine.describe()
    facts = {
        "machine": f"{here.cpu_model}, {here.cores_usable} cores",
        "state": arguments.state,
        "contender": f"{FRAMEWORK}, {GROUP}, its own input pipeline",
        "date": datetime.now(UTC).date().isoformat(),
    }
    others = [
        each
        for each in json.loads(noises.RECORDED.read_text(encoding="utf-8"))
        if (each["machine"], each["state"]) != (facts["machine"], facts["state"])
    ]
    noises.RECORDED.write_text(json.dumps([*others, {**facts, "rounds": rounds}], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
