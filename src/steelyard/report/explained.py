"""Where the time of a step goes, by class of operations, and which classes make contenders slower or faster than the first."""

from dataclasses import dataclass, field
from typing import ClassVar

from steelyard.analysis.model import Comparison, Contender
from steelyard.profiles import waterfall
from steelyard.profiles.breakdown import Breakdown
from steelyard.profiles.classes import CLASSES, HELP, UNATTRIBUTED
from steelyard.profiles.recorded import Explained
from steelyard.report.figures import Figure
from steelyard.report.plots.waterfalls import figure
from steelyard.statistics.sentences import listed
from steelyard.wording import notation
from steelyard.wording.task_words import fill

ALIKE = 0.01
COSTLY = 1.2
"""If the profiler slows a step down by more than this, shares describe only the profiled step."""
UNLIKE = 1.25
"""If a step without the profiler is farther than this from the measured interval, something disturbed one of the two."""
CAPTION = (
    "Time of one {step} by class of operations, from the profiler of each framework, in a process of its own that is in no "
    "verdict. The classes of a contender add up to its profiled {step}. Where operations of several threads overlap, each counts "
    "by its share."
)
# Kernels below this share of oneDNN's time are left out, as are all after the first few.
KERNEL_SHARE, MOST_KERNELS = 0.03, 6
# Below this share of a step, what a class holds besides its own operations changes nothing.
MATTERS = 0.05


@dataclass(frozen=True)
class Section:
    """The contents of the section. `reasons`: (title, why it was not profiled) pairs; `kernels`: rows under `KERNEL_HEADINGS`."""

    KERNEL_HEADINGS: ClassVar = ("", "primitive", "kernel", "share of oneDNN's time")
    KERNELS: ClassVar = (
        "oneDNN is the library that computes convolutions, matrix products and the like for several frameworks. Its log, where "
        "a framework can write it, names the kernel that it chose for each."
    )

    reasons: list[tuple[str, str]]
    headings: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    caption: str = ""
    helps: list[tuple[str, str]] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    kernels: list[list[str]] = field(default_factory=list)
    files: list[tuple[str, str]] = field(default_factory=list)


def section(comparison: Comparison) -> Section | None:
    """Return the section of a comparison; None where no contender was profiled."""
    profiled = [(each, each.profile) for each in comparison.contenders if each.profile]
    reasons = [(each.title, each.not_profiled) for each in comparison.contenders if each.not_profiled]
    if not profiled:
        return Section(reasons) if reasons else None
    parts = [profile.breakdown for _, profile in profiled]
    kinds = [kind for kind in CLASSES if kind == UNATTRIBUTED or any(each.classes.get(kind) for each in parts)]
    step = fill("{step}", comparison.task)
    rows = [[kind, *(_share(each, kind) for each in parts)] for kind in kinds]
    rows += [
        [f"profiled {step}", *(notation.duration(each.step_ns) for each in parts)],
        [f"{step} without the profiler", *(notation.duration(each.step_ns / each.slow_down) for each in parts)],
        [f"measured {step}, mean over rounds", *(_measured(*each) for each in profiled)],
        [f"operations per {step}", *(f"{each.dispatches:,.0f}" for each in parts)],
    ]
    doubts = {contender.title: doubt for contender, found in profiled if (doubt := _doubt(contender, found))}
    first, *others = profiled
    sound = [each for each in others if not doubts.keys() & {first[0].title, each[0].title}]
    return Section(
        reasons=reasons, headings=["class", *(contender.title for contender, _ in profiled)], rows=rows,
        sentences=[*doubts.values(), *_unrecorded(profiled), *(difference(*first, *each, comparison.task) for each in sound)],
        caption=fill(CAPTION, comparison.task), helps=[(kind, HELP[kind]) for kind in kinds if kind in HELP],
        figures=[figure(comparison, *first, *each) for each in sound], kernels=_kernels(profiled),
        files=[(contender.title, name) for contender, profile in profiled for name in profile.files],
    )  # fmt: skip


def difference(first: Contender, a: Explained, second: Contender, b: Explained, task: str) -> str:
    """Return a sentence on which classes of operations make two steps differ."""
    falls = waterfall.waterfall(a.breakdown.classes, b.breakdown.classes)
    change = b.breakdown.step_ns - a.breakdown.step_ns
    causes = [f"{each.kind} ({notation.change(each.change_ns)})" for each in waterfall.largest(falls)]
    costly = [who.title for who, found in ((first, a), (second, b)) if found.breakdown.slow_down > COSTLY]
    doubt = f" The profiler slows {listed(costly)} down, so these are parts of the profiled step." if costly else ""
    more = "longer" if change > 0 else "less time"
    than = f"{notation.duration(abs(change))} {more} than one of {first.title}"
    if abs(change) < ALIKE * a.breakdown.step_ns:
        than = f"as long as one of {first.title}, within {ALIKE:.0%}"
    return f"A {fill('{step}', task)} of {second.title} takes {than}{': ' if causes else ''}{listed(causes)}.{doubt}"


def _unrecorded(profiled: list[tuple[Contender, Explained]]) -> list[str]:
    """Return sentences on classes whose time is partly that of operations that a profiler does not record."""
    return [
        f"{kind.capitalize()} of {contender.title}: {sentence}"
        for contender, found in profiled
        for kind, sentence in found.unrecorded.items()
        if found.breakdown.classes.get(kind, 0.0) >= MATTERS * found.breakdown.step_ns
    ]


def _doubt(contender: Contender, profile: Explained) -> str:
    """Return a sentence if the step of a profile differs from the measured one; empty if it is near."""
    speed = contender.speeds.get(profile.trial.job.schedule.inputs[0])
    if speed is None:
        return ""
    own, measured = profile.breakdown.step_ns / profile.breakdown.slow_down, speed.location
    if measured.low_ns / UNLIKE <= own <= measured.high_ns * UNLIKE:
        return ""
    return (
        f"The profile of {contender.title} is not of what was measured, and is compared with no other: without the profiler a "
        f"step took {notation.duration(own)}, in the rounds {notation.duration(measured.value_ns)}. Other programs probably "
        "slowed one of them down; `steelyard explain --fresh` profiles again."
    )


def _share(found: Breakdown, kind: str) -> str:
    value = found.classes.get(kind, 0.0)
    return f"{notation.duration(value)} ({value / found.step_ns:.1%})" if value or kind == UNATTRIBUTED else "-"


def _measured(contender: Contender, profile: Explained) -> str:
    """Return the step time that verdicts use, on the profiled input."""
    speed = contender.speeds.get(profile.trial.job.schedule.inputs[0])
    return notation.duration(speed.location.value_ns) if speed else "-"


def _kernels(profiled: list[tuple[Contender, Explained]]) -> list[list[str]]:
    return [
        [contender.title, primitive, kernel, f"{share:.0%}"]
        for contender, profile in profiled
        for (primitive, kernel), share in list(profile.kernels.items())[:MOST_KERNELS]
        if share >= KERNEL_SHARE
    ]
