"""The terms that a page explains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.blocks import Facts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.report.blocks import Block
    from steelyard.report.sections.run_subject import RunSubject


def blocks(subject: RunSubject) -> Sequence[Block]:
    """Return the section."""
    return [Facts(list(subject.terms.items()))]
