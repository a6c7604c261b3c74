"""Cells of a study of which nothing could be measured, with the reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.blocks import ON_TERMINAL, Reasons, aside

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.report.blocks import Block
    from steelyard.report.sections.run_subject import RunSubject


def blocks(subject: RunSubject) -> Sequence[Block]:
    """Return the section; nothing where every group was measured."""
    pairs = [(f"{each.group}, {each.title}", each.reason) for each in subject.view.missing]
    lines = [aside(f"{name}: Not measured. {reason}", media=ON_TERMINAL) for name, reason in pairs]
    return [Reasons(pairs), *lines] if pairs else []
