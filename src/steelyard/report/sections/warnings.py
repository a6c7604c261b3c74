"""Every kind of warning once, with its subjects, its sentences and its advice; then the notes, which ask for nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis import notices
from steelyard.report.blocks import ON_TERMINAL, Fold, Notices, Panel, Paragraph, Role, Strong, line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.analysis.notices import ResultWarning
    from steelyard.report.blocks import Block
    from steelyard.report.sections.run_subject import RunSubject

NOTES = "Notes"


def blocks(subject: RunSubject) -> Sequence[Block]:
    """Return the section."""
    found = subject.view.warnings
    asking = [each for each in found if each.severity != notices.NOTE]
    notes = [each for each in found if each.severity == notices.NOTE]
    return [*_on_page(asking, notes), Panel("", list(_on_terminal(asking, notes)), media=ON_TERMINAL)]


def _on_page(asking: Sequence[ResultWarning], notes: Sequence[ResultWarning]) -> Iterator[Block]:
    if asking:
        yield Notices(notices.gather(asking))
    else:
        yield Paragraph(("No warnings.",))
    if notes:
        gathered = notices.gather(notes)
        yield Fold(f"{NOTES}, which ask for nothing ({len(gathered)})", [Notices(gathered)])


def _on_terminal(asking: Sequence[ResultWarning], notes: Sequence[ResultWarning]) -> Iterator[Block]:
    if asking:
        yield line(Strong("1 warning" if len(asking) == 1 else f"{len(asking)} warnings"))
        yield Notices(notices.gather(asking), media=ON_TERMINAL)
    if notes:
        yield Paragraph((Strong(NOTES),), Role.ASIDE, media=ON_TERMINAL)
        yield Notices(notices.gather(notes), media=ON_TERMINAL)
    if asking or notes:
        yield line("")
