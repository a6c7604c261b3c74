"""How to cite a run: an entry for BibTeX."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from steelyard.exports import latex
from steelyard.wording import formatted

if TYPE_CHECKING:
    from steelyard.results.record import RunRecord


def fields(known: RunRecord, name: str) -> dict[str, str]:
    """Return the fields of the entry by name: the tool and its version, the run, the machine."""
    started = known.started
    note = f"Run {name}, method {known.method}"
    machine = formatted.machine(dict(known.host))
    return {
        "key": re.sub(r"[^A-Za-z0-9-]+", "-", f"steelyard-{name}").strip("-"),
        "author": "The steelyard developers",
        "title": f"steelyard: {known.plan.study.title}",
        "version": known.steelyard,
        "year": str(started.year),
        "month": str(started.month),
        "note": f"{note}; machine {known.machine}: {machine}" if machine else note,
    }


def bibtex(known: RunRecord, name: str) -> str:
    """Return the entry, of the type `software`, which BibLaTeX knows and BibTeX reads as `misc`."""
    found = fields(known, name)
    key = found.pop("key")
    # A second pair of braces keeps the names of an author together, and the capitals of a title.
    lines = [f"  {label} = {{{_text(label, value)}}}" for label, value in found.items() if value]
    return "\n".join([f"@software{{{key},", ",\n".join(lines), "}"])


def _text(label: str, value: str) -> str:
    # BibTeX counts braces, also those after a backslash.
    escaped = latex.escaped(value).replace(r"\{", r"\textbraceleft{}").replace(r"\}", r"\textbraceright{}")
    return f"{{{escaped}}}" if label in ("author", "title") else escaped
