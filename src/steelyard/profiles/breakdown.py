"""A recorded profile -> the time of a step by class, which adds up to the profiled step."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.profiles import spans
from steelyard.profiles.classes import (
    BACKWARD,
    CLASSES,
    DISPATCH,
    GAP,
    INPUT,
    TO_DATA,
    TO_WEIGHTS,
    UNATTRIBUTED,
)

Times = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Profile:
    """The operations of a block of `steps` steps that took `elapsed_ns`; the arrays have one element per operation.

    Times are ns since the start of the block; `waits_ns` (waits, 2) are starts and durations of waiting for a batch.
    `plain_ns`: time per step of the blocks without the profiler, `cpu` the same pair of CPU times: with and without it.
    """

    names: Sequence[str]
    thread: Times
    name: Times
    start_ns: Times
    duration_ns: Times
    waits_ns: Times
    steps: int
    elapsed_ns: int
    plain_ns: float
    cpu: tuple[float, float]


@dataclass(frozen=True)
class Operation:
    """One name: its class, its time per step in ns, and how often it ran per step."""

    name: str
    kind: str
    step_ns: float
    calls: float


@dataclass(frozen=True)
class Breakdown:
    """Nanoseconds of a step by class; they add up to `step_ns`, the mean of the profiled block.

    `covered`: share of the time in which an operation ran. `parallelism`: operations that ran at once while one did.
    `dispatches`: operations per step. `slow_down`, `cpu_slow_down`: ratio of the profiled block to those without the profiler.
    """

    classes: Mapping[str, float]
    operations: tuple[Operation, ...]
    step_ns: float
    covered: float
    parallelism: float
    dispatches: float
    slow_down: float
    cpu_slow_down: float

    @property
    def unattributed(self) -> float:
        """The share of the step in operations of no class."""
        return self.classes.get(UNATTRIBUTED, 0.0) / self.step_ns


def breakdown(profile: Profile, class_of: Callable[[str], str], to_data: float | None = None) -> Breakdown:
    """Divide the step among classes. `to_data`: the share of the gradient of the data in a joint backward pass of convolutions.

    Where operations of several threads overlap, the time is divided in proportion to their times.
    """
    inside = (profile.start_ns < profile.elapsed_ns) & (profile.start_ns + profile.duration_ns > 0)
    start = np.maximum(profile.start_ns[inside], 0)
    end = np.minimum(profile.start_ns[inside] + profile.duration_ns[inside], profile.elapsed_ns)
    name, thread = profile.name[inside], profile.thread[inside]
    own = np.zeros(len(start), np.int64)
    for each in np.unique(thread):
        here = thread == each
        own[here] = spans.own_times(start[here], end[here] - start[here])
    busy, total = spans.length(start, end), int(own.sum())
    scale = busy / total / profile.steps if total else 0.0
    taken = np.bincount(name, own, len(profile.names)) * scale
    calls = np.bincount(name, minlength=len(profile.names)) / profile.steps
    found = [
        Operation(text, class_of(text) or UNATTRIBUTED, float(taken[place]), float(calls[place]))
        for place, text in enumerate(profile.names)
        if calls[place]
    ]
    waits = profile.waits_ns
    waited = spans.uncovered(waits[:, 0], waits.sum(axis=1), start, end)
    classes = dict.fromkeys(CLASSES, 0.0)
    for each in found:
        classes[each.kind] += each.step_ns
    classes[INPUT] += waited / profile.steps
    classes[GAP] += (profile.elapsed_ns - busy - waited) / profile.steps
    if to_data is not None:
        joint = classes.pop(BACKWARD)
        classes[TO_DATA] += joint * to_data
        classes[TO_WEIGHTS] += joint * (1 - to_data)
    cpu, plain_cpu = profile.cpu
    step_ns = profile.elapsed_ns / profile.steps
    return Breakdown(
        {kind: value for kind, value in classes.items() if value},
        tuple(sorted(found, key=lambda each: -each.step_ns)),
        step_ns,
        busy / profile.elapsed_ns,
        total / busy if busy else 0.0,
        sum(each.calls for each in found if each.kind != DISPATCH),
        step_ns / profile.plain_ns,
        cpu / plain_cpu if plain_cpu else 1.0,
    )
