"""What a step, a sample, an epoch and a training cost at a price: a multiple of the time that was measured, or of the energy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steelyard.analysis.energy import energy, samples_per_step, why_none
from steelyard.analysis.model import location_of
from steelyard.results.quantities import EPOCH, PROCESS, TOTAL_TIME
from steelyard.statistics.intervals import Location
from steelyard.wording.task_words import fill

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.analysis.model import Comparison, Contender
    from steelyard.results.quantities import Quantity
    from steelyard.wording.prices import Price

INPUTS = ("pipeline", "cached")
OF_TIME = "A cost is the time times the price, so its verdicts are those of the time per {step}."
OF_ENERGY = (
    "A cost is the energy times the price, so its verdicts are those of the energy, by the meters of the machine."
)


@dataclass(frozen=True)
class Cost:
    """What one contender costs on one input, in the currency of the price, with the intervals of the time, or of the energy.

    `per_epoch`: of the counted epochs; `training`: of all `epochs` that a process trains, without evaluations. They are None
    where no whole epochs were trained, and `training` where the price is for energy: only counted steps are metered.
    """

    contender: Contender
    per_step: Location
    per_sample: Location
    per_epoch: Location | None
    training: Location | None
    epochs: int


def costs(comparison: Comparison) -> tuple[str, list[Cost]]:
    """Return the input and the cost of each contender, the least first; empty without a price, or without what it is for."""
    price = comparison.price
    if price is None:
        return "", []
    source, found = _of_energy(comparison, price) if price.of_energy else _of_time(comparison, price)
    return source, sorted(found, key=lambda cost: cost.per_step.value_ns)


def basis(comparison: Comparison) -> str:
    """Return what a cost is computed from, or why there is none."""
    price = comparison.price
    if price and price.of_energy and not costs(comparison)[1]:
        return f"This price needs the energy. {why_none(comparison)}"
    return OF_ENERGY if price and price.of_energy else fill(OF_TIME, comparison.task)


def _of_time(comparison: Comparison, price: Price) -> tuple[str, list[Cost]]:
    for source in (comparison.primary, *INPUTS):
        found = [_timed(each, source, price) for each in comparison.contenders if source in each.speeds]
        if found:
            return source, found
    return "", []


def _timed(contender: Contender, source: str, price: Price) -> Cost:
    speed = contender.speeds[source]

    def at_price(quantity: Quantity) -> Location | None:
        time = location_of(quantity, contender.trials, PROCESS)
        return _times(time, price.per_unit) if time else None

    per_step = _times(speed.location, price.per_unit)
    return Cost(
        contender,
        per_step,
        _times(per_step, 1 / samples_per_step(speed)),
        at_price(EPOCH),
        at_price(TOTAL_TIME),
        max((len(trial.epochs) for trial in contender.trials), default=0),
    )


def _of_energy(comparison: Comparison, price: Price) -> tuple[str, list[Cost]]:
    source, known = energy(comparison)
    found = []
    for one in known:
        contender, per_step = one.contender, _times(one.per_step, price.per_unit)
        per_sample = _times(per_step, 1 / samples_per_step(contender.speeds[source]))
        steps = contender.steps_per_epoch
        found.append(Cost(contender, per_step, per_sample, _times(per_step, steps) if steps else None, None, 0))
    return source, found


def _times(location: Location, factor: float) -> Location:
    """Return a mean multiplied by a constant that is known exactly."""
    value, low, high = (factor * each for each in (location.value_ns, location.low_ns, location.high_ns))
    return Location(value, low, high, location.processes)


def price_as_dict(price: Price) -> dict[str, Any]:
    """Return a price for scripts."""
    return {"amount": price.amount, "currency": price.currency, "per": price.per, "text": str(price)}


def as_dict(comparison: Comparison, name: Callable[[Contender], str]) -> list[dict[str, Any]]:
    """Return the figures for scripts, in the currency of the price; `name` is that of a contender of this comparison."""
    source, known = costs(comparison)
    return [
        {
            "case": name(cost.contender),
            "input": source,
            "per_step": _ends(cost.per_step),
            "per_sample": _ends(cost.per_sample),
            "per_epoch": _ends(cost.per_epoch),
            "training": _ends(cost.training),
            "epochs": cost.epochs or None,
        }
        for cost in known
    ]


def _ends(location: Location | None) -> dict[str, float] | None:
    return {"value": location.value_ns, "low": location.low_ns, "high": location.high_ns} if location else None
