"""Walk through both models in the order of the first, stop where they part, feed both the same values there, and go on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from steelyard.errors import UserError
from steelyard.ports import causes_of_places, flattening, order_of_modules, paired_calls
from steelyard.ports.alignment import FAR, distance, is_equal, nearest, padded, same_batch
from steelyard.ports.causes_of_places import Before
from steelyard.ports.passes import Pass, forward, load
from steelyard.ports.transforms import AS_IT_IS
from steelyard.results.port_record import Compared, Difference

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Mapping as Table
    from pathlib import Path

    from steelyard.ports.causes import Cause
    from steelyard.ports.given_inputs import Array
    from steelyard.ports.mapping import Mapping
    from steelyard.ports.paired_calls import PairedCall
    from steelyard.ports.passes import Call
    from steelyard.ports.side_process import SideProcess
    from steelyard.ports.side_tensors import SideTensor
    from steelyard.ports.transforms import Transform

MOST_DIFFERENCES = 60
"""A walk ends after so many; the record says so."""
GROWTH = 10.0
"""A distance below so many times one that was there before is no new difference: it is the same one, carried on."""
IN, BEFORE, OUTPUT = "in", "before", "output"


@dataclass
class Walk:
    """What a walk found. `outputs`: name of an output of the first model -> distance, with nothing replaced.

    `unpaired`, `without_numbers`: as in the record.
    """

    outputs: dict[str, float]
    unpaired: tuple[str, ...] = ()
    without_numbers: tuple[str, ...] = ()
    compared: list[Compared] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    is_whole: bool = True


@dataclass(frozen=True)
class Inputs:
    """What a walk needs. `tolerance`: the relative distance that counts as rounding. `training`: the mode of both models."""

    left: SideProcess
    right: SideProcess
    arrays: Table[str, Path]
    mapping: Mapping
    tensors: Table[str, SideTensor]
    tolerance: float
    say: Callable[[str], None]
    training: bool = False


def walk(of: Inputs) -> Walk:
    """Compare both models module by module. UserError: one of them returns other values each time."""
    first, second = (forward(side, of.arrays, training=of.training) for side in (of.left, of.right))
    for side, once in ((of.left, first), (of.right, second)):
        _check_repeats(side, once, forward(side, of.arrays, training=of.training), of.tolerance)
    paired = _paired_outputs(first, second)
    known = [{one for one, _ in paired}, {other for _, other in paired}]
    unpaired = [
        name for each, names in zip((first, second), known, strict=True) for name in each.outputs if name not in names
    ]
    empty = [name for name, _ in paired if not np.isfinite(load(first.outputs[name])).any()]
    found = Walk(_outputs(first, second), tuple(unpaired), tuple(empty))
    pairs = paired_calls.find(of.mapping, first, second)
    _Walker(of, first, pairs, found).go(second)
    return found


class _Walker:
    """One walk. `_inputs`, `_outputs`: what is replaced in the right model: name of a call -> file."""

    def __init__(self, of: Inputs, first: Pass, pairs: list[PairedCall], found: Walk) -> None:
        self._of, self._first, self._pairs, self._found = of, first, pairs, found
        self._inputs: dict[str, list[str]] = {}
        self._outputs: dict[str, list[str]] = {}
        # Number of axes -> how tensors of the right side become those of the left.
        self._axes: dict[int, Transform] = {}
        # How far apart the values were that were replaced.
        self._apart: list[Array] = []
        # Branches of the left side that a module comes before, which comes after them on the right side.
        self._moved: dict[str, Cause] = {}
        # Modules that return other sizes, until what follows shows whether it matters.
        self._resized: Difference | None = None
        # The largest distance so far that is no difference: rounding, or a constant that was rounded.
        self._carried = 0.0

    def go(self, second: Pass) -> None:
        """Find all differences from the first pass of the right model on."""
        begin, apart = 0, _largest(self._found.outputs)
        while (place := self._next(begin, second)) is not None:
            begin, difference = place
            second = forward(self._of.right, self._of.arrays, self._inputs, self._outputs, self._of.training)
            if difference is None:
                continue
            self._of.say(f"They part {difference.where} {difference.left}.")
            left = _largest(_outputs(self._first, second))
            total = _largest(self._found.outputs)
            part = (apart - left) / total if total > self._of.tolerance and np.isfinite(apart) else None
            apart = left
            self._found.differences.append(replace(difference, part=part))
            if len(self._found.differences) >= MOST_DIFFERENCES:
                self._found.is_whole = False
                return
        self._at_outputs(second)

    def _next(self, begin: int, second: Pass) -> tuple[int, Difference | None] | None:
        """Return the next place where the models part and its number, after the right model is set to go on past it.

        The difference is None where it is an earlier one that a connection has carried on.
        """
        for number in range(begin, len(self._pairs)):
            one, other = self._first.by_name[self._pairs[number].left], second.by_name[self._pairs[number].right]
            received = self._received(one, other)
            if received is None:
                continue
            if self._is_new(received[0], self._carried) and other.name not in self._inputs:
                pooled = self._in_pooling(number, second)
                return number, pooled or self._before(number, second, received)
            self._resized = None
            returned = self._aligned(one.outputs, other.outputs, received[1])
            if returned is None:
                self._resized = self._of_other_sizes(one, other, received)
                continue
            apart = returned[0]
            if self._is_new(apart, received[0]) and other.name not in self._outputs:
                if (difference := self._inside(one, other, received[0], returned)) is not None:
                    return number + 1, difference
            elif other.name not in self._outputs:
                self._carried = max(self._carried, apart)
            self._found.compared.append(Compared(one.name, other.name, one.kind or other.kind, received[0], apart))
        return None

    def _received(self, one: Call, other: Call) -> tuple[float, Transform] | None:
        """Return how far the inputs of two modules are apart; 0 where one of them gets its input padded already."""
        if not one.inputs or not other.inputs:
            return None
        left, right = _loaded(one.inputs, other.inputs)
        compared = self._aligned(one.inputs, other.inputs)
        if compared is None:
            axes = padded(left, right, self._rounding)
            return None if axes is None else (0.0, axes)
        if compared[0] > self._rounding and left.shape == right.shape:
            for split, order in flattening.of_kernels(self._of.mapping, {*one.tensors.values()}):
                transform = flattening.to_left(right.shape, split, order)
                if transform is not None and (apart := distance(left, transform.apply(right))) < compared[0]:
                    compared = apart, transform
        return compared

    def _is_new(self, apart: float, earlier: float) -> bool:
        return apart > max(self._of.tolerance, GROWTH * earlier)

    def _aligned(
        self, ones: tuple[Path, ...], others: tuple[Path, ...], like: Transform = AS_IT_IS
    ) -> tuple[float, Transform] | None:
        """Return how far the first tensors of two calls are apart, and the transform to the left side.

        Where no layout makes them equal, the nearest one says nothing: then it is `like`, or that of tensors that were equal.
        None: the sizes differ.
        """
        if not ones or not others:
            return None
        left, right = _loaded(ones, others)
        usual = [each for each in (like, self._axes.get(right.ndim, AS_IT_IS), AS_IT_IS) if _fits(each, left, right)]
        likely = (distance(left, usual[0].apply(right)), usual[0]) if usual else None
        if likely is not None and likely[0] <= self._rounding:
            return likely
        compared = nearest(left, right, self._rounding)
        if compared is None or compared[0] > self._rounding:
            return likely or compared
        self._axes[right.ndim] = compared[1]
        return compared

    def _before(self, number: int, second: Pass, received: tuple[float, Transform]) -> Difference | None:
        one, other = self._first.by_name[self._pairs[number].left], second.by_name[self._pairs[number].right]
        left, right = _loaded(one.inputs, other.inputs)
        file, first = self._saved(received[1].reverse(left, right.shape)), load(other.inputs[0])
        # Attention may get one value as its query, key and value.
        self._inputs[other.name] = [file if is_equal(load(each), first) else "" for each in other.inputs]
        resized, self._resized = self._resized, None
        if resized is not None:
            return resized
        values = (left, received[1].apply(right))
        if self._is_carried_on(*values):
            return None
        cause, tried = causes_of_places.before_module(self._what_lies_before(number), one, values, self._rounding)
        cause = cause or self._order(number, second)
        return self._difference(BEFORE, one, other, (received[0], 0.0), cause, [*tried, order_of_modules.FAMILY])

    def _order(self, number: int, second: Pass) -> Cause | None:
        """Return the cause of a module that comes before a branch on the left and after it on the right; also at that branch."""
        place, later = self._pairs[number], self._pairs[number + 1 :]
        if place.left in self._moved:
            return self._moved[place.left]
        found = order_of_modules.moved(place, later, self._first, second, self._rounding)
        if found is None:
            return None
        self._moved[found[0]] = found[1]
        return found[1]

    def _is_carried_on(self, left: Array, right: Array) -> bool:
        """Return whether two values differ by as much as others did before, as a residual connection carries it; else note it."""
        apart = left.astype(np.float64) - right
        for earlier in self._apart:
            if earlier.shape == apart.shape and distance(left, right + earlier) <= self._rounding:
                return True
        self._apart.append(apart)
        return False

    def _what_lies_before(self, number: int) -> Before:
        calls = [self._first.by_name[pair.left] for pair in reversed(self._pairs[:number])]
        begin = self._first.calls.index(calls[0]) + 1 if calls else 0
        end = self._first.calls.index(self._first.by_name[self._pairs[number].left])
        files = [
            file for call in reversed(self._first.calls[begin:end]) for file in (call.outputs[:1] + call.inputs[:1])
        ]
        given = {name: load(path) for name, path in self._of.arrays.items()}
        return Before([call for call in calls if call.outputs], [load(file) for file in files], given)

    def _of_other_sizes(self, one: Call, other: Call, received: tuple[float, Transform]) -> Difference | None:
        """Return the difference of two modules that return other sizes; None if one returns no tensor."""
        if not one.outputs or not other.outputs or not one.kind:
            return None
        left, right, transform = load(one.outputs[0]), load(other.outputs[0]), received[1]
        if left.ndim != right.ndim or transform.first or transform.last:
            return None
        aligned = transform.apply(right) if len(transform.axes) in (0, right.ndim) else right
        values = (load(one.inputs[0]), left, aligned)
        cause, tried = causes_of_places.in_module(one, other, values, self._of.tensors, self._rounding)
        return self._difference(IN, one, other, (received[0], FAR), cause, tried)

    def _in_pooling(self, number: int, second: Pass) -> Difference | None:
        """Return the difference of two pooling modules before a pair that receives different values; None if there is none.

        They own no tensors, so that nothing but their order between other modules says which two are the same.
        """
        ends = [pair.left for pair in self._pairs[max(0, number - 1) : number + 1]]
        others = [pair.right for pair in self._pairs[max(0, number - 1) : number + 1]]
        pools = _pooling_between(self._first, ends), _pooling_between(second, others)
        if len(pools[0]) != len(pools[1]):
            return None
        for one, other in zip(*pools, strict=True):
            received = self._aligned(one.inputs, other.inputs)
            if received is None or self._is_new(received[0], self._carried):
                return None
            returned = self._aligned(one.outputs, other.outputs, received[1])
            if returned is None:
                return None
            if self._is_new(returned[0], received[0]) and other.name not in self._outputs:
                return self._inside(one, other, received[0], returned)
        return None

    def _inside(self, one: Call, other: Call, received: float, returned: tuple[float, Transform]) -> Difference | None:
        """Return the difference of two modules; None if one of them applies its activation by itself."""
        left, right = _loaded(one.outputs, other.outputs)
        aligned = returned[1].apply(right)
        if causes_of_places.activation_between(left, aligned, self._rounding):
            return None
        left, aligned = causes_of_places.with_own_activations(one, other, left, aligned)
        values = (load(one.inputs[0]), left, aligned)
        cause, tried = causes_of_places.in_module(one, other, values, self._of.tensors, self._rounding)
        self._outputs[other.name] = [self._saved(returned[1].reverse(left, right.shape))]
        return self._difference(IN, one, other, (received, returned[0]), cause, tried)

    def _at_outputs(self, second: Pass) -> None:
        outputs = _outputs(self._first, second)
        if self._resized is not None and _largest(outputs) > self._of.tolerance:
            self._found.differences.append(self._resized)
        for name, apart in outputs.items():
            if apart > self._of.tolerance:
                self._found.differences.append(Difference(OUTPUT, name, name, "", "", 0.0, apart))

    @property
    def _rounding(self) -> float:
        return self._of.tolerance

    def _saved(self, array: Array) -> str:
        path = self._of.right.new_folder() / "replaced.npy"
        np.save(path, array, allow_pickle=False)
        return str(path)

    def _difference(
        self, where: str, one: Call, other: Call, distances: tuple[float, float], cause: Cause | None, tried: list[str]
    ) -> Difference:
        said = ""
        if cause is not None:
            said = f"{cause.family}: {self._of.left.name} has {cause.left_words}, {self._of.right.name} has {cause.right_words}"
        return Difference(where, one.name, other.name, one.type, other.type, *distances, said, tuple(tried))


def _pooling_between(side: Pass, ends: list[str]) -> list[Call]:
    """Return the calls of pooling modules before the last of some calls, and after the first one if there are two."""
    places = {call.name: number for number, call in enumerate(side.calls)}
    begin = places[ends[0]] if len(ends) > 1 else 0
    return [call for call in side.calls[begin : places[ends[-1]]] if call.kind == "pooling"]


def _loaded(ones: Sequence[Path], others: Sequence[Path]) -> tuple[Array, Array]:
    """Return the first tensors of two calls."""
    return same_batch(load(ones[0]), load(others[0]))


def _fits(transform: Transform, left: Array, right: Array) -> bool:
    """Return whether a transform is an order of axes alone, and makes one shape the other."""
    if transform.first or transform.last or transform.blocks or len(transform.axes) not in (0, right.ndim):
        return False
    axes = transform.axes or range(right.ndim)
    return bool(tuple(right.shape[axis] for axis in axes) == left.shape)


def _paired_outputs(first: Pass, second: Pass) -> list[tuple[str, str]]:
    """Return which output of one model is which of the other: by name where one name is in both, else in their order."""
    if any(name in second.outputs for name in first.outputs):
        return [(name, name) for name in first.outputs if name in second.outputs]
    return list(zip(first.outputs, second.outputs, strict=False))


def _outputs(first: Pass, second: Pass) -> dict[str, float]:
    """Compare the outputs of both models. Another order of axes counts as the same only where the shapes show it."""
    found = {}
    for name, other in _paired_outputs(first, second):
        one, two = load(first.outputs[name]), load(second.outputs[other])
        compared = (distance(one, two), AS_IT_IS) if one.shape == two.shape else nearest(one, two)
        found[name] = FAR if compared is None else compared[0]
    return found


def _check_repeats(side: SideProcess, once: Pass, again: Pass, tolerance: float) -> None:
    """Refuse a model that computes something else from the same inputs, such as one whose dropout is on."""
    for one, other in zip(once.calls, again.calls, strict=False):
        if one.outputs and other.outputs:
            before, after = load(one.outputs[0]), load(other.outputs[0])
            if before.shape != after.shape or distance(before, after) > tolerance:
                raise _random(side, f", first in '{one.name}'")
    if _largest(_outputs(once, again)) > tolerance:
        raise _random(side, "")


def _random(side: SideProcess, where: str) -> UserError:
    return UserError(
        f"Side '{side.name}' returns other values each time for the same inputs in evaluation mode{where}. Switch off what is "
        "random there, such as dropout."
    )


def _largest(distances: dict[str, float]) -> float:
    return max(distances.values(), default=0.0)
