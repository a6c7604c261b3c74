"""Where the time of a step goes, by class of operations, and which classes make contenders slower or faster than the first."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from steelyard.profiles import waterfall
from steelyard.profiles.classes import CLASSES, UNATTRIBUTED
from steelyard.statistics.sentences import listed
from steelyard.wording import notation
from steelyard.wording.task_words import fill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from steelyard.analysis.model import Comparison, Contender, Speed
    from steelyard.profiles.recorded import Explained

ALIKE = 0.01
COSTLY = 1.2
"""If the profiler slows a step down by more than this, shares describe only the profiled step."""
UNLIKE = 1.25
"""If a step without the profiler is farther than this from the measured interval, something disturbed one of the two."""
# Kernels below this share of oneDNN's time are left out, as are all after the first few.
KERNEL_SHARE, MOST_KERNELS = 0.03, 6
# In a class below this share of a step, operations that the profiler does not record are not mentioned.
MATTERS = 0.05


@dataclass(frozen=True)
class Profiled:
    """A contender with its profile."""

    contender: Contender
    profile: Explained

    @property
    def speed(self) -> Speed | None:
        """The speed on the profiled input in the rounds; None if that was not measured."""
        return self.contender.speeds.get(self.profile.trial.job.schedule.inputs[0])

    @property
    def own_step_ns(self) -> float:
        """The time of a step without the profiler, in the profiled process."""
        return self.profile.breakdown.step_ns / self.profile.breakdown.slow_down


@dataclass(frozen=True)
class Kernel:
    """The kernel that oneDNN chose for a primitive of a contender, and its share of oneDNN's time."""

    contender: Contender
    primitive: str
    kernel: str
    share: float


@dataclass(frozen=True)
class WhereTimeGoes:
    """The profiles of a comparison. `compared`: those with which the first is compared, as both show measured steps.

    `sentences`: doubts about profiles and what they do not record, then what makes the compared ones differ. `reasons`:
    (contender, why it was not profiled) pairs.
    """

    profiled: list[Profiled]
    compared: list[Profiled]
    sentences: list[str]
    reasons: list[tuple[Contender, str]]

    @property
    def classes(self) -> list[str]:
        """The classes of operations that any profile has, in their usual order."""
        parts = [each.profile.breakdown.classes for each in self.profiled]
        return [kind for kind in CLASSES if kind == UNATTRIBUTED or any(each.get(kind) for each in parts)]

    @property
    def kernels(self) -> list[Kernel]:
        """The kernels that took most of oneDNN's time, by contender."""
        return [
            Kernel(each.contender, primitive, kernel, share)
            for each in self.profiled
            for (primitive, kernel), share in list(each.profile.kernels.items())[:MOST_KERNELS]
            if share >= KERNEL_SHARE
        ]


def where_time_goes(comparison: Comparison) -> WhereTimeGoes | None:
    """Return the profiles of a comparison; None where no contender was to be profiled."""
    profiled = [Profiled(each, each.profile) for each in comparison.contenders if each.profile]
    reasons = [(each, each.not_profiled) for each in comparison.contenders if each.not_profiled]
    if not profiled:
        return WhereTimeGoes([], [], [], reasons) if reasons else None
    doubts = {each.contender.title: doubt for each in profiled if (doubt := _doubt(each))}
    first, *others = profiled
    sound = [each for each in others if not doubts.keys() & {first.contender.title, each.contender.title}]
    differences = [difference(first, each, comparison.task) for each in sound]
    return WhereTimeGoes(profiled, sound, [*doubts.values(), *_unrecorded(profiled), *differences], reasons)


def as_dict(comparison: Comparison, case_name: Callable[[Contender], str]) -> dict[str, Any]:
    """Return the profiles of a comparison as plain values; times in nanoseconds by class."""
    known = where_time_goes(comparison)
    return {
        "group": comparison.group,
        "title": comparison.title,
        "sentences": known.sentences if known else [],
        "contenders": [
            {
                "case": case_name(each),
                "title": each.title,
                "profile": asdict(each.profile.breakdown) if each.profile else None,
                "not_profiled": each.not_profiled,
            }
            for each in comparison.contenders
        ],
    }


def difference(first: Profiled, second: Profiled, task: str) -> str:
    """Return a sentence on which classes of operations make two steps differ."""
    a, b = first.profile.breakdown, second.profile.breakdown
    change = b.step_ns - a.step_ns
    more = "longer" if change > 0 else "less time"
    than = f"{notation.duration(abs(change))} {more} than one of {first.contender.title}"
    if abs(change) < ALIKE * a.step_ns:
        than = f"as long as one of {first.contender.title}, within {ALIKE:.0%}"
    falls = waterfall.waterfall(a.classes, b.classes)
    causes = listed([f"{each.kind} ({notation.change(each.change_ns)})" for each in waterfall.largest(falls)])
    step = fill("{step}", task)
    return f"A {step} of {second.contender.title} takes {than}{': ' if causes else ''}{causes}.{_slowed(first, second)}"


def _slowed(*both: Profiled) -> str:
    """Return a reservation where the profiler makes steps much slower; empty otherwise."""
    costly = [each.contender.title for each in both if each.profile.breakdown.slow_down > COSTLY]
    return f" The profiler slows {listed(costly)} down, so these are parts of the profiled step." if costly else ""


def _unrecorded(profiled: list[Profiled]) -> list[str]:
    """Return sentences on classes whose time is partly that of operations that a profiler does not record."""
    return [
        f"{kind.capitalize()} of {each.contender.title}: {sentence}"
        for each in profiled
        for kind, sentence in each.profile.unrecorded.items()
        if each.profile.breakdown.classes.get(kind, 0.0) >= MATTERS * each.profile.breakdown.step_ns
    ]


def _doubt(found: Profiled) -> str:
    """Return a sentence if the step of a profile differs from the measured one; empty if it is near."""
    if found.speed is None:
        return ""
    own, measured = found.own_step_ns, found.speed.location
    if measured.low_ns / UNLIKE <= own <= measured.high_ns * UNLIKE:
        return ""
    return (
        f"The profile of {found.contender.title} is not of what was measured, and is compared with no other: without the "
        f"profiler a step took {notation.duration(own)}, in the rounds {notation.duration(measured.value_ns)}. Other programs "
        "probably slowed one of them down; `steelyard explain --fresh` profiles again."
    )


def traces(known: WhereTimeGoes) -> Iterator[tuple[Contender, str]]:
    """Yield (contender, file of its trace in the folder of the run) pairs."""
    for each in known.profiled:
        for name in each.profile.files:
            yield each.contender, name
