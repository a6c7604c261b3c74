"""Which tensor of one side is which of the other: by their values where these tell, else by shape, order and name."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from steelyard.ports import contents, transforms
from steelyard.ports.names import likeness, parent, role
from steelyard.ports.transforms import AS_IT_IS, Transform

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from steelyard.ports.side_tensors import SideTensor

Array = np.ndarray[Any, Any]
CONTENT, ORDER, NAME, GIVEN = "content", "order", "name", "given"
"""How a pair was found: by values that no other tensor has, by values that others have too, by name alone, by the user."""
PARTS = (2, 3, 4)
# Weights of names, places, modules that have them, and whether they are trained, where values do not tell which tensors are a
# pair.
BY_NAME, BY_PLACE, BY_MODULE, BY_TRAINING = 2.0, 1.0, 4.0, 3.0
ROUNDING = 1e-6
KERNEL = "kernel"
"""The role of a dense layer's or a convolution's weight in Keras and Flax, whose axes are in another order than PyTorch's."""


@dataclass(frozen=True)
class Pair:
    """Tensors of both sides that hold the same: usually one of each.

    Several on one side are joined along `along`, or, with `is_sum`, added.
    """

    left: tuple[str, ...]
    right: tuple[str, ...]
    transform: Transform = AS_IT_IS
    found_by: str = CONTENT
    equal: bool = True
    along: int = 0
    is_sum: bool = False


@dataclass
class Mapping:
    """All pairs, and the tensors of both sides that have no partner."""

    pairs: list[Pair] = field(default_factory=list)
    only_left: list[str] = field(default_factory=list)
    only_right: list[str] = field(default_factory=list)


def find(left: Sequence[SideTensor], right: Sequence[SideTensor], given: Iterable[Pair] = ()) -> Mapping:
    """Map the tensors of two sides; `given` pairs stand, and their tensors are in no other pair."""
    search = _Search([each for each in left if not each.shares], [each for each in right if not each.shares])
    for pair in given:
        search.take(pair)
    search.by_content()
    search.parts()
    search.sums()
    search.by_name()
    search.untied([each for each in left if each.shares])
    return search.mapping()


