"""The tables in docs/published.md: which study redoes which item of a document and how, or why none does."""

import sys
from collections import Counter
from pathlib import Path

from steelyard.plan import studies
from steelyard.published.documents import Document, Entry, documents, study_notes
from steelyard.redone import judgeable

JUDGED, SHOWN, NOT_REDONE = "judged at size P", "shown", "not redone"
SMALL = "judged on two cores"
SETTINGS = "Settings stand beside the statements of their document."
BEGIN, END = "<!-- {}: begin -->", "<!-- {}: end -->"


def summary() -> str:
    """Return the table of all documents: a row for each document, and one for all."""
    lines = [
        "| document | items | judged at size P | judged on two cores | shown | not redone | studies |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    totals = Counter[str]()
    for document in documents().values():
        found = counts(document)
        names = dict.fromkeys(name for entry in _items(document) for name in entry.studies)
        lines.append(_row(document.cite, found, ", ".join(_study(name) for name in names)))
        totals += found
    return "\n".join([*lines, _row("all", totals, "")])


def _row(name: str, found: Counter[str], studies_named: str) -> str:
    numbers = (found.total() - found[SMALL], found[JUDGED], found[SMALL], found[SHOWN], found[NOT_REDONE])
    return f"| {name} | {' | '.join(map(str, numbers))} | {studies_named} |"


def counts(document: Document) -> Counter[str]:
    """Return how many items of a document are judged at size P, shown only, and not redone; and judged on two cores (`SMALL`)."""
    found = Counter(state(document, entry)[0] for entry in _items(document))
    found[NOT_REDONE] += len(document.left_out)
    found[SMALL] = sum(f"{document.short}:{entry.id}" in judgeable.on_a_small_machine() for entry in _items(document))
    return found


def state(document: Document, entry: Entry) -> tuple[str, str]:
    """Return whether an item is judged, shown or not redone, and a sentence with the reason; empty if none is needed."""
    name = f"{document.short}:{entry.id}"
    if entry.not_redone:
        return NOT_REDONE, entry.not_redone
    if name in judgeable.at_published_size():
        return JUDGED, ""
    if entry.not_held:
        return NOT_REDONE, entry.not_held
    return SHOWN, SETTINGS if entry.kind == "settings" else ""


def items() -> str:
    """Return a section for each document with a row for each of its items."""
    parts = []
    for document in documents().values():
        parts += [
            f"### {document.cite}",
            "",
            f"{', '.join(document.authors)}: *{document.title}*. {document.source}.",
            "",
        ]
        parts += ["| item | where | redone by | how |", "|---|---|---|---|"]
        parts += [
            f"| {_cell(entry.title or entry.says)} | {_cell(entry.where)} | {_redone(entry)} | {_how(document, entry)} |"
            for entry in _items(document)
        ]
        parts += [
            f"| {_cell(each.item)} | {_cell(each.where)} | None | Not redone: {_cell(each.reason)} |"
            for each in document.left_out
        ]
        parts.append("")
    return "\n".join(parts).rstrip()


def _how(document: Document, entry: Entry) -> str:
    """Return how an item is redone, such as `Judged at size P` or `Not redone: A picture.`"""
    found, why = state(document, entry)
    small = f"{document.short}:{entry.id}" in judgeable.on_a_small_machine()
    return f"{found[:1].upper()}{found[1:]}{' and on two cores' if small else ''}{f': {_cell(why)}' if why else ''}"


def _items(document: Document) -> list[Entry]:
    """Return the document's own entries, without those that were computed from them."""
    return [entry for entry in document.entries if entry.kind != "derived"]


def _redone(entry: Entry) -> str:
    if not entry.studies:
        return "None"
    return ", ".join(_study(name, reasons=True) for name in entry.studies)


def _study(name: str, reasons: bool = False) -> str:
    """Return the name of a study, with a note if this version does not offer it."""
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
