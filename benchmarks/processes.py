"""What makes identical processes differ: the scatter between processes of one framework under several conditions.

Run as `python -m benchmarks.processes [FRAMEWORK] [--rounds N]`. In each round, one new process of every condition is warmed up.
Then all of them train in turns of a quarter of a second, in random order, so that the machine's drift is the same for all. What
remains of the logarithms after the means of rounds and conditions are taken out is the scatter of processes, and of turns.
Two conditions keep their process for all rounds: `kept` shows what turns alone scatter, `rebuilt` builds its trainer anew.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.implementations import inputs_for, plan_for
from steelyard import environments
from steelyard.catalog.frameworks import WORKER
from steelyard.measure.jobs import certifying
from steelyard.statistics.intervals import student_quantile

GROUP = "resnet18:digits"
TURNS, TURN_S, WARM_S = 8, 0.25, 0.7


@dataclass(frozen=True)
class Condition:
    """How a process is started."""

    name: str
    what: str
    environ: dict[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    pin: bool = False
    kept: bool = False
    rebuilt: bool = False


CONDITIONS = (
    Condition("usual", "as measured today"),
    Condition("huge", "malloc asks for huge pages", {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}),
    Condition("fixed addresses", "no randomised address layout", command=("setarch", "-R")),
    Condition("bound", "OpenMP binds its threads to cores", {"OMP_PROC_BIND": "true"}),
    Condition("pinned", "the busiest threads pinned to one core each, once warm", pin=True),
    Condition("kept", "the same process in all rounds", kept=True),
    Condition("rebuilt", "the same process in all rounds, its trainer built anew", kept=True, rebuilt=True),
)


class Process:
    """One process that trains in turns."""

    def __init__(self, python: Path, job: dict[str, Any], condition: Condition) -> None:
        inside = Path(__file__).with_name("inside_turns.py")
        self._process = subprocess.Popen(
            [*condition.command, str(python), str(inside)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environments.clean_environ(python) | condition.environ,
        )
        request = {"worker": str(WORKER), "job": job, "warm_s": WARM_S, "pin": condition.pin}
        step_ns: float = self._ask(json.dumps(request))["step_ns"]
        self.steps: int = max(1, round(TURN_S * 1e9 / step_ns))

    def turn(self, share: float = 1.0) -> float:
        """Return nanoseconds per step of one turn, or of one with a share of its steps."""
        steps = max(1, round(share * self.steps))
        elapsed: float = self._ask(str(steps))
        return elapsed / steps

    def rebuild(self) -> None:
        """Build the trainer anew."""
        self._ask("rebuild")

    def end(self) -> None:
        """Stop the process."""
        self._process.kill()
        self._process.communicate()

    def _ask(self, line: str) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        reply = self._process.stdout.readline()
        if not reply:
            raise SystemExit("A process ended early. Is the framework's environment complete?")
        return json.loads(reply)


def measured(framework: str, rounds: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return logarithms of nanoseconds per step, shape (rounds, conditions, turns)."""
    plan = plan_for(framework, GROUP)
    (variant,) = plan.variants
    job = asdict(certifying(plan, variant, inputs_for(plan), Path(os.devnull)))
    name = environments.EnvironmentName.parse(framework)
    (created,) = environments.ensure_all(environments.plan_environments([name], "cpu")).values()
    if isinstance(created, environments.Failure):
        raise SystemExit(created.sentence)
    kept: dict[str, Process] = {}
    draw, values = random.Random(1), np.zeros((rounds, len(CONDITIONS), TURNS))
    for number in range(rounds):
        processes: dict[int, Process] = {}
        for place in draw.sample(range(len(CONDITIONS)), len(CONDITIONS)):
            condition = CONDITIONS[place]
            processes[place] = kept.get(condition.name) or Process(created.python, job, condition)
            if condition.rebuilt and condition.name in kept:
                processes[place].rebuild()
            if condition.kept:
                kept[condition.name] = processes[place]
        for turn in range(TURNS):
            for place in draw.sample(range(len(CONDITIONS)), len(CONDITIONS)):
                values[number, place, turn] = np.log(processes[place].turn())
        for place, process in processes.items():
            if not CONDITIONS[place].kept:
                process.end()
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
    for process in kept.values():
        process.end()
    return values


def scatter(values: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the variance of a process's mean around the mean of its round and condition, by condition.

    The residual of one condition contains a part of all others, as they make up the mean of the round; the parts are solved for.
    """
    means = values.mean(2)
    left = means - means.mean(1, keepdims=True) - means.mean(0) + means.mean()
    rounds, conditions = means.shape
    observed = (left**2).sum(0) / (rounds - 1)
    mixing = np.full((conditions, conditions), 1 / conditions**2)
    np.fill_diagonal(mixing, (1 - 1 / conditions) ** 2)
    found: np.ndarray[Any, np.dtype[np.float64]] = np.linalg.solve(mixing, observed)
    return found


def main() -> None:
    """Print the scatter of each condition with an interval of its ratio to the usual one (bootstrap over rounds)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("framework", nargs="?", default="pytorch")
    parser.add_argument("--rounds", type=int, default=30)
    arguments = parser.parse_args()
    values = measured(arguments.framework, arguments.rounds)
    draw = np.random.default_rng(1)
    samples = np.array([scatter(values[draw.integers(0, len(values), len(values))]) for _ in range(2000)])
    found = np.sqrt(np.maximum(scatter(values), 0))
    of_turns = np.sqrt((values - values.mean(2, keepdims=True)).var(2, ddof=1).mean(0) / TURNS)
    speed = values.mean(2) - values.mean(2)[:, :1]
    table = Table(
        "condition", "scatter of processes", "over usual, 95 %", "of turns alone", "time per step over usual, 95 %", ""
    )
    for place, condition in enumerate(CONDITIONS):
        with np.errstate(invalid="ignore", divide="ignore"):
            low, high = np.nanpercentile(
                np.sqrt(np.maximum(samples[:, place], 0) / np.maximum(samples[:, 0], 1e-12)), (2.5, 97.5)
            )
        ratio, half = speed[:, place].mean(), speed[:, place].std(ddof=1) / sqrt(len(values))
        half *= student_quantile(0.975, len(values) - 1)
        table.add_row(
            condition.name,
            f"{100 * found[place]:.1f} %",
            f"{low:.2f} to {high:.2f}" if place else "",
            f"{100 * of_turns[place]:.1f} %",
            f"{np.exp(ratio - half):.3f} to {np.exp(ratio + half):.3f}" if place else "",
            condition.what,
        )
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
