"""Write one self-contained HTML page of something else than a run: runs side by side, a history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plotly.offline import get_plotlyjs

from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard.report import blocks, page
from steelyard.report.blocks import ON_PAGE
from steelyard.report.terms import TERMS, Glossary

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from steelyard.report.blocks import Block, Medium

TEMPLATE = "small_page.html.jinja"


@dataclass(frozen=True)
class PageSection:
    """A section of a page: heading, the name of its place, and blocks. `code`: a name in the record, beside the heading."""

    title: str
    anchor: str
    blocks: Sequence[Block]
    media: frozenset[Medium] = ON_PAGE
    code: str = ""


@dataclass(frozen=True)
class SmallPage:
    """A page. `name` stands in the title of the window, `mark` beside the name of the program; `answer` comes first.

    `explained`: the terms that it explains. `draws`: whether it may have plots, which need a library; `sorts`: whether its tables
    of the kind `cards` can be sorted and copied.
    """

    name: str
    mark: str
    heading: str
    question: str
    answer: Sequence[Block]
    sections: Sequence[PageSection]
    explained: Collection[str]
    draws: bool = False
    sorts: bool = False


def render(shown: SmallPage) -> str:
    """Return the page as HTML."""
    style, drawing, tables = page.read("style.css"), page.read("draw.js"), page.read("tables.js")
    plots = [figure for section in shown.sections for figure in blocks.figures(section.blocks)]
    terms = Glossary({name: TERMS[name] for name in shown.explained})
    scripts, styles = ([drawing, get_plotlyjs()], [style, ""]) if shown.draws else ([], [style])
    scripts = [tables, *scripts] if shown.sorts else scripts
    return (
        page.environment(terms)
        .get_template(TEMPLATE)
        .render(
            page=shown,
            terms=terms.texts,
            style=style,
            drawing=drawing,
            tables=tables,
            policy=page.policy(scripts, styles),
            figures=page.embedded([figure.as_dict() for figure in plots]),
            library=page.library() if plots else "",
        )
    )


def write(shown: SmallPage, path: Path) -> Path:
    """Write the page; returns its path. UserError: it cannot be written."""
    try:
        atomic.write_text(path, render(shown))
    except OSError as error:
        raise UserError(f"The page {path} cannot be written ({error.strerror}). Name another with --output.") from None
    return path
