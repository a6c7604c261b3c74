"""Where the time of a step goes: classes of operations, numbers of profiles, waterfalls, kernels, and the files of traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis.where_time_goes import traces, where_time_goes
from steelyard.profiles.classes import HELP, UNATTRIBUTED
from steelyard.report.blocks import (
    ON_SCREEN,
    Bullets,
    Code,
    Fold,
    Panel,
    Paragraph,
    Plots,
    Role,
    Strong,
    aside,
    helps,
    plain_table,
)
from steelyard.report.plots import waterfalls
from steelyard.report.sections import profile_numbers
from steelyard.wording import notation
from steelyard.wording.formatted import NO_VALUE
from steelyard.wording.task_words import fill

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.analysis.where_time_goes import Profiled, WhereTimeGoes
    from steelyard.profiles.breakdown import Breakdown
    from steelyard.report.blocks import Block
    from steelyard.report.sections.subject import Subject

HEADING = "Where the time goes"
KERNELS = "Kernels that oneDNN chose"
TRACES = "Traces, in the folder of the run"
CAPTION = (
    "Time of one {step} by class of operations, from the profiler of each framework, in a process of its own that is in no "
    "verdict. The classes of a contender add up to its profiled {step}. Where operations of several threads overlap, each counts "
    "by its share."
)
KERNELS_CAPTION = (
    "oneDNN is the library that computes convolutions, matrix products and the like for several frameworks. Its log, where "
    "a framework can write it, names the kernel that it chose for each."
)
KERNEL_HEADINGS = ("", "primitive", "kernel", "share of oneDNN's time")
WHY = "Why does one take longer? "
PROFILE = " profiles every contender and adds to this page where the time goes."


def blocks(subject: Subject) -> Sequence[Block]:
    """Return the section; in the first comparison of a run without profiles, the command that takes them."""
    comparison = subject.comparison
    known = where_time_goes(comparison)
    if not known:
        return _how_to(subject)
    return [Panel(HEADING, list(_on_page(known, subject))), *profile_numbers.on_terminal(comparison)]


def _how_to(subject: Subject) -> list[Block]:
    """Return the command that profiles a run, where contenders are compared and the page has not yet named it."""
    comparison = subject.comparison
    if comparison is not subject.among[0] or len(comparison.contenders) < 2:
        return []
    return [aside(WHY, Code(f"steelyard explain --run {subject.run}"), PROFILE, media=ON_SCREEN)]


def _on_page(known: WhereTimeGoes, subject: Subject) -> Iterator[Block]:
    comparison = subject.comparison
    for sentence in known.sentences:
        yield Paragraph((sentence,), Role.FINDING)
    if known.profiled:
        explanations = helps([(kind, HELP[kind]) for kind in known.classes if kind in HELP])
        yield aside(fill(CAPTION, comparison.task), *explanations)
        yield plain_table(comparison.title, HEADING, headings(known), rows(known, comparison.task))
        yield from profile_numbers.on_page(comparison)
    if known.compared:
        first = known.profiled[0]
        yield Plots(lambda: [waterfalls.figure(comparison, first, each) for each in known.compared])
    if kernels := known.kernels:
        cells = [(each.contender.title, each.primitive, each.kernel, f"{each.share:.0%}") for each in kernels]
        yield Fold(KERNELS, [aside(KERNELS_CAPTION), plain_table(comparison.title, KERNELS, KERNEL_HEADINGS, cells)])
    for contender, reason in known.reasons:
        yield aside(Strong(contender.title), f" could not be profiled. {reason}")
    if files := [(f"{contender.title}: ", Code(name)) for contender, name in traces(known)]:
        yield Fold(TRACES, [Bullets(files)])


def headings(known: WhereTimeGoes) -> list[str]:
    """Return the headings of the table of classes: a column for each contender."""
    return ["class", *(each.contender.title for each in known.profiled)]


def rows(known: WhereTimeGoes, task: str) -> list[list[str]]:
    """Return the rows of the table: a class of operations in each, then the time of a step and the number of operations."""
    step, parts = fill("{step}", task), [each.profile.breakdown for each in known.profiled]
    return [
        *([kind, *(_share(each, kind) for each in parts)] for kind in known.classes),
        [f"profiled {step}", *(notation.duration(each.step_ns) for each in parts)],
        [f"{step} without the profiler", *(notation.duration(each.own_step_ns) for each in known.profiled)],
        [f"measured {step}, mean over rounds", *map(_measured, known.profiled)],
        [f"operations per {step}", *(f"{each.dispatches:,.0f}" for each in parts)],
    ]


def _share(breakdown: Breakdown, kind: str) -> str:
    value = breakdown.classes.get(kind, 0.0)
    shown = value or kind == UNATTRIBUTED
    return f"{notation.duration(value)} ({value / breakdown.step_ns:.1%})" if shown else NO_VALUE


def _measured(profiled: Profiled) -> str:
    """Return the step time that verdicts use, on the profiled input."""
    return notation.duration(profiled.speed.location.value_ns) if profiled.speed else NO_VALUE
