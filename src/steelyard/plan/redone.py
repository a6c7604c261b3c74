"""Which study redoes which item of which document, or why none does: the tables in README.md and docs/published.md."""

import sys
from pathlib import Path

from steelyard.plan import studies
from steelyard.published.documents import Document, Entry, documents, study_notes

BEGIN, END = "<!-- {}: begin -->", "<!-- {}: end -->"


def summary() -> str:
    """Return the table of the README: a row for each document."""
    lines = ["| document | items | redone | studies |", "|---|---|---|---|"]
    offered = studies.offered()
    for document in documents().values():
        items = _items(document)
        names = dict.fromkeys(name for entry in items for name in entry.studies)
        redone = sum(any(name in offered for name in entry.studies) for entry in items)
        total = len(items) + len(document.left_out)
        lines.append(f"| {document.cite} | {total} | {redone} | {', '.join(_study(name) for name in names)} |")
    return "\n".join(lines)


def items() -> str:
    """Return a section for each document with a row for each of its items."""
    parts = []
    for document in documents().values():
        parts += [
            f"## {document.cite}",
            "",
            f"{', '.join(document.authors)}: *{document.title}*. {document.source}.",
            "",
        ]
        parts += ["| item | where | redone by |", "|---|---|---|"]
        parts += [
            f"| {_cell(entry.title or entry.says)} | {_cell(entry.where)} | {_redone(entry)} |"
            for entry in _items(document)
        ]
        parts += [
            f"| {_cell(each.item)} | {_cell(each.where)} | None: {_cell(each.reason)} |" for each in document.left_out
        ]
        parts.append("")
    return "\n".join(parts).rstrip()


def _items(document: Document) -> list[Entry]:
    """Return what the document itself holds: not what we computed from it."""
    return [entry for entry in document.entries if entry.kind != "derived"]


def _redone(entry: Entry) -> str:
    if not entry.studies:
        return f"None: {_cell(entry.not_redone)}"
    return ", ".join(_study(name, reasons=True) for name in entry.studies)


def _study(name: str, reasons: bool = False) -> str:
    """Return the name of a study, and if this version does not offer it, that and why."""
    if name in studies.offered():
        return f"`{name}`"
    later = study_notes()[1][name].later
    return f"`{name}` (not yet{f': {later}' if later and reasons else ''})"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def update(path: Path) -> bool:
    """Replace the tables between their marks in a document; returns whether anything changed."""
    text = updated = path.read_text(encoding="utf-8")
    for name, table in (("documents", summary), ("items", items)):
        begin, end = BEGIN.format(name), END.format(name)
        before, found, rest = updated.partition(begin)
        if found:
            updated = f"{before}{begin}\n{table()}\n{end}{rest.partition(end)[2]}"
    path.write_text(updated, encoding="utf-8")
    return updated != text


if __name__ == "__main__":
    for name in sys.argv[1:]:
        update(Path(name))
