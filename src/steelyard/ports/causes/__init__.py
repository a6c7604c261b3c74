"""What is known to differ between frameworks, as functions that compute it.

A cause is stated only if it reproduces one side and not the other.

A family belongs to a kind of module. It has settings, each with its known values, and one function in float64 NumPy. What
reproduces the left side and what reproduces the right side are compared: the settings in which they differ are the cause.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from steelyard.ports.alignment import distance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from steelyard.ports.given_inputs import Array

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
    `samples`: so many of the batch are enough to tell settings apart, because samples are computed by themselves; 0: all.
    """

    name: str
    compute: Callable[[Place, Settings], Array | None]
    values: Callable[[Place], Mapping[str, Sequence[Any]]]
    words: Callable[[str, Any], str] = lambda name, value: f"{name} {value}"
    samples: int = 0


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
    place = _few(place, family.samples) if family.samples else place
    lefts, rights = list[Settings](), list[Settings]()
    for alike in _levels(family, place):
        for settings in alike:
            computed = family.compute(place, settings)
            if computed is None:
                continue
            is_left, is_right = (_is_same(computed, side, rounding) for side in (place.left, place.right))
            if is_left and not is_right:
                lefts.append(settings)
            elif is_right and not is_left:
                rights.append(settings)
        if lefts and rights:
            break
    pairs = [(len(_differing(one, other)), one, other) for one in lefts for other in rights]
    if not pairs:
        return None
    _, one, other = min(pairs, key=lambda pair: pair[0])
    one = _as_like(other, one, lambda settings: _reproduces(family, place, settings, place.left, rounding))
    other = _as_like(one, other, lambda settings: _reproduces(family, place, settings, place.right, rounding))
    names = _differing(one, other)
    said = [", ".join(family.words(name, each[name]) for name in names) for each in (one, other)]
    return Cause(family.name, one, other, names, *said)


def _as_like(one: Settings, other: Settings, reproduces: Callable[[Settings], bool]) -> Settings:
    """Return settings that reproduce the same as the other ones, with as many of the first ones' values as possible."""
    for name in _differing(one, other):
        if len(_differing(one, other)) > 1 and reproduces(closer := other | {name: one[name]}):
            other = closer
    return other


def _reproduces(family: Family, place: Place, settings: Settings, side: Array, rounding: float) -> bool:
    computed = family.compute(place, settings)
    return computed is not None and _is_same(computed, side, rounding)


def _is_same(computed: Array, side: Array, rounding: float) -> bool:
    return computed.shape == side.shape and distance(computed, side) <= rounding


def _differing(one: Settings, other: Settings) -> tuple[str, ...]:
    return tuple(name for name in one if one[name] != other[name])


def _few(place: Place, samples: int) -> Place:
    inputs = {name: array[:samples] for name, array in place.inputs.items()}
    return replace(place, inputs=inputs, left=place.left[:samples], right=place.right[:samples])


def _levels(family: Family, place: Place) -> Iterator[list[Settings]]:
    """Yield all combinations, `MOST` at most, by how many of their values are unusual: first those of usual values only."""
    known = {name: list(dict.fromkeys(values)) for name, values in family.values(place).items()}
    every = itertools.product(*(range(len(values)) for values in known.values()))
    ordered = sorted(every, key=lambda numbers: (sum(number > 0 for number in numbers), numbers))[:MOST]
    for _, alike in itertools.groupby(ordered, key=lambda numbers: sum(number > 0 for number in numbers)):
        yield [
            {name: values[number] for (name, values), number in zip(known.items(), numbers, strict=True)}
            for numbers in alike
        ]
