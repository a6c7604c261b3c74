"""The energy of a step, of a sample and of an epoch, by the meters of the machine. Nothing is estimated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steelyard.analysis.model import location_of
from steelyard.results import utilisation
from steelyard.results.quantities import ENERGY
from steelyard.statistics.sentences import listed

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.analysis.model import Comparison, Contender, Speed
    from steelyard.statistics.intervals import Location


NO_METER = (
    "No meter of energy could be read where this was measured, and nothing is estimated: RAPL, the meter of processors, can be "
    "read after `sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj`, NVML counts NVIDIA GPUs, and most virtual machines "
    "have neither."
)
NOT_RECORDED = "This was measured before steelyard recorded energy: measure it again on a machine with a meter."
TOO_SHORT = (
    "The counted time of a process is too short for {meters}: processors (RAPL) need "
    f"{utilisation.SHORTEST_S:g} s, GPUs (NVML) {utilisation.SHORTEST_GPU_S:g} s, as with `--protocol fixed:10+2000`."
)


@dataclass(frozen=True)
class Energy:
    """The energy of one contender on one input, joules per step with the interval over processes.

    `per_sample`: joules; `per_epoch`: joules, None where no whole epochs were trained. `watts`: mean power. `meters`: their
    names.
    """

    contender: Contender
    per_step: Location
    per_sample: float
    per_epoch: float | None
    watts: float
    meters: tuple[str, ...]


def energy(comparison: Comparison) -> tuple[str, list[Energy]]:
    """Return the input and the energy of each contender that a meter counted long enough, the least first; empty without any."""
    for source in (comparison.primary, "pipeline", "cached"):
        known = [found for contender in comparison.contenders if (found := _of(contender, source))]
        if known:
            return source, sorted(known, key=lambda each: each.per_step.value_ns)
    return "", []


def why_none(comparison: Comparison) -> str:
    """Return why no energy is known of a comparison of which `energy` returns none, and which meter would be needed."""
    recorded = [utilisation.meters(trial) for contender in comparison.contenders for trial in contender.trials]
    known = [names for names in recorded if names is not None]
    if not known:
        return NOT_RECORDED
    meters = sorted(set().union(*known))
    return TOO_SHORT.format(meters=listed(meters)) if meters else NO_METER


def samples_per_step(speed: Speed) -> float:
    """Return the batch of the processes that were timed; a search for the largest batch has another for each contender."""
    return speed.throughput * speed.location.value_ns / 1e9


def _of(contender: Contender, source: str) -> Energy | None:
    speed, found = contender.speeds.get(source), location_of(ENERGY, contender.trials, source)
    if speed is None or found is None:
        return None
    joules, steps = found.value_ns, contender.steps_per_epoch
    names = {name for trial in contender.trials for name in utilisation.joules_per_step(trial, source)}
    return Energy(
        contender,
        found,
        joules / samples_per_step(speed),
        joules * steps if steps else None,
        joules / (speed.location.value_ns / 1e9),
        tuple(sorted(names)),
    )


def as_dict(comparison: Comparison, name: Callable[[Contender], str]) -> list[dict[str, Any]]:
    """Return the figures for scripts; `name` is that of a contender of this comparison."""
    source, known = energy(comparison)
    return [
        {
            "case": name(each.contender),
            "input": source,
            "joules_per_step": each.per_step.value_ns,
            "low": each.per_step.low_ns,
            "high": each.per_step.high_ns,
            "joules_per_sample": each.per_sample,
            "joules_per_epoch": each.per_epoch,
            "watts": each.watts,
            "meters": list(each.meters),
        }
        for each in known
    ]
