"""The verdict tables as LaTeX, for a paper; they need the package booktabs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from steelyard.exports import verdict_texts

if TYPE_CHECKING:
    from steelyard.analysis.model import View
    from steelyard.exports.verdict_texts import VerdictTable, VerdictTexts

SIGNS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",
    "]": "{]}",
    "`": r"\textasciigrave{}",
    "µ": r"\textmu{}",
    "×": r"\texttimes{}",
    "∞": r"\ensuremath{\infty}",
    "±": r"\textpm{}",
    "≥": r"\ensuremath{\geq}",
    "≤": r"\ensuremath{\leq}",
}
"""Sign -> how it is written: a bracket after the end of a row would be its argument."""
SPECIAL = re.compile("[" + re.escape("".join(SIGNS)) + "]")
ALIGNED = "llrrrl"
HEAD = "% Needs \\usepackage{booktabs}. Ranges in brackets are 95 % confidence intervals over processes."


def text(view: View) -> str:
    """Return one table for each comparison and input, with the verdict as caption. Names of the record are escaped."""
    return of_texts(verdict_texts.of_view(view))


def of_texts(found: VerdictTexts) -> str:
    """Return the texts as LaTeX."""
    comments = [f"% {_one_line(each)}" for each in (*found.warnings, *found.left_out)]
    tables = [_table(table, number, found) for number, table in enumerate(found.tables, 1)]
    return "\n".join([HEAD, *comments, *(tables or ["% Nothing was measured."])]) + "\n"


def escaped(value: str) -> str:
    """Return a text so that LaTeX prints it as it is, in one line: two hyphens, for instance, are no dash."""
    return re.sub("-(?=-)", "-{}", SPECIAL.sub(lambda sign: SIGNS[sign[0]], _one_line(value)))


def _one_line(value: str) -> str:
    """Return a text without line ends and control characters, which could end a comment."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in value).split())


def _table(table: VerdictTable, number: int, found: VerdictTexts) -> str:
    caption = f"{table.title}, {table.label}. {table.heading}. {table.headline} {table.sentence}"
    notes = [f"{name}: {value}." for name, value in found.facts]
    command = rf" Repeated with: \texttt{{{escaped(found.command)}}}." if found.command else ""
    return "\n".join(
        [
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{escaped(caption)}}}",
            rf"  \label{{tab:steelyard-{_word(found.run)}-{number}}}",
            rf"  \begin{{tabular}}{{{ALIGNED}}}",
            r"    \toprule",
            _row(table.headings),
            r"    \midrule",
            *map(_row, table.rows),
            r"    \bottomrule",
            r"  \end{tabular}",
            rf"  \par\smallskip{{\footnotesize {escaped(' '.join(notes))}{command}\par}}",
            r"\end{table}",
        ]
    )


def _row(cells: tuple[str, ...]) -> str:
    return rf"    {' & '.join(map(escaped, cells))} \\"


def _word(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")
