"""What a section consists of. Page and terminal are each written once, for these blocks.

A block says what is shown and in which media; how it looks is decided by the writers: `page` and `terminal`. Texts are plain.
In texts with `terms`, the page marks explained terms, intervals in brackets and `code`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from steelyard.analysis.notices import Notice
    from steelyard.report.figures import Figure
    from steelyard.report.styles import Style


class Medium(StrEnum):
    """Where a block is shown: on the page on a screen, on the printed page, on the terminal."""

    SCREEN = "screen"
    PAPER = "paper"
    TERMINAL = "terminal"


EVERYWHERE = frozenset(Medium)
ON_PAGE = frozenset({Medium.SCREEN, Medium.PAPER})
ON_SCREEN = frozenset({Medium.SCREEN})
ON_TERMINAL = frozenset({Medium.TERMINAL})
ON_DISPLAYS = ON_SCREEN | ON_TERMINAL


@dataclass(frozen=True, kw_only=True)
class Block:
    """The common part of all blocks. `kind`: the name by which a writer knows the block."""

    kind: ClassVar[str]
    media: frozenset[Medium] = ON_PAGE


@dataclass(frozen=True)
class Strong:
    """A part of a paragraph that stands out."""

    kind: ClassVar = "strong"
    text: str


@dataclass(frozen=True)
class Code:
    """A part of a paragraph that is a name in a record: of a group, a file, a hash."""

    kind: ClassVar = "code"
    text: str


@dataclass(frozen=True)
class Terms:
    """A part of a paragraph in which explained terms are marked, also if they are not in the others."""

    kind: ClassVar = "terms"
    text: str


@dataclass(frozen=True)
class Small:
    """A part of a paragraph in smaller letters: where something stands."""

    kind: ClassVar = "small"
    text: str


@dataclass(frozen=True)
class Link:
    """A part of a paragraph that leads to another place of the page. `anchor`: the name of that place."""

    kind: ClassVar = "link"
    text: str
    anchor: str


@dataclass(frozen=True)
class Emphasis:
    """A part of a paragraph that is the title of a work."""

    kind: ClassVar = "emphasis"
    text: str


@dataclass(frozen=True)
class Break:
    """The end of a line within a paragraph."""

    kind: ClassVar = "break"


Part = str | Strong | Emphasis | Code | Small | Link | Break | Terms


@dataclass(frozen=True)
class Heading(Block):
    """The heading of what follows. `level`: 2 is that of a section."""

    kind: ClassVar = "heading"
    text: str
    level: int = 3
    code: str = ""
    terms: bool = False


class Role(StrEnum):
    """The role of a paragraph: the finding of its section, an explanation, a caution, a detail, or none of these."""

    PLAIN = ""
    FINDING = "sentence"
    ASIDE = "aside"
    ALARM = "alarm mild"
    DETAIL = "detail"


@dataclass(frozen=True)
class Headline(Block):
    """The first sentence of a page. `label`: its subject; empty if the page is about one thing."""

    kind: ClassVar = "headline"
    text: str
    label: str = ""


@dataclass(frozen=True)
class Paragraph(Block):
    """A paragraph: parts that follow each other."""

    kind: ClassVar = "paragraph"
    parts: tuple[Part, ...]
    role: Role = Role.PLAIN
    terms: bool = False


def finding(text: str, *more: Part, terms: bool = False, media: frozenset[Medium] = ON_PAGE) -> Paragraph:
    """Return the finding of a section in a strong sentence, and what follows from it."""
    return Paragraph((Strong(text), *more), Role.FINDING, terms, media=media)


def aside(*parts: Part, terms: bool = False, media: frozenset[Medium] = ON_PAGE) -> Paragraph:
    """Return an explanation."""
    return Paragraph(parts, Role.ASIDE, terms, media=media)


def line(*parts: Part) -> Paragraph:
    """Return what a terminal shows in place of a table."""
    return Paragraph(parts, media=ON_TERMINAL)


@dataclass(frozen=True)
class Cell:
    """A value of a table, and below it a note, such as its interval; each line of the note is set apart.

    `state`: the certificate or the judgement that it stands for; `link`: its target. `code`: whether the value is a name in a
    record. `long_value`, `long_note`: whether the value or the note is a sentence, which may break into lines.
    """

    value: str
    note: str = ""
    state: str = ""
    link: str = ""
    code: bool = False
    long_value: bool = False
    long_note: bool = False


@dataclass(frozen=True)
class Row:
    """A row of a table. `title` names it, and may be a link to a page of its own; `sign`: the style of its contender; `state`:
    that of its certificate.

    `anchor`: the name by which other places link to the row, if there is one. `below`: a sentence under the whole row, on the
    page.
    """

    title: Cell
    cells: Sequence[Cell]
    sign: Style | None = None
    state: str = ""
    anchor: str = ""
    below: str = ""


@dataclass(frozen=True)
class Column:
    """A column of a table. `width`: the narrowest terminal, in characters, that shows it; 0: only the page on a screen does.

    `terms`: whether the heading is an explained term; `help`: its explanation, empty for a term of every page. `breaks`: whether
    a terminal may break its values into lines. `least`: characters that a terminal leaves to the column, at least.
    """

    heading: str
    width: int = 80
    terms: bool = False
    help: str = ""
    breaks: bool = False
    least: int = 0


@dataclass(frozen=True)
class Table(Block):
    """A table. `title` is that of its comparison; `caption` may be empty where a heading says the same.

    In a table with `cards` every value may have an interval below it. A narrow screen shows every row as a card.
    """

    kind: ClassVar = "table"
    title: str
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    cards: bool = False


def plain_table(
    title: str,
    caption: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    signs: Sequence[Style] = (),
    media: frozenset[Medium] = ON_PAGE,
) -> Table:
    """Return a table of texts, of which the first in each row names it. `signs`: the styles of the rows, if they have any."""
    made = [
        Row(Cell(first), tuple(map(Cell, rest)), signs[place] if signs else None)
        for place, (first, *rest) in enumerate(rows)
    ]
    return Table(title, caption, tuple(map(Column, headings)), made, media=media)


@dataclass(frozen=True)
class Plots(Block):
    """Plots beside each other, where there is room. `drawn`: the plots, or what draws them once they are shown."""

    kind: ClassVar = "plots"
    drawn: Sequence[Figure] | Callable[[], Sequence[Figure]]
    media: frozenset[Medium] = field(default=ON_SCREEN, kw_only=True)

    @cached_property
    def figures(self) -> Sequence[Figure]:
        """The plots."""
        return self.drawn() if callable(self.drawn) else self.drawn


@dataclass(frozen=True)
class Facts(Block):
    """Names with their values. `named`: the names that are explained terms; `anchors`: the names of the places of the pairs.

    `code`: whether the names are those of a record.
    """

    kind: ClassVar = "facts"
    pairs: Sequence[tuple[str, str | tuple[Part, ...]]]
    terms: bool = False
    named: Collection[str] = ()
    anchors: Sequence[str] = ()
    code: bool = False


@dataclass(frozen=True)
class Reasons(Block):
    """Names with a sentence for each: what to choose for a goal, or why something is missing."""

    kind: ClassVar = "reasons"
    pairs: Sequence[tuple[str, str]]
    terms: bool = False
    media: frozenset[Medium] = field(default=ON_SCREEN, kw_only=True)


@dataclass(frozen=True)
class Bullets(Block):
    """A list of short texts. `clauses`: whether they belong to the headline before."""

    kind: ClassVar = "bullets"
    items: Sequence[tuple[Part, ...]]
    terms: bool = False
    clauses: bool = False


@dataclass(frozen=True)
class Proof:
    """A certificate. `anchor`: the name of its place; `state` and `badge`: whether there is one, for the style and in words.

    `more`: blocks that are shown when they are asked for.
    """

    anchor: str
    state: str
    badge: str
    title: str
    text: str
    more: Sequence[Block]


@dataclass(frozen=True)
class Proofs(Block):
    """Certificates, with a badge each."""

    kind: ClassVar = "proofs"
    proofs: Sequence[Proof]


@dataclass(frozen=True)
class Notices(Block):
    """Warnings or notes: severity, subjects, sentences and advice of each kind."""

    kind: ClassVar = "notices"
    notices: Sequence[Notice]


@dataclass(frozen=True)
class Command(Block):
    """A command that can be typed."""

    kind: ClassVar = "command"
    text: str


@dataclass(frozen=True)
class Fold(Block):
    """Blocks that are shown when they are asked for, or at once if `opened`. On paper and on a terminal they are not."""

    kind: ClassVar = "fold"
    summary: str
    blocks: Sequence[Block]
    code: str = ""
    opened: bool = False
    media: frozenset[Medium] = field(default=ON_SCREEN, kw_only=True)


@dataclass(frozen=True)
class Panel(Block):
    """Blocks under a heading of their own, set apart from those before. On a terminal, the heading may be empty."""

    kind: ClassVar = "panel"
    heading: str
    blocks: Sequence[Block]
    terms: bool = False
    media: frozenset[Medium] = field(default=ON_SCREEN, kw_only=True)


def helps(texts: Iterable[tuple[str, str]] | Mapping[str, str], end: str = ".") -> list[Part]:
    """Return explanations of names as the parts of a paragraph: **name**: text."""
    pairs = texts.items() if isinstance(texts, Mapping) else texts
    return [part for name, text in pairs for part in (" ", Strong(name), f": {text}{end}")]


def figures(blocks: Iterable[Block]) -> list[Figure]:
    """Return all figures in blocks, in their order."""
    found: list[Figure] = []
    for block in blocks:
        if isinstance(block, Plots):
            found += block.figures
        elif isinstance(block, (Fold, Panel)):
            found += figures(block.blocks)
    return found


def explanations(blocks: Iterable[Block]) -> dict[str, str]:
    """Return {heading: explanation} of the columns of all tables in blocks, where they have one."""
    explained: dict[str, str] = {}
    for block in blocks:
        if isinstance(block, Table):
            explained |= {column.heading: column.help for column in block.columns if column.help}
        elif isinstance(block, (Fold, Panel)):
            explained |= explanations(block.blocks)
    return explained


def within(blocks: Iterable[Block], media: frozenset[Medium]) -> list[Block]:
    """Return the blocks that one of the media shows, those inside of others included."""
    return [
        replace(block, blocks=within(block.blocks, media)) if isinstance(block, (Fold, Panel)) else block
        for block in blocks
        if block.media & media
    ]
