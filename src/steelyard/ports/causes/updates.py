"""Optimizers: which rule, with which constants, makes the updates of one tensor from the gradients that it was given.

Learning rates, and weight decay apart from the gradient, are fitted in each step; everything else is tried.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.ports.causes import Cause, Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from steelyard.ports.given_inputs import Array

MOST_VALUES = 1024
"""So many values of a tensor are looked at."""
DIGITS, FEW_DIGITS, EXACT = 4, 3, 1e-5
"""Significant digits of constants that are fitted, and fewer of them where updates are not known to `EXACT`."""
NONE, COUPLED, APART = "no weight decay", "added to the gradient", "apart from the gradient"
CANONICAL, HAT, UNCORRECTED, INSIDE = (
    "epsilon after the bias correction",
    "epsilon before the bias correction",
    "no bias correction",
    "epsilon inside the root",
)
EPSILONS, DECAYS = (1e-8, 1e-7, 1e-6, 1e-5, 1e-3), (1e-4, 5e-4, 1e-3, 1e-2, 0.1, 1e-5)
BETA2 = (0.999, 0.99, 0.95, 0.98)
CLIPS = (1.0, 0.5, 5.0, 0.1, 10.0)
COLLAPSED = 1e-9


@dataclass(frozen=True)
class Updates:
    """One tensor in all steps.

    start: its weights. gradients: those that the optimizer was given. left, right: the weights after each step.
    norms: of all gradients together in each step. left_settings, right_settings: constants that the optimizers declare.
    """

    start: Array
    gradients: Sequence[Array]
    left: Sequence[Array]
    right: Sequence[Array]
    norms: Sequence[float]
    left_settings: Mapping[str, Sequence[Any]]
    right_settings: Mapping[str, Sequence[Any]]

    def few(self) -> Updates:
        """Return the first values of the tensor, flat, as float64."""

        def cut(array: Array) -> Array:
            return np.asarray(array, np.float64).reshape(-1)[:MOST_VALUES]

        return replace(
            self,
            start=cut(self.start),
            gradients=[cut(each) for each in self.gradients],
            left=[cut(each) for each in self.left],
            right=[cut(each) for each in self.right],
        )


def explain(updates: Updates, rounding: float, known: Sequence[Cause] = ()) -> Cause | None:
    """Return the rules of both sides that have the fewest differing constants; None unless both sides are reproduced.

    `rounding`: the relative distance of a step below which a rule reproduces it. `known`: causes of other tensors, which are
    tried first, because an optimizer has one rule for many.
    """
    few = updates.few()
    for cause in known:
        sides = (cause.left, few.left), (cause.right, few.right)
        if all(_fitted(few, settings, weights, rounding) == [settings] for settings, weights in sides):
            return cause
    lefts, rights = list[Settings](), list[Settings]()
    for settings in _rules(few):
        lefts += _fitted(few, settings, few.left, rounding)
        rights += _fitted(few, settings, few.right, rounding)
    pairs = [(_unlike(one, other), place, one, other) for one in lefts for place, other in enumerate(rights)]
    if not pairs:
        return None
    names, _, one, other = min(pairs, key=lambda pair: (len(pair[0]), pair[1]))
    if not names:
        return None
    said = [", ".join(dict.fromkeys(_words(name, each) for name in names)) for each in (one, other)]
    return Cause("optimizer", one, other, names, *said)


def _unlike(one: Settings, other: Settings) -> tuple[str, ...]:
    """Return the settings that differ; those that only one rule has count as part of the rule."""
    if one["rule"] != other["rule"]:
        return ("rule", *(name for name in ("learning rate", "decay") if one.get(name) != other.get(name)))
    return tuple(name for name in one if one[name] != other[name])


def _declared(updates: Updates, name: str) -> list[Any]:
    return [each for side in (updates.left_settings, updates.right_settings) for each in side.get(name, ())]


def _distinct(values: Sequence[Any]) -> list[Any]:
    return list(dict.fromkeys(values))


def _rules(updates: Updates) -> Iterator[Settings]:
    """Yield all rules that are tried, the usual ones first."""
    decays = [each for each in _distinct([*_declared(updates, "weight decay"), *DECAYS]) if each]
    kinds = [(NONE, 0.0), (APART, 0.0), *((COUPLED, each) for each in decays)]
    clips = [None, *(each for each in CLIPS if max(updates.norms) > each)]
    momenta = _distinct([*_declared(updates, "momentum"), 0.0, 0.9])
    for momentum, nesterov, damped, (decay, amount), clip in itertools.product(
        momenta, (False, True), (False, True), kinds, clips
    ):
        if momentum or not (nesterov or damped):
            yield {
                "rule": "SGD",
                "momentum": momentum,
                "nesterov": nesterov,
                "damped": damped,
                "decay": decay,
                "amount": amount,
                "clip": clip,
            }
    first = _distinct([*_declared(updates, "beta1"), 0.9])
    second = _distinct([*_declared(updates, "beta2"), *BETA2])
    epsilons = _distinct([*_declared(updates, "epsilon"), *EPSILONS])
    for beta1, beta2, epsilon, form, (decay, amount), clip in itertools.product(
        first, second, epsilons, (CANONICAL, HAT, UNCORRECTED, INSIDE), kinds, clips
    ):
        yield {
            "rule": "Adam",
            "beta1": beta1,
            "beta2": beta2,
            "epsilon": epsilon,
            "form": form,
            "decay": decay,
            "amount": amount,
            "clip": clip,
        }


def _fitted(updates: Updates, settings: Settings, weights: Sequence[Array], rounding: float) -> list[Settings]:
    """Return the rule with its learning rates if it makes these weights; at most one."""
    before = [updates.start, *weights[:-1]]
    rates, decays = [], []
    for old, new, direction in zip(before, weights, _directions(updates, settings, before), strict=True):
        change = old - new
        columns = [direction, old] if settings["decay"] == APART else [direction]
        matrix = np.stack(columns, 1)
        found, *_ = np.linalg.lstsq(matrix, change, rcond=None)
        if float(np.linalg.norm(matrix @ found - change)) > rounding * float(np.linalg.norm(change)):
            return []
        rates.append(float(found[0]))
        decays.append(float(found[1]) if len(found) > 1 else 0.0)
    if not any(rates):
        return []
    digits = DIGITS if rounding <= EXACT else FEW_DIGITS
    amount = settings["amount"]
    if settings["decay"] == APART:
        stepped = [number for number, rate in enumerate(rates) if rate]
        largest = max(stepped, key=lambda number: float(np.linalg.norm(before[number])))
        share = decays[largest] / rates[largest]
        if abs(share) < COLLAPSED:
            return []
        amount = _rounded(share, digits)
    return [{**settings, "amount": amount, "learning rate": _as_one([_rounded(each, digits) for each in rates])}]


def _directions(updates: Updates, settings: Settings, before: Sequence[Array]) -> Iterator[Array]:
    """Yield what the learning rate multiplies in each step."""
    first, second = np.zeros_like(updates.start), np.zeros_like(updates.start)
    for number, (given, old, norm) in enumerate(zip(updates.gradients, before, updates.norms, strict=True), 1):
        g = given if settings["clip"] is None else given * min(1.0, settings["clip"] / norm)
        g = g + settings["amount"] * old if settings["decay"] == COUPLED else g
        if settings["rule"] == "SGD":
            momentum = settings["momentum"]
            first = momentum * first + (1 - momentum if settings["damped"] and number > 1 else 1) * g
            yield g + momentum * first if settings["nesterov"] else first
            continue
        beta1, beta2, epsilon = settings["beta1"], settings["beta2"], settings["epsilon"]
        first, second = beta1 * first + (1 - beta1) * g, beta2 * second + (1 - beta2) * g * g
        mean, square = 1 - beta1**number, 1 - beta2**number
        if settings["form"] == CANONICAL:
            yield (first / mean) / (np.sqrt(second / square) + epsilon)
        elif settings["form"] == HAT:
            yield first * np.sqrt(square) / mean / (np.sqrt(second) + epsilon)
        elif settings["form"] == INSIDE:
            yield (first / mean) / np.sqrt(second / square + epsilon)
        else:
            yield first / (np.sqrt(second) + epsilon)


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits - 1}e}")


def _as_one(values: list[float]) -> float | tuple[float, ...]:
    return values[0] if len(set(values)) == 1 else tuple(values)


def _words(name: str, settings: Settings) -> str:
    value = settings.get(name)
    if name == "learning rate":
        return (
            f"learning rates {', '.join(f'{each:g}' for each in value)}"
            if isinstance(value, tuple)
            else f"learning rate {value:g}"
        )
    if name in ("decay", "amount"):
        return NONE if settings["decay"] == NONE else f"a weight decay of {settings['amount']:g} {settings['decay']}"
    if name == "clip":
        return "gradients not clipped" if value is None else f"gradients clipped to a norm of {value:g}"
    if name in ("rule", "form"):
        return str(value)
    if name == "nesterov":
        return "Nesterov's momentum" if value else "plain momentum"
    if name == "damped":
        return "gradients damped from the second step on" if value else "gradients not damped"
    return f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
