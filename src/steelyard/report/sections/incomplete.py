"""What was not measured or is incomplete, and remarks about contenders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis import formatting, incomplete
from steelyard.report.blocks import ON_SCREEN, ON_TERMINAL, Heading, Panel, Reasons, Strong, aside

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.analysis.model import Comparison
    from steelyard.report.blocks import Block
    from steelyard.report.sections.subject import Subject

HEADING = "Not measured or incomplete"


def blocks(subject: Subject) -> Sequence[Block]:
    """Return the section: names with reasons on the page, lines on the terminal."""
    return [*_on_page(subject.comparison), *_on_terminal(subject.comparison)]


def _on_page(comparison: Comparison) -> Iterator[Block]:
    if reasons := incomplete.reasons(comparison):
        yield Heading(HEADING, media=ON_SCREEN)
        yield Reasons([(reason.title, reason.text) for reason in reasons])
    for framework, remark in comparison.remarks:
        yield aside(Strong(f"{framework}."), f" {remark}", media=ON_SCREEN)


def _on_terminal(comparison: Comparison) -> Iterator[Block]:
    lines = [
        f"{reason.title}: {'Not measured. ' if reason.skipped else ''}{reason.text}"
        for reason in incomplete.reasons(comparison)
    ]
    lines += [
        f"{contender.title}: set to {named}."
        for contender in comparison.contenders
        if (named := formatting.not_in_title(contender))
    ]
    lines += [f"{framework}: {remark}" for framework, remark in comparison.remarks]
    if lines:
        yield Panel("", [aside(text, media=ON_TERMINAL) for text in lines], media=ON_TERMINAL)
