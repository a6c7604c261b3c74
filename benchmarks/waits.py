"""Whether a wait changes how fast a framework is: blocks that follow a wait, beside those that follow the block before at once.

Each framework trains in blocks. Before every other one it waits, stopped, while another program uses all cores and caches. One
ratio has too few pairs to see half a percent, so they are pooled: over steps before which the caches are filled again by an
uncounted step, and over longer ones, which have none.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import psutil

from benchmarks.implementations import BenchmarkError, inputs_for, row, standard_error
from benchmarks.installed import interpreters
from benchmarks.rows import Row
from steelyard.measure.jobs import measuring
from steelyard.measure.launch import Guard, launch
from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard_worker.measure import FILLS_CACHES_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.results.trials import Trial


@dataclass(frozen=True)
class Network:
    """What is trained, and the steps of a process, which take about ten seconds. `batch`: 0 for the preset's."""

    group: str
    steps: int
    batch: int = 0

    @property
    def title(self) -> str:
        """The name in a row."""
        return f"{self.group}, batch {self.batch}" if self.batch else self.group


@dataclass(frozen=True)
class Waited:
    """Ratios of a block after a wait to those beside it, of one framework and network. `step_s`: the median step."""

    title: str
    ratios: list[float]
    step_s: float = 0.0
    steps: int = 0


@dataclass(frozen=True)
class Pooled:
    """The mean of several ratios, weighted by their errors, with its standard error; NaN without any."""

    ratio: float
    error: float
    count: int = field(default=0)


# The last one has steps of more than a quarter of a second on two cores.
NETWORKS = (
    Network("lstm-imdb:reviews", 600),
    Network("resnet18:digits", 250),
    Network("resnet18:digits", 40, batch=512),
)
WAIT_S, LIMIT_S = 0.5, 300.0
OCCUPIED = "import numpy\nvalues = numpy.ones((1500, 1500), 'f4')\nwhile True: values @ values"
START_S = 2.0  # of this program
MOST_SLOWER = 1.02
MOST_SHIFT = 0.02
"""The pooled shift is known to be 1.3 %; more would be another effect."""
MOST_ERROR = 0.0025
"""Half a percent is then two standard errors."""
# A standard error of each ratio with which five of them pool to that of MOST_ERROR; reached with so many processes, or not.
PRECISE, LEAST_PAIRS, MOST_PROCESSES = 0.005, 12, 16


def measure(names: list[str] | None = None) -> list[Row]:
    """Return one row for each framework and network, and two for each kind of steps together."""
    found = [_waited(name, python, network) for network in NETWORKS for name, python in interpreters(names)]
    return [*map(_row, found), *together(found)]


def together(found: Sequence[Waited]) -> list[Row]:
    """Return the pooled shift and its standard error: of steps with an uncounted step before a block, and of longer ones."""
    short = [each for each in found if each.step_s <= FILLS_CACHES_S]
    long = [each for each in found if each.step_s > FILLS_CACHES_S]
    rows = []
    for which, some in ((f"up to {FILLS_CACHES_S} s", short), (f"above {FILLS_CACHES_S} s", long)):
        mean = pooled([(_middle(each.ratios), standard_error(each.ratios)) for each in some])
        how = f"{mean.ratio:.4f} with a standard error of {mean.error:.4f}, {mean.count} ratios"
        rows += [
            Row(f"shift by waiting, steps {which}, pooled (share)", abs(mean.ratio - 1), MOST_SHIFT, "at most", how),
            Row(f"standard error of it, steps {which} (share)", mean.error, MOST_ERROR, "at most", "sees 0.5 % if met"),
        ]
    return rows


def pooled(found: Sequence[tuple[float, float]]) -> Pooled:
    """Return the mean of ratios with their relative standard errors, on the logarithmic scale."""
    if not found:
        return Pooled(math.nan, math.nan)
    weights = [1 / error**2 for _, error in found]
    mean = sum(weight * math.log(ratio) for weight, (ratio, _) in zip(weights, found, strict=True)) / sum(weights)
    return Pooled(math.exp(mean), math.sqrt(1 / sum(weights)), len(found))


def pairs(times: Sequence[float]) -> list[float]:
    """Return each block after a wait over the two beside it, so that a steady drift cancels; every other block follows a wait."""
    return [times[place] / math.sqrt(times[place - 1] * times[place + 1]) for place in range(2, len(times) - 1, 2)]


def _middle(ratios: Sequence[float]) -> float:
    return math.exp(median(map(math.log, ratios)))


def _row(found: Waited) -> Row:
    facts = {"ratios": found.ratios, "step_ms": found.step_s * 1000, "steps": found.steps}
    return row(f"step after waiting / without, {found.title}", facts, MOST_SLOWER, "at most")


def _waited(name: str, python: Path, network: Network) -> Waited:
    """Train in as many processes as it takes to be precise."""
    ratios: list[float] = []
    for _ in range(MOST_PROCESSES):
        trial = _waiting(name, python, network)
        blocks = [block for block in trial.blocks if block.phase == "counted"]
        times = [block.elapsed_ns / block.steps for block in blocks]
        ratios += pairs(times)
        if len(ratios) >= LEAST_PAIRS and standard_error(ratios) <= PRECISE:
            break
    return Waited(f"{name}, {network.title}", ratios, median(times) / 1e9, blocks[0].steps)


def _waiting(name: str, python: Path, network: Network) -> Trial:
    """Train in one process. Every other block follows a wait."""
    batches = (network.batch,) if network.batch else ()
    options = Options(workloads=(network.group,), frameworks=(name,), batches=batches, protocol="sequential:pipeline")
    plan = resolve.plan(options)
    (variant,) = plan.variants
    pid, waits = 0, 0
    other = subprocess.Popen([sys.executable, "-c", OCCUPIED])

    def watch(event: dict[str, Any]) -> None:
        nonlocal pid, waits
        if event["event"] == "hello":
            pid = event["pid"]
        if event["event"] == "waits":
            while psutil.Process(pid).status() != psutil.STATUS_STOPPED:
                time.sleep(0.001)
            waits += 1
            if waits % 2:  # it is stopped afterwards, as contenders are: threads may wait busily
                other.send_signal(signal.SIGCONT)
                time.sleep(WAIT_S)
                other.send_signal(signal.SIGSTOP)
            os.killpg(os.getpgid(pid), signal.SIGCONT)

    time.sleep(START_S)
    other.send_signal(signal.SIGSTOP)
    try:
        with TemporaryDirectory() as folder:
            job = measuring(plan, variant, inputs_for(plan), 2, 0, Path(folder, "trial"), turns=True)
            job = replace(job, schedule=replace(job.schedule, counted_min=network.steps, counted_max=network.steps))
            trial = launch(job, python, watch, Guard(LIMIT_S))
    finally:
        other.kill()
        other.wait()
    if trial.error:
        raise BenchmarkError(f"{variant.key} failed: {trial.error[1]}")
    return trial
