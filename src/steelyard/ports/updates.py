"""Both optimizers take the same five gradients: which weights differ after the first and after the last update, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import UserError
from steelyard.ports.alignment import distance
from steelyard.ports.causes import updates as causes
from steelyard.ports.partners import Files, given_to_right, partners
from steelyard.results.port_record import Difference, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from steelyard.ports.causes import Cause
    from steelyard.ports.given_inputs import Array
    from steelyard.ports.mapping import Pair
    from steelyard.ports.side_process import SideProcess
    from steelyard.ports.side_tensors import SideTensor
    from steelyard.ports.walk import Inputs

FIRST, ALL = "first update of the weights", "five updates of the weights"
# The gradients of the five steps are multiples of the first one, of both signs and several sizes. Their directions differ by
# noise of this share, so that momentum, decay and clipping show.
SIZES, NOISE, SEED = (1.0, -0.5, 2.0, 0.1, 1.5), 0.3, 11
DRAWN = 0.01
"""Standard deviation of gradients that are drawn where there is no loss."""
IN_FLOAT64, IN_FLOAT32 = 1e-6, 1e-4
"""What a constant that was rounded to float32 moves in an update, such as 1 - beta2; and what float32 itself does."""
OVER_NOISE = 50.0
MOST_VALUES = 8_000_000
"""Only tensors that have so many values together get gradients: of each, five are kept."""
MOST_DIFFERENCES = 60


@dataclass(frozen=True)
class Course:
    """The weights of one pair of tensors, or of two biases that are added, before the first update and after each.

    All arrays are float64 in the layout of the left side. `is_sum`: the left one is a sum of several tensors.
    """

    left_name: str
    right_name: str
    start: Array
    gradients: list[Array]
    left: list[Array]
    right: list[Array]
    is_sum: bool = False


def stages(
    of: Inputs,
    left: Sequence[SideTensor],
    right: Sequence[SideTensor],
    gradients: Mapping[str, Array] | None,
    obstacle: str,
    in_float64: bool,
) -> Iterator[Stage]:
    """Compare the updates. `gradients`: those of the loss, by tensors of the left side; None: they are drawn.

    `obstacle`: why nothing can be compared; empty if it can.
    """
    failed = False
    if not obstacle:
        of.say("Comparing the updates of the weights")
        try:
            yield from _Updates(of, left, right, gradients, in_float64).stages()
            return
        except UserError as error:
            obstacle, failed = str(error), True
    yield from (Stage(name, obstacle, failed=failed) for name in (FIRST, ALL))


class _Updates:
    def __init__(
        self,
        of: Inputs,
        left: Sequence[SideTensor],
        right: Sequence[SideTensor],
        gradients: Mapping[str, Array] | None,
        in_float64: bool,
    ) -> None:
        self._of, self._in_float64 = of, in_float64
        self._left = {each.name: each for each in left}
        self._shapes = {each.name: each.shape for each in right}
        self._pairs = list(self._chosen())
        self._causes: dict[str, Cause | None] = {}
        self._folder, self._first = of.left.new_folder(), gradients
        self._steps = self._drawn()
        self._norms = [
            float(np.sqrt(sum(float(np.linalg.norm(each)) ** 2 for each in step.values()))) for step in self._steps
        ]

    def stages(self) -> Iterator[Stage]:
        given = [self._given_to_right(step) for step in self._steps]
        one, other = self._updated(self._of.left, self._steps), self._updated(self._of.right, given)
        courses = [each for pair in self._pairs for each in self._courses(pair, one[1], other[1])]
        for name, step in ((FIRST, 0), (ALL, len(SIZES) - 1)):
            found = [difference for each in courses if (difference := self._difference(each, step, one[0], other[0]))]
            yield Stage(name, "", len(courses), tuple(found[:MOST_DIFFERENCES]))

    def _chosen(self) -> Iterator[Pair]:
        """Yield the pairs of trained tensors, the small ones first, as long as there is room."""
        room = MOST_VALUES
        known = [pair for pair in self._of.mapping.pairs if all(self._left[name].trained for name in pair.left)]
        sizes = {id(pair): sum(int(np.prod(self._left[name].shape)) for name in pair.left) for pair in known}
        smallest = sorted(known, key=lambda pair: sizes[id(pair)])[:1]
        for pair in known:
            if pair in smallest or sizes[id(pair)] <= room:
                room -= sizes[id(pair)]
                yield pair

    def _drawn(self) -> list[Files]:
        """Write the gradients of all steps."""
        generator = np.random.default_rng(SEED)
        paths: list[dict[str, str]] = [{} for _ in SIZES]
        for place, name in enumerate(name for pair in self._pairs for name in pair.left):
            shape = self._left[name].shape
            base = (
                self._first[name]
                if self._first is not None and name in self._first
                else generator.normal(0, DRAWN, shape)
            )
            spread = float(np.sqrt(np.mean(base * base))) if base.size else 0.0
            for number, size in enumerate(SIZES):
                noise = generator.normal(0, NOISE * spread, shape) if number and spread else 0.0
                path = self._folder / f"g{place}-{number}.npy"
                np.save(path, size * (base + noise), allow_pickle=False)
                paths[number][name] = str(path)
        return [Files(each) for each in paths]

    def _given_to_right(self, step: Files) -> Files:
        folder, paths = self._of.right.new_folder(), dict[str, str]()
        for pair in self._pairs:
            for name, array in given_to_right(pair, step, self._shapes).items():
                path = folder / f"{len(paths)}.npy"
                np.save(path, array, allow_pickle=False)
                paths[name] = str(path)
        return Files(paths)

    def _updated(self, side: SideProcess, steps: Sequence[Files]) -> tuple[Mapping[str, Sequence[Any]], list[Files]]:
        """Return what an optimizer declares, and the weights after each step."""
        answer = side.ask("updates", folder=str(side.new_folder()), steps=[step.paths for step in steps])
        return answer["settings"], [Files(each) for each in answer["weights"]]

    def _courses(self, pair: Pair, lefts: list[Files], rights: list[Files]) -> Iterator[Course]:
        start = {name: np.asarray(self._left[name].values, np.float64) for name in pair.left}
        starts = list(partners(pair, start, given_to_right(pair, start, self._shapes)))
        given = [list(partners(pair, step, given_to_right(pair, step, self._shapes))) for step in self._steps]
        after = [list(partners(pair, one, other)) for one, other in zip(lefts, rights, strict=True)]
        if pair.is_sum:
            total = np.sum([each.left for each in starts], 0)
            added = [np.sum([each.left for each in step], 0) for step in after]
            gradients, whole = [step[0].left for step in given], [step[0].right for step in after]
            yield Course(" + ".join(pair.left), pair.right[0], total, gradients, added, whole, is_sum=True)
            return
        for place, first in enumerate(starts):
            yield Course(
                first.left_name,
                first.right_name,
                first.left,
                [step[place].left for step in given],
                [step[place].left for step in after],
                [step[place].right for step in after],
            )

    def _difference(self, course: Course, step: int, left: Any, right: Any) -> Difference | None:
        changes = course.left[step] - course.start, course.right[step] - course.start
        apart, allowed = distance(*changes), self._allowed(course, step, changes)
        if apart <= allowed:
            return None
        cause = self._cause(course, left, right, allowed)
        return Difference("update", course.left_name, course.right_name, "", "", 0.0, apart, cause, ("optimizer",))

    def _allowed(self, course: Course, step: int, changes: tuple[Array, Array]) -> float:
        """Return the relative distance of two changes that rounding explains: in float32 that of the weights themselves."""
        if self._in_float64:
            return IN_FLOAT64
        size = max(float(np.linalg.norm(each)) for each in changes)
        rounding = 2.0**-24 * float(np.linalg.norm(course.left[step]))
        return max(IN_FLOAT32, OVER_NOISE * rounding / size) if size else IN_FLOAT32

    def _cause(self, course: Course, left: Any, right: Any, allowed: float) -> str:
        one, other = self._of.left.name, self._of.right.name
        if course.is_sum:
            return f"two biases that are added each take a step in {one}; in {other} one tensor does"
        if course.left_name not in self._causes:
            seen = causes.Updates(course.start, course.gradients, course.left, course.right, self._norms, left, right)
            known = [cause for cause in self._causes.values() if cause is not None]
            self._causes[course.left_name] = causes.explain(seen, allowed, known)
        found = self._causes[course.left_name]
        return f"{found.family}: {one} has {found.left_words}, {other} has {found.right_words}" if found else ""
