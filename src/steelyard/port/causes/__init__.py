"""What is known to differ between frameworks, as functions that compute it.

A cause is stated only if it reproduces one side and not the other.

A family belongs to a kind of module. It has settings, each with its known values, and one function in float64 NumPy. What
reproduces the left side and what reproduces the right side are compared: the settings in which they differ are the cause.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from steelyard.port.alignment import distance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from steelyard.port.given_inputs import Array

Settings = dict[str, Any]
MOST = 4000
"""Combinations of settings that are tried for one module."""


@dataclass(frozen=True)
class Place:
    """What is known of the place where two sides part.

    inputs: what both sides receive, by name, as float64; they agree. tensors: those of the module by role, in the layout of the
    left side, in the words of `roles`. left, right: what they return, both in the layout of the left side.
    settings: the constants of both modules, in words that all frameworks share.
    """

    inputs: Mapping[str, Array]
    tensors: Mapping[str, Array]
    left: Array
    right: Array
    left_settings: Settings = field(default_factory=dict)
    right_settings: Settings = field(default_factory=dict)


@dataclass(frozen=True)
class Family:
    """One kind of computation: its function, and the values that each of its settings is known to have.

    `values(place)` gives them, the usual value first. `words` names a setting with its value, such as `epsilon 1e-06`.
    """

    name: str
    compute: Callable[[Place, Settings], Array | None]
    values: Callable[[Place], Mapping[str, Sequence[Any]]]
    words: Callable[[str, Any], str] = lambda name, value: f"{name} {value}"


@dataclass(frozen=True)
class Cause:
    """Settings that reproduce the left side and the right side. `differing`: names of those that differ."""

    family: str
    left: Settings
    right: Settings
    differing: tuple[str, ...]
    left_words: str
    right_words: str


def explain(family: Family, place: Place, rounding: float) -> Cause | None:
    """Return the cause in one family: the fewest settings that tell both sides apart; None if none reproduces both.

    `rounding`: the relative distance below which a computation reproduces a side.
    """
    lefts, rights = list[Settings](), list[Settings]()
    for settings in itertools.islice(_combinations(family, place), MOST):
        computed = family.compute(place, settings)
        if computed is None or computed.shape != place.left.shape:
            continue
        is_left = distance(computed, place.left) <= rounding
        is_right = distance(computed, place.right) <= rounding
        if is_left and not is_right:
            lefts.append(settings)
        elif is_right and not is_left:
            rights.append(settings)
    pairs = [(len(_differing(one, other)), one, other) for one in lefts for other in rights]
    if not pairs:
        return None
    _, one, other = min(pairs, key=lambda pair: pair[0])
    names = _differing(one, other)
    said = [", ".join(family.words(name, each[name]) for name in names) for each in (one, other)]
    return Cause(family.name, one, other, names, *said)


def _differing(one: Settings, other: Settings) -> tuple[str, ...]:
    return tuple(name for name in one if one[name] != other[name])


def _combinations(family: Family, place: Place) -> Iterator[Settings]:
    """Yield combinations, those with the fewest unusual values first."""
    known = {name: list(dict.fromkeys(values)) for name, values in family.values(place).items()}
    every = itertools.product(*(range(len(values)) for values in known.values()))
    for numbers in sorted(every, key=lambda numbers: (sum(number > 0 for number in numbers), numbers)):
        yield {name: values[number] for (name, values), number in zip(known.items(), numbers, strict=True)}
