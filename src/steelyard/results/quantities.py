"""The quantities that can be compared: unit, direction, and how each is read from a trial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.errors import UserError, nearest
from steelyard.statistics.sentences import TIME_PER_STEP, Wording

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from steelyard.results.trials import Trial


@dataclass(frozen=True)
class Quantity:
    """A positive number per trial and input.

    `read(trial, input)` returns None where the trial has no such value. `wording` has the words of a verdict, `improved` and
    `worsened` those of a change.
    """

    name: str
    unit: str
    read: Callable[[Trial, str], float | None]
    more_is_better: bool = False
    wording: Wording = TIME_PER_STEP
    improved: str = "faster"
    worsened: str = "slower"

    def of_rounds(self, trials: Mapping[int, Trial], source: str) -> dict[int, float]:
        """Return {round: value}, without the rounds that have none."""
        values = {number: self.read(trial, source) for number, trial in trials.items()}
        return {number: value for number, value in values.items() if value}

    def cost(self, value: float) -> float:
        """Return a number that is better when smaller: the value itself, or its inverse."""
        return 1 / value if self.more_is_better else value


def _throughput(trial: Trial, source: str) -> float | None:
    location = trial.location_ns(source)
    return trial.job.case.batch * 1e9 / location if location else None


def _peak_memory(trial: Trial, source: str) -> float | None:  # noqa: ARG001 - one signature for all
    return trial.peak_device_bytes or trial.peak_resident_bytes


LESS_MEMORY = Wording(
    better="{a} uses {factor} less memory than {b}",
    ahead="{who} used less memory on average",
    ahead_of_all="{who} used the least memory on average",
    best="{who} uses the least memory",
    best_together="{who} use the least memory, practically the same",
)

STEP_TIME = Quantity("step time", "ns", lambda trial, source: trial.location_ns(source))
THROUGHPUT = Quantity("throughput", "samples/s", _throughput, more_is_better=True, improved="higher", worsened="lower")
FIRST_STEP = Quantity("first step", "ns", lambda trial, _: trial.phases_ns.get("first-step"))
TIME_TO_FIRST_STEP = Quantity("time to first step", "ns", lambda trial, _: trial.first_step_since_spawn_ns)
PEAK_MEMORY = Quantity("peak memory", "bytes", _peak_memory, wording=LESS_MEMORY, improved="less", worsened="more")

QUANTITIES = {each.name: each for each in (STEP_TIME, THROUGHPUT, FIRST_STEP, TIME_TO_FIRST_STEP, PEAK_MEMORY)}


def quantity(name: str) -> Quantity:
    """Return a quantity by name; UserError suggests the nearest."""
    if name not in QUANTITIES:
        raise UserError(f"There is no quantity '{name}'.{nearest(name, list(QUANTITIES))}")
    return QUANTITIES[name]
