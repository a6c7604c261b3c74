"""Where the time of a step goes, by class of operations, and what makes one contender slower than another."""

import itertools
from dataclasses import dataclass
from typing import Any

from steelyard.profiles import waterfall
from steelyard.profiles.breakdown import Breakdown
from steelyard.profiles.classes import CLASSES, HELP
from steelyard.profiles.recorded import Explained
from steelyard.report import figures, notation
from steelyard.report.figures import Figure
from steelyard.report.model import Comparison, Contender
from steelyard.report.words import said
from steelyard.statistics.sentences import listed

COSTLY = 1.2
"""Where the profiler slows a step down by more than this, shares are those of the profiled step only."""
CAPTION = (
    "Time of one {step} by class of operations, from the profiler of each framework, in a process of its own that is in no "
    "verdict. The classes of a contender add up to its profiled {step}. Where operations of several threads overlap, each counts "
    "by its share."
)
CHANGE = (
    "From the {step} of the one to that of the other: what each class of operations adds (to the right) or saves. "
    "The changes add up to the difference of the two profiled {steps}."
)
ROW_PIXELS = 30

Profiled = tuple[Contender, Explained]


@dataclass(frozen=True)
class Section:
    """What the page shows: headings and rows of the table, sentences, and the plots."""

    headings: list[str]
    rows: list[list[str]]
    sentences: list[str]
    reasons: list[tuple[str, str]]
    caption: str
    helps: list[tuple[str, str]]
    figures: list[Figure]
    files: list[tuple[str, str]]


def section(comparison: Comparison) -> Section | None:
    """Return the section of a comparison; None where no contender was profiled."""
    profiled = [(each, each.profile) for each in comparison.contenders if each.profile]
    reasons = [(each.title, each.not_profiled) for each in comparison.contenders if each.not_profiled]
    if not profiled:
        return Section([], [], [], reasons, "", [], [], []) if reasons else None
    parts = [profile.breakdown for _, profile in profiled]
    kinds = [kind for kind in CLASSES if any(each.classes.get(kind) for each in parts)]
    rows = [[kind, *(_share(each, kind) for each in parts)] for kind in kinds]
    rows += [
        [said("profiled {step}", comparison.task), *(notation.duration(each.step_ns) for each in parts)],
        ["slowed down by the profiler", *(f"{each.slow_down:.2f}x" for each in parts)],
        [said("operations per {step}", comparison.task), *(f"{each.dispatches:,.0f}" for each in parts)],
    ]
    pairs = list(itertools.pairwise(profiled))
    plots = [_figure(comparison, *pairs[0])] if pairs else []
    return Section(
        headings=["class", *(contender.title for contender, _ in profiled)], rows=rows,
        sentences=[difference(*first, *second, comparison.task) for first, second in pairs],
        reasons=reasons, caption=said(CAPTION, comparison.task),
        helps=[(kind, HELP[kind]) for kind in kinds if kind in HELP], figures=plots,
        files=[(contender.title, name) for contender, profile in profiled for name in profile.files],
    )  # fmt: skip


def difference(first: Contender, a: Explained, second: Contender, b: Explained, task: str) -> str:
    """Return what makes the two steps differ, as a sentence."""
    falls = waterfall.waterfall(a.breakdown.classes, b.breakdown.classes)
    change = b.breakdown.step_ns - a.breakdown.step_ns
    causes = [
        f"{each.kind} ({'+' if each.change_ns > 0 else '-'}{notation.duration(abs(each.change_ns))})"
        for each in waterfall.largest(falls)
    ]
    costly = [who.title for who, found in ((first, a), (second, b)) if found.breakdown.slow_down > COSTLY]
    doubt = f" The profiler slows {listed(costly)} down, so these are parts of the profiled step." if costly else ""
    more = "longer" if change > 0 else "less time"
    return (
        f"A {said('{step}', task)} of {second.title} takes {notation.duration(abs(change))} {more} than one of {first.title}: "
        f"{listed(causes)}.{doubt}"
    )


def _share(found: Breakdown, kind: str) -> str:
    value = found.classes.get(kind, 0.0)
    return f"{notation.duration(value)} ({value / found.step_ns:.1%})" if value else "-"


def _figure(comparison: Comparison, one: Profiled, other: Profiled) -> Figure:
    """Return the waterfall: a total, a bar for each class that begins where the one before ended, and the other total."""
    (first, a), (second, b) = one, other
    falls = waterfall.waterfall(a.breakdown.classes, b.breakdown.classes)
    start, end = sum(each.first_ns for each in falls), sum(each.second_ns for each in falls)
    scale, unit = notation.time_unit(max(start, end))
    shown = [each for each in falls if abs(each.change_ns) > 1e-3 * max(start, end)]
    texts = [
        (first.title, notation.duration(start)),
        *(
            (each.kind, f"{'+' if each.change_ns > 0 else '-'}{notation.duration(abs(each.change_ns))}")
            for each in shown
        ),
        (second.title, notation.duration(end)),
    ]
    bases, lengths, at = [0.0], [start], start
    for each in shown:
        bases.append(min(at, at + each.change_ns))
        lengths.append(abs(each.change_ns))
        at += each.change_ns
    bases.append(0.0)
    lengths.append(end)
    colours = ["#636784", *("#c17013" if each.change_ns > 0 else "#6892d1" for each in shown), "#636784"]
    bar: dict[str, Any] = {
        "type": "bar", "orientation": "h", "base": figures.rounded(each / scale for each in bases),
        "x": figures.rounded(each / scale for each in lengths), "y": list(range(len(bases))), "width": 0.4,
        "marker": {"color": colours}, "hoverinfo": "skip",
    }  # fmt: skip
    layout = figures.rows(
        ROW_PIXELS * len(texts) + 84, figures.axis(unit, nticks=6, rangemode="tozero"), texts, -0.9, 7
    )
    title = f"From {first.title} to {second.title}"
    return Figure(f"waterfall/{comparison.group}", title, said(CHANGE, comparison.task), [bar], layout, wide=True)
