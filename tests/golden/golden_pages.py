"""A page as text: what a reader sees, in its order, without markup; and the data of its figures."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
BLOCKS = {
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "br",
    "caption",
    "dd",
    "div",
    "dl",
    "dt",
    "figcaption",
    "figure",
    "footer",
    "header",
    "li",
    "main",
    "nav",
    "noscript",
    "ol",
    "p",
    "pre",
    "section",
    "summary",
    "table",
    "tbody",
    "thead",
    "title",
    "tr",
    "ul",
    *HEADINGS,
}
# What stands before the text of an element.
SIGNS = {
    **{tag: f"{sign} " for tag, sign in HEADINGS.items()},
    "li": "- ",
    "summary": "[fold] ",
    "caption": "[table] ",
    "figcaption": "[caption] ",
    "title": "[title] ",
    "dd": "  = ",
}
# What is not shown; and headings of columns that a narrow screen repeats in every cell.
UNSEEN, REPEATED = {"script", "style"}, "label-in-card"
CELLS = {"td", "th"}
EMPTY = {"meta", "br", "link", "img", "input", "hr", "wbr"}
# Texts that an element has besides its content: for those who cannot see it, or when a pointer rests on it.
TEXTS = ("alt", "aria-label", "title")
SEEN_ONLY_ON = re.compile(r"\b(screen|paper|explanation)\b")
# Numbers of a figure are rounded to so many digits.
DIGITS = 4
# Of more numbers in one row, the ends and some between them stand for all, with their sum.
MOST_NUMBERS = 12


class _Reader(HTMLParser):
    """Collects lines; `indent` grows inside of what can be folded away."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._text, self._sign, self._indent, self._in_row = "", "", 0, False
        self._open: list[bool] = []  # of each open element: whether its text is left out

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag not in EMPTY:
            self._open.append(tag in UNSEEN or REPEATED in attributes.get("class", ""))
        if any(self._open):
            return
        if tag in BLOCKS and not (self._in_row and tag != "tr"):
            self.flush()
        if tag == "tr":
            self._in_row = True
        if tag in CELLS and self._text.strip():
            self._text += " | "
        if tag == "details":
            self.flush()
            self._indent += 1
        if tag in SIGNS and not self._in_row:
            self._sign = SIGNS[tag]
        self._describe(tag, attributes)
        if tag == "small":
            self._text += " "

    def _describe(self, tag: str, attributes: dict[str, str]) -> None:
        """Add what an element says outside of its content."""
        if tag in BLOCKS and (medium := SEEN_ONLY_ON.search(attributes.get("class", ""))) and not self._in_row:
            self._text += f"[{medium[1]}] "
        for name in TEXTS if tag != "button" else ():
            if text := " ".join(attributes.get(name, "").split()):
                self._text += f"[{name}: {text}] "
        if "data-figure" in attributes:
            self._text += f"[plot {attributes['data-figure']}] "
        if tag == "button":
            self._text += "_"
        if tag == "a":
            self._text += f"[to {attributes.get('href', '')}] "

    def handle_endtag(self, tag: str) -> None:
        left_out = any(self._open)
        if tag not in EMPTY:
            self._open.pop()
        if left_out:
            return
        if tag == "button":
            self._text += "_"
        if tag == "tr":
            self._in_row = False
        if tag in BLOCKS and not self._in_row:
            self.flush()
        if tag == "details":
            self.flush()
            self._indent -= 1

    def handle_data(self, data: str) -> None:
        if not any(self._open):
            self._text += data

    def flush(self) -> None:
        """End a line; one without words is left out."""
        words = " ".join(self._text.split())
        if words:
            self.lines.append("  " * self._indent + self._sign + words)
            self._sign = ""
        self._text = ""


def text_of(page: str) -> str:
    """Return the texts of a page, each block on a line.

    `_term_` is a button that explains a term; `[fold]` can be opened; `[screen]` is not on paper; other brackets hold texts for
    those who do not see an element, and the targets of links.
    """
    reader = _Reader()
    reader.feed(page)
    reader.close()
    reader.flush()
    return "\n".join(reader.lines) + "\n"


def figures_of(page: str) -> str:
    """Return the data and the layout of all figures of a page as text, one property on a line."""
    holder = re.search(r'<script[^>]*id="figures"[^>]*>(.*?)</script>', page, re.DOTALL)
    figures = {each["name"]: _lines(each) for each in json.loads(holder[1])} if holder else {}
    shared = [line for line in next(iter(figures.values()), []) if all(line in lines for lines in figures.values())]
    found = ["== every figure", *shared]
    for name, lines in figures.items():
        found += [f"== {name}", *(line for line in lines if line not in shared)]
    return "\n".join(found) + "\n" if figures else ""


def _lines(figure: dict[str, Any]) -> list[str]:
    """Return the properties of a figure."""
    parts = {f"data[{number}]": trace for number, trace in enumerate(figure["data"])}
    parts["layout"] = figure["layout"]
    parts |= {name: value for name, value in figure.items() if name not in ("name", "data", "layout")}
    return [line for name, part in parts.items() for line in _properties(name, part)]


def _properties(path: str, value: Any) -> list[str]:
    if isinstance(value, dict) and value and not any(isinstance(each, dict | list) for each in value.values()):
        return [f"{path}: {', '.join(f'{name} {_plain(each)}' for name, each in value.items())}"]
    if isinstance(value, dict) and value:
        return [line for name, each in value.items() for line in _properties(f"{path}.{name}", each)]
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        return [line for place, each in enumerate(value) for line in _properties(f"{path}[{place}]", each)]
    return [f"{path} = {_short(value)}"]


def _short(value: Any) -> str:
    """Return a value as text; of many numbers some, and the sum of all."""
    if not isinstance(value, list):
        return _plain(value)
    numbers = [each for each in value if isinstance(each, int | float) and not isinstance(each, bool)]
    if len(value) <= MOST_NUMBERS or len(numbers) + value.count(None) < len(value):
        return f"[{', '.join(map(_plain, value))}]"
    places = sorted({round(place * (len(value) - 1) / (MOST_NUMBERS - 1)) for place in range(MOST_NUMBERS)})
    shown = ", ".join(_plain(value[place]) for place in places)
    return f"{len(value)} numbers, sum {_plain(float(sum(numbers)))}: {shown}"


def _plain(value: Any) -> str:
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
