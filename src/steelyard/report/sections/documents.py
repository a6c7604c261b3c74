"""The documents that a study redoes: authors, title, and the place of every entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis import published
from steelyard.analysis.published_tables import lines
from steelyard.report.blocks import Emphasis, Facts, Heading, Paragraph
from steelyard.report.sections.published import anchor

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.analysis.published_tables import Table
    from steelyard.published.gathering import Source
    from steelyard.report.blocks import Block
    from steelyard.report.sections.run_subject import RunSubject


def blocks(subject: RunSubject) -> Sequence[Block]:
    """Return the section; nothing for a study without documents."""
    if not subject.view.published:
        return []
    documents = published.documents(subject.view)
    if not documents.answer:
        return []
    places = [anchor(each) for each in documents.tables]
    entries = [each for number, each in enumerate(documents.tables) if places.index(places[number]) == number]
    return [block for each in documents.published.sources for block in _source(each, entries)]


def _source(source: Source, entries: Sequence[Table]) -> Iterator[Block]:
    yield Heading(source.cite)
    authors, rest = ", ".join(source.authors), f". {source.source}. Year: {source.year}."
    yield Paragraph((f"{authors}: ", Emphasis(source.title), rest))
    own = [each for each in entries if each.published.cite == source.cite]
    pairs = [
        (each.published.entry.partition(":")[2], f"{each.published.where}, {lines(each.published.lines)} of the text")
        for each in own
    ]
    yield Facts(pairs, anchors=[anchor(each) for each in own])
