"""A study and its documents: read the tables [[published]] of a study file, and gather the contents of its page's section."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from steelyard.errors import UserError
from steelyard.files import settings_files
from steelyard.published import settings, statements
from steelyard.published.documents import Document, Entry, Flaw, Value, documents, find, study_notes
from steelyard.published.study_tables import StudyTable, read_side
from steelyard.statistics.claims import OVERHEAD, WEAK_SCALING
from steelyard.statistics.conditions import Conditions  # noqa: TC001 - records are built from annotations
from steelyard.statistics.sentences import listed

if TYPE_CHECKING:
    from pathlib import Path

NUMBERS = {"value", "low", "high", "recomputed", "printed", "more", "lines"}
COORDINATES = sorted({each.metadata.get("key", each.name) for each in fields(Value)} - NUMBERS)


@dataclass(frozen=True)
class Figure:
    """A published number that is only shown: seconds of other machines, shares, accuracies."""

    network: str
    words: str
    quantity: str
    printed: str
    machine: str


@dataclass(frozen=True)
class PublishedTable:
    """One entry that a study is compared with, with everything that its section of the page needs.

    `cite`, `where` and `lines` are its source; `derived`: computed by us from printed numbers, by `formula`.
    """

    entry: str
    title: str
    cite: str
    where: str
    lines: tuple[int, ...]
    machine: str
    quantity: str
    task: str
    says: str
    note: str
    checked: str
    derived: bool
    formula: str
    statements: tuple[statements.Statement, ...]
    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Source:
    """A document that a study is compared with. `conditions`: the settings of its networks; empty in older records."""

    short: str
    cite: str
    title: str
    authors: tuple[str, ...]
    year: str
    source: str
    conditions: tuple[Conditions, ...] = ()


@dataclass(frozen=True)
class DocumentError:
    """An error in a document, for a page. `where`: the lines of its text."""

    cite: str
    lines: tuple[int, ...]
    says: str


@dataclass(frozen=True)
class Published:
    """The contents of a page about the documents that a study redoes; stored with the run. `size`: the size of the study."""

    size: str = ""
    sources: tuple[Source, ...] = ()
    tables: tuple[PublishedTable, ...] = ()
    today: tuple[str, ...] = ()
    errors: tuple[DocumentError, ...] = ()


def read(path: Path, tables: Any) -> tuple[StudyTable, ...]:
    """Read the tables [[published]] of a study file. UserError: a key, an entry or a word in them is unknown."""
    settings_files.check_type(path, "published", tables, (list, tuple), "a list of tables")
    return tuple(_read(path, table, f"published[{number}]") for number, table in enumerate(tables))


def _read(path: Path, table: Any, where: str) -> StudyTable:
    study_table: StudyTable = settings_files.build(path, table, where, StudyTable)
    for key in study_table.where:
        settings_files.check_one_of(path, key, key, COORDINATES, f"{where}.where")
    if len(study_table.compare) not in (0, 2):
        raise settings_files.wrong(path, "compare", where, "'compare' must name two words, the first over the second.")
    if study_table.levels and study_table.compare:
        raise settings_files.wrong(path, "levels", where, "'levels' and 'compare' contradict each other. Remove one.")
    try:
        for word, text in study_table.sides.items():
            read_side(word, text)
        for text in study_table.differs:
            read_side(text, text)
        document, entry = find(study_table.entry)
        found = statements.statements(study_table, document, entry)
    except UserError as error:
        raise settings_files.wrong(path, "entry", where, str(error)) from None
    if study_table.quantity == WEAK_SCALING and not any(each.quantity == OVERHEAD for each in entry.complete_values):
        sentence = (
            f"{study_table.entry} states no {OVERHEAD}, and '{WEAK_SCALING}' is for these. Choose another quantity."
        )
        raise settings_files.wrong(path, "quantity", where, sentence)
    if study_table.compare and not found:
        one, other = study_table.compare
        sentence = f"no two values of {study_table.entry} differ in '{one}' and '{other}' alone."
        raise settings_files.wrong(path, "compare", where, f"'compare': {sentence}")
    return study_table


def gather(study: str, study_table: tuple[StudyTable, ...], size: str = "") -> Published:
    """Return the published entries that a study is compared with; empty if it has none. UserError: an unknown entry."""
    if not study_table:
        return Published(size)
    found = [(each, *find(each.entry)) for each in study_table]
    used = {short: each for short, each in documents().items() if any(each is document for _, document, _ in found)}
    everywhere, notes = study_notes()
    own = notes[study].today if study in notes else ()
    today = (*(sentence for each in used.values() for sentence in each.today), *own, *everywhere)
    entries = {short: {entry.id for _, document, entry in found if document is each} for short, each in used.items()}
    concerned = [
        (each, flaw) for short, each in used.items() for flaw in each.errors if _concerns(flaw, entries[short])
    ]
    tables = tuple(_table(*each) for each in found)
    cells = {
        cell
        for table in tables
        for statement in table.statements
        for each in statement.conditions
        for cell in each.cells
    }
    return Published(
        size=size,
        sources=tuple(_source(each, cells) for each in used.values()),
        tables=tables,
        today=today,
        errors=tuple(DocumentError(each.cite, flaw.lines, flaw.says) for each, flaw in concerned),
    )


def _source(document: Document, cells: set[str]) -> Source:
    return Source(
        document.short,
        document.cite,
        document.title,
        document.authors,
        document.year,
        document.source,
        settings.of_document(document, cells),
    )


def _concerns(flaw: Flaw, entries: set[str]) -> bool:
    return bool(entries & set(flaw.entries))


def _table(study_table: StudyTable, document: Document, entry: Entry) -> PublishedTable:
    of = next((document.entry(name) for name in entry.computed_from), entry)
    figures = tuple(
        _figure(document, each)
        for each in statements.selected(study_table, entry)
        if not study_table.compare and not _is_stated(study_table, each)
    )
    return PublishedTable(
        entry=f"{document.short}:{entry.id}",
        title=entry.title or entry.says or of.title,
        cite=document.cite,
        where=entry.where or f"computed from {listed(list(entry.computed_from))}",
        lines=entry.lines or of.lines,
        machine=document.machines(", ".join(entry.setup or of.setup)),
        quantity=study_table.quantity,
        task=study_table.task,
        says=entry.says if entry.title else "",
        note=entry.note,
        checked=entry.checked if entry.check == "differs" else "",
        derived=entry.kind == "derived",
        formula=entry.formula,
        statements=statements.statements(study_table, document, entry),
        figures=figures,
    )


def _is_stated(study_table: StudyTable, value: Value) -> bool:
    """Return whether a value is part of a statement, so that it need not be shown by itself."""
    if study_table.levels:
        return bool(statements.level_of(value))
    return statements.is_meant(study_table, value) and bool(statements.claim_of(value))


def _figure(document: Document, value: Value) -> Figure:
    words = " ".join(filter(None, (value.framework, value.mode, value.strategy, value.device, value.phase)))
    orders = {"order": f"better than {value.against}", "equal": f"as good as {value.against}"}
    printed = orders.get(value.relation) or statements.printed(value) or "not given"
    return Figure(value.network, words, value.quantity, printed, document.machines(value.setup))
