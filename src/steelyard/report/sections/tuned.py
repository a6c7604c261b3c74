"""The settings that a search tried before the rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis import tuned
from steelyard.report.blocks import Paragraph, Role, aside, line, plain_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.report.blocks import Block
    from steelyard.report.sections.run_subject import RunSubject

HEADING = "Settings that were tried"
CAPTION = (
    "Every candidate ran once, the faster half again, and so on. These times chose what the rounds measured. They are in no "
    "verdict: the best of many is partly luck, and a candidate that ran once may have had a bad moment."
)
HEADINGS = ["settings", "processes", "least ms per step", "outcome"]


def blocks(subject: RunSubject) -> Sequence[Block]:
    """Return the section; nothing where nothing was searched."""
    sentence = tuned.sentence(subject.view)
    if not sentence:
        return []
    return [
        Paragraph((sentence,), Role.FINDING),
        aside(CAPTION),
        plain_table("Search", HEADING, HEADINGS, tuned.rows(subject.view)),
        line(sentence),
    ]
