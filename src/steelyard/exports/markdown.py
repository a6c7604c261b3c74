"""The verdict tables as Markdown: for a pull request, `$GITHUB_STEP_SUMMARY`, or a README."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from steelyard.exports import verdict_texts

if TYPE_CHECKING:
    from steelyard.analysis.model import View
    from steelyard.exports.verdict_texts import VerdictTable, VerdictTexts

SIGNS = {
    **{sign: f"\\{sign}" for sign in "\\`*_{}[]~!"},
    "<": "&lt;",
    ">": "&gt;",
    "&": "&amp;",
    "|": "&#124;",
    "$": "&#36;",
    # GitHub makes a link of a name or a number after these; a comment between the two is not shown.
    "@": "&#64;<!-- -->",
    "#": "&#35;<!-- -->",
}
"""Sign -> how it is written, so that it is no markup, no formula and no mention."""
SPECIAL = re.compile("[" + re.escape("".join(SIGNS)) + "]")
LINK = re.compile(r"(://|www\.)", re.IGNORECASE)
INTERVALS = "Ranges in brackets are 95 % confidence intervals over processes; ratios are paired by round."


def text(view: View) -> str:
    """Return the tables with their verdicts, warnings, machine, versions and command. Names of the record are escaped."""
    return of_texts(verdict_texts.of_view(view))


def of_texts(found: VerdictTexts) -> str:
    """Return the texts as Markdown."""
    parts = [part for table in found.tables for part in _table(table)]
    parts += [] if found.tables else ["Nothing was measured."]
    parts += [_items("Warnings", found.warnings), _items("Not in the tables", found.left_out)]
    parts.append("\n".join(f"- **{name}:** {escaped(value)}" for name, value in found.facts))
    parts += [INTERVALS if found.tables else "", f"Repeat it with:\n\n{_code(found.command)}" if found.command else ""]
    return "\n\n".join(filter(None, parts)) + "\n"


def escaped(value: str) -> str:
    """Return a text so that it is shown as it is: in one line, without links, tags, tables, lists or mentions."""
    line = SPECIAL.sub(lambda sign: SIGNS[sign[0]], " ".join(value.split()))
    line = LINK.sub(lambda found: f"{found[0][0]}<!-- -->{found[0][1:]}", line)
    return re.sub(r"^(\d*)([-+=]|[.)](?=\s|$))", r"\1\\\2", line)


def one_line(text: str) -> str:
    """Return a text in one line."""
    return " ".join(text.split())


def _table(table: VerdictTable) -> list[str]:
    lines = [table.headings, tuple("---" if place < 2 else "---:" for place in range(len(table.headings))), *table.rows]
    cells = [row if place == 1 else tuple(map(escaped, row)) for place, row in enumerate(lines)]
    verdict = f"**{escaped(table.headline)}** {escaped(table.sentence)}".rstrip()
    heading = f"### {escaped(table.title)}, {escaped(table.label)}: {escaped(table.heading)}"
    return [heading, verdict, "\n".join(f"| {' | '.join(row)} |" for row in cells)]


def _items(title: str, sentences: list[str]) -> str:
    return "\n".join([f"**{title}**", "", *(f"- {escaped(each)}" for each in sentences)]) if sentences else ""


def _code(command: str) -> str:
    """Return a block of code that no text can close: its fence is longer than any in it."""
    line = one_line(command)
    fence = "`" * max(3, 1 + max((len(found) for found in re.findall("`+", line)), default=0))
    return f"{fence}\n{line}\n{fence}"
