"""The difference between the steps of two contenders: the time that every class of operations adds or saves."""

from collections.abc import Mapping
from dataclasses import dataclass

from steelyard.profiles.classes import BACKWARD, CLASSES, CONVOLUTION, FORWARD, TO_DATA, TO_WEIGHTS

JOINT = {BACKWARD: (TO_DATA, TO_WEIGHTS), CONVOLUTION: (FORWARD, TO_DATA, TO_WEIGHTS, BACKWARD)}
"""Joint classes, which some profiles have instead of their parts."""


@dataclass(frozen=True)
class Fall:
    """One class: nanoseconds of a step in the first and in the second contender."""

    kind: str
    first_ns: float
    second_ns: float

    @property
    def change_ns(self) -> float:
        """The additional time of the second; below 0 if it is faster."""
        return self.second_ns - self.first_ns


def waterfall(first: Mapping[str, float], second: Mapping[str, float]) -> list[Fall]:
    """Return a step per class that either has; their changes add up to the difference of the two steps.

    If one contender has convolutions or their backward pass as one class, the other's classes are joined, too.
    """
    for joint, parts in JOINT.items():
        if joint in first or joint in second:
            first, second = _joined(first, joint, parts), _joined(second, joint, parts)
    return [
        Fall(kind, first.get(kind, 0.0), second.get(kind, 0.0)) for kind in CLASSES if kind in first or kind in second
    ]


def largest(falls: list[Fall], share: float = 0.1) -> list[Fall]:
    """Return the classes whose change is at least this share of all changes, the largest first."""
    total = sum(abs(each.change_ns) for each in falls)
    return sorted(
        (each for each in falls if total and abs(each.change_ns) >= share * total),
        key=lambda each: -abs(each.change_ns),
    )


def _joined(classes: Mapping[str, float], joint: str, parts: tuple[str, ...]) -> dict[str, float]:
    found = {kind: value for kind, value in classes.items() if kind not in parts}
    found[joint] = sum(classes.get(kind, 0.0) for kind in (joint, *parts))
    return found