class _Search:
    """Tensors that have no partner yet, in the order of their sides."""

    def __init__(self, left: list[SideTensor], right: list[SideTensor]) -> None:
        self._left = {each.name: each for each in left}
        self._right = {each.name: each for each in right}
        self._places = {each.name: n / max(1, len(left)) for n, each in enumerate(left)}
        self._right_places = {each.name: n / max(1, len(right)) for n, each in enumerate(right)}
        self._order = {each.name: n for n, each in enumerate(left)}
        self._pairs: list[Pair] = []

    def take(self, pair: Pair) -> None:
        """Add a pair; its tensors are no longer free."""
        self._pairs.append(pair)
        for name in pair.left:
            self._left.pop(name, None)
        for name in pair.right:
            self._right.pop(name, None)

    def mapping(self) -> Mapping:
        """Return what was found, in the order of the left side."""
        pairs = sorted(self._pairs, key=lambda pair: self._order.get(pair.left[0], 0))
        return Mapping(pairs, list(self._left), list(self._right))

    def by_content(self) -> None:
        """Pair tensors with equal values; those whose values nothing else has come first, as anchors for the others."""
        ones, others = _classes(self._left.values()), _classes(self._right.values())
        shared = [(ones[key], others[key]) for key in ones if key in others]
        for one, other in sorted(shared, key=lambda both: max(len(both[0]), len(both[1]))):
            unique = len(one) == len(other) == 1 and not one[0].is_constant
            for a, b in self._assigned(one, other):
                if a.is_constant and a.trained != b.trained:
                    continue  # a scale and a variance of a new network are both 1
                transform = transforms.find(a.values, b.values)
                if transform is not None:
                    self.take(Pair((a.name,), (b.name,), transform, CONTENT if unique else ORDER))

    def by_name(self) -> None:
        """Pair what is left by shape, place and name; the values differ."""
        ones, others = _shapes(self._left.values()), _shapes(self._right.values())
        for key in ones.keys() & others.keys():
            for a, b in self._assigned(ones[key], others[key]):
                self.take(Pair((a.name,), (b.name,), _likely(a, b), NAME, equal=False))

    def untied(self, shared: list[SideTensor]) -> None:
        """Pair what the left side shares between two modules with what the right side has twice, such as a table and a head."""
        for one in shared:
            same = [each for each in self._right.values() if sorted(each.shape) == sorted(one.shape)]
            if same:
                other = max(same, key=lambda each: likeness(one.name, each.name))
                transform = transforms.find(one.values, other.values)
                known = transform or _likely(one, other)
                self.take(Pair((one.name,), (other.name,), known, NAME, equal=transform is not None))

    def parts(self) -> None:
        """Pair a tensor with those that it consists of, such as one kernel for query, key and value."""
        self._split(self._left, self._right, whole_is_left=True)
        self._split(self._right, self._left, whole_is_left=False)

    def sums(self) -> None:
        """Pair a bias with two whose sum it is, as two LSTMs have it; a sum of constants tells nothing."""
        for one in [each for each in self._right.values() if len(each.shape) == 1 and not each.is_constant]:
            twins = [each for each in self._left.values() if math.prod(each.shape) == math.prod(one.shape)]
            for a, b in combinations(twins, 2):
                total = a.values.reshape(-1) + b.values.reshape(-1)
                if (transform := _nearly(total, one.values)) is not None:
                    self.take(Pair((a.name, b.name), (one.name,), transform, CONTENT, is_sum=True))
                    break
        self._sums_in_parts()

    def _sums_in_parts(self) -> None:
        """Pair two biases with the parts of their sum, as an LSTM has it that has one bias for each gate."""
        twins = [each for each in self._left.values() if len(each.shape) == 1]
        for a, b in combinations(twins, 2):
            if a.shape != b.shape or {a.name, b.name} - self._left.keys():
                continue
            for count in (each for each in PARTS if a.shape[0] % each == 0):
                pieces = np.split(a.values + b.values, count)
                free = [each for each in self._right.values() if each.shape == pieces[0].shape]
                near = [[each for each in free if _nearly(piece, each.values) == AS_IT_IS] for piece in pieces]
                if all(len(each) == 1 for each in near):
                    names = tuple(each[0].name for each in near)
                    self.take(Pair((a.name, b.name), names, AS_IT_IS, CONTENT, is_sum=True))
                    break

    def _split(self, wholes: dict[str, SideTensor], parts: dict[str, SideTensor], whole_is_left: bool) -> None:
        known = _classes(parts.values())
        for whole in list(wholes.values()):
            for axis, extent in enumerate(whole.shape):
                for count in PARTS:
                    if extent % count or whole.is_constant or whole.name not in wholes:
                        continue
                    found = _partners(np.split(whole.values, count, axis), known)
                    if found is None:
                        continue
                    names, transform = tuple(each.name for each in found[0]), found[1]
                    both = ((whole.name,), names) if whole_is_left else (names, (whole.name,))
                    self.take(Pair(both[0], both[1], transform, CONTENT, along=axis))

    def _assigned(self, ones: list[SideTensor], others: list[SideTensor]) -> list[tuple[SideTensor, SideTensor]]:
        """Return the pairs that fit best by name and by place among the tensors that are paired already."""
        ones = [each for each in ones if each.name in self._left]
        others = [each for each in others if each.name in self._right]
        if not ones or not others:
            return []
        if len(ones) == len(others) == 1:
            return [(ones[0], others[0])]
        known = [pair for pair in self._pairs if pair.left[0] in self._places and pair.right[0] in self._right_places]
        anchors = sorted((self._places[pair.left[0]], self._right_places[pair.right[0]]) for pair in known)
        modules = _Modules((parent(pair.left[0]), parent(pair.right[0])) for pair in known)
        costs = np.empty((len(ones), len(others)))
        for row, a in enumerate(ones):
            expected = _interpolated(self._places[a.name], anchors)
            for column, b in enumerate(others):
                distance = abs(expected - self._right_places[b.name])
                shape = 0 if sorted(a.shape) == sorted(b.shape) else 1
                costs[row, column] = (
                    BY_PLACE * distance
                    + BY_NAME * (1 - likeness(a.name, b.name))
                    + BY_MODULE * modules.contradict(parent(a.name), parent(b.name))
                    + BY_TRAINING * (a.trained != b.trained)
                    + shape
                )
        rows, columns = linear_sum_assignment(costs)
        return [(ones[row], others[column]) for row, column in zip(rows, columns, strict=True)]


