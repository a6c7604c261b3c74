"""The energy of a step, of a sample and of an epoch, by the meters of the machine. Nothing is estimated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steelyard.analysis.model import location_of
from steelyard.results import utilisation
from steelyard.results.quantities import ENERGY

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.analysis.model import Comparison, Contender
    from steelyard.statistics.intervals import Location


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
        known = [found for contender in comparison.contenders if (found := _of(comparison, contender, source))]
        if known:
            return source, sorted(known, key=lambda each: each.per_step.value_ns)
    return "", []


def _of(comparison: Comparison, contender: Contender, source: str) -> Energy | None:
    speed, found = contender.speeds.get(source), location_of(ENERGY, contender.trials, source)
    if speed is None or found is None:
        return None
    joules, steps = found.value_ns, contender.steps_per_epoch
    names = {name for trial in contender.trials for name in utilisation.joules_per_step(trial, source)}
    return Energy(
        contender,
        found,
        joules / comparison.batch,
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
