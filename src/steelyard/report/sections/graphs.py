"""The graph of a step: its operations before and after optimisation, what passes remove, and the speed that they bring."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis import graphs
from steelyard.analysis.graphs import NONE, added, by_passes, without_passes, words_of
from steelyard.profiles.graphs import COSTS, HELP
from steelyard.report.blocks import Heading, Panel, Strong, aside, helps, plain_table
from steelyard.statistics.answer import is_wide
from steelyard.statistics.sentences import NOT_ENOUGH
from steelyard.wording import formatted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.analysis.model import Comparison, Contender
    from steelyard.profiles.graphs import Counted
    from steelyard.report.blocks import Block
    from steelyard.report.sections.subject import Subject

HEADING = "The graph of a step"
REMOVE = "What passes remove"
BRING = "What passes bring"
CAPTION = (
    "Operations of the graph of one training step, counted in a process of its own that measures nothing. The first line of a "
    "contender is the graph as its framework traced it. Counts of two frameworks are not compared: one operation of the one may "
    "be several of the other."
)
PASSES_CAPTION = (
    "The same step with other choices of passes. What is removed is the difference from the graph without any pass; a number "
    "below zero means that operations were added. Passes depend on each other, so what a pass removes alone is not what it adds "
    "to the others. Both are shown."
)
SPEED_CAPTION = (
    "A loss of speed is 1 less the ratio of speeds, and the time that is added is the ratio of times less 1. Both are the same "
    "measurement in other words, and large values differ: half the speed is twice the time."
)
HEADINGS = ["contender", "stage", "operations", *COSTS, "of the first"]
PASSES_HEADINGS = [
    "passes",
    "operations",
    "removed",
    "share",
    *(f"removed, {cost}" for cost in COSTS),
    "what one pass adds",
]
SPEED_HEADINGS = ["without", "compared with", "loss of speed", "interval", "added time", "interval"]


def blocks(subject: Subject) -> Sequence[Block]:
    """Return the section; nothing where no graph was to be counted."""
    comparison = subject.comparison
    if not any(each.graphs or each.no_graph for each in comparison.contenders):
        return []
    return [Panel(HEADING, list(_content(comparison)))]


def _content(comparison: Comparison) -> Iterator[Block]:
    counted = [each for each in comparison.contenders if each.graphs]
    yield aside(CAPTION, *helps(HELP))
    if counted:
        yield plain_table(comparison.title, HEADING, HEADINGS, [row for each in counted for row in _stages(each)])
    for each in counted:
        if rows := _removed(each.graphs):
            yield Heading(f"{REMOVE}: {without_passes(each)}", level=4)
            yield aside(PASSES_CAPTION)
            yield plain_table(comparison.title, REMOVE, PASSES_HEADINGS, rows)
    if speeds := _speeds(comparison):
        yield Heading(BRING, level=4)
        yield aside(SPEED_CAPTION)
        yield plain_table(comparison.title, BRING, SPEED_HEADINGS, speeds)
    for each in comparison.contenders:
        if each.no_graph:
            yield aside(Strong(each.title), f" has no counts. {each.no_graph}")


def _stages(contender: Contender) -> list[list[str]]:
    stages = [each for each in contender.graphs if not each.stage.passes]
    first = stages[0]
    return [
        [
            contender.title,
            each.stage.stage,
            f"{each.total:,} {each.stage.unit}",
            *(f"{each.costs[cost]:,}" for cost in COSTS),
            f"{each.total / first.total:.1%}" if each is not first and each.stage.unit == first.stage.unit else "",
        ]
        for each in stages
    ]


def _removed(graphs: Sequence[Counted]) -> list[list[str]]:
    found = by_passes(graphs)
    base = found.get(NONE)
    if not base:
        return []
    return [[NONE, f"{base.total:,}", *[""] * (len(PASSES_HEADINGS) - 2)]] + [
        [
            words_of(value),
            f"{each.total:,}",
            f"{base.total - each.total:,}",
            f"{1 - each.total / base.total:.1%}",
            *(f"{base.costs[cost] - each.costs[cost]:,}" for cost in COSTS),
            added(value, found),
        ]
        for value, each in found.items()
        if value != NONE
    ]


def _speeds(comparison: Comparison) -> list[list[str]]:
    """Return the rows of the loss of speed without some passes."""
    return [
        [
            each.title,
            whole.title,
            *_change(1 - 1 / ratio.value, 1 - 1 / ratio.low, 1 - 1 / ratio.high, wide),
            *_change(ratio.value - 1, ratio.low - 1, ratio.high - 1, wide),
        ]
        for each, whole, ratio in graphs.without_some_passes(comparison)
        for wide in (is_wide(ratio.low, ratio.high),)
    ]


def _change(value: float, low: float, high: float, wide: bool) -> tuple[str, str]:
    return _percent(value), NOT_ENOUGH if wide else f"{_percent(low)} to {_percent(high)}"


def _percent(value: float) -> str:
    return f"{100 * value:+.1f} %" if abs(value) < 10 else formatted.NO_VALUE
