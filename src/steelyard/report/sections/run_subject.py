"""What the sections of a whole run are about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from steelyard.report.blocks import ON_DISPLAYS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from steelyard.analysis.model import View
    from steelyard.report.blocks import Block, Medium


@dataclass(frozen=True)
class RunSubject:
    """A run, and the texts of the terms that its page explains; a terminal explains none."""

    view: View
    terms: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RunSection:
    """A section of a run: what it is called, the name of its place, and what makes its blocks.

    `before`: whether the page has it before the comparisons, and not after them. `in_navigation`: whether the navigation leads to
    it; `next_to`: the anchor of the section that it follows there, if that is not its place on the page. `last`: whether a
    terminal shows it at the end, next to the prompt.
    """

    title: str
    anchor: str
    blocks: Callable[[RunSubject], Sequence[Block]]
    media: frozenset[Medium] = ON_DISPLAYS
    before: bool = False
    in_navigation: bool = True
    next_to: str = ""
    last: bool = False