def _likely(one: SideTensor, other: SideTensor) -> Transform:
    """Return the transform of two tensors whose values do not tell it: by their roles, else the plainest."""
    kernels = [role(each.name) == KERNEL for each in (one, other)]
    if kernels[0] != kernels[1] and (known := transforms.usual(one.shape, other.shape, kernels[0])):
        return known
    return (transforms.candidates(one.shape, other.shape) or [AS_IT_IS])[0]


def _classes(tensors: Iterable[SideTensor]) -> dict[Any, list[SideTensor]]:
    found: dict[Any, list[SideTensor]] = defaultdict(list)
    for each in tensors:
        found[each.digest].append(each)
    return found


def _shapes(tensors: Iterable[SideTensor]) -> dict[Any, list[SideTensor]]:
    found: dict[Any, list[SideTensor]] = defaultdict(list)
    for each in tensors:
        found[tuple(sorted(each.shape))].append(each)
    return found


class _Modules:
    """Which module of one side is known to be which of the other, by the tensors that are paired already."""

    def __init__(self, known: Iterable[tuple[str, str]]) -> None:
        self._right, self._left = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
        for one, other in known:
            self._right[one].add(other)
            self._left[other].add(one)

    def contradict(self, one: str, other: str) -> bool:
        """Return whether one of two modules is known to be another one."""
        partners, owners = self._right.get(one, {other}), self._left.get(other, {one})
        return other not in partners or one not in owners


def _interpolated(place: float, anchors: list[tuple[float, float]]) -> float:
    ends = [(0.0, 0.0), *anchors, (1.0, 1.0)]
    return float(np.interp(place, [one for one, _ in ends], [other for _, other in ends]))


def _partners(pieces: list[Array], known: dict[Any, list[SideTensor]]) -> tuple[list[SideTensor], Transform] | None:
    """Return the tensors that these pieces are, and the transform of all of them; None unless all are found."""
    found: list[SideTensor] = []
    transform: Transform | None = None
    for piece in pieces:
        fitting = [each for each in known.get(contents.digest(piece), []) if each not in found]
        if not fitting:
            return None
        own = transforms.find(np.ascontiguousarray(piece), fitting[0].values)
        if own is None or transform not in (None, own):
            return None
        found.append(fitting[0])
        transform = own
    return (found, transform) if transform is not None else None


def _nearly(total: Array, values: Array) -> Transform | None:
    """Return the order of blocks in which two vectors are equal up to rounding."""
    values = values.reshape(-1)
    allowed = ROUNDING * max(1e-30, float(np.abs(values).max(initial=0)))
    for count in (1, *transforms.BLOCKS):
        if values.size % count:
            continue
        ones, others = np.split(total, count), np.split(values, count)
        order = [next((n for n, a in enumerate(ones) if np.abs(a - b).max() <= allowed), None) for b in others]
        if None not in order and len(set(order)) == count:
            numbers = tuple(n for n in order if n is not None)
            return AS_IT_IS if count == 1 else Transform(along=0, blocks=numbers)
    return None
