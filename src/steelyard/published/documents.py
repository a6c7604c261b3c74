"""The published comparisons as data: every table, figure and claim with its source and its errors, and what no study redoes.

The keys are documented in docs/reference/published-figures.md. Files are read on first use.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.errors import UserError, named
from steelyard.files import settings_files
from steelyard.statistics.claims import RELATIONS
from steelyard.statistics.conditions import ALL, EACH, Conditions
from steelyard.statistics.conditions import KINDS as DEVICES

if TYPE_CHECKING:
    from collections.abc import Sequence

DATA = Path(__file__).parent / "data"
STUDIES = "studies.toml"
KINDS = ("table", "figure", "claim", "settings", "derived")
CHECKS = ("", "agrees", "differs", "cannot be checked")


@dataclass(frozen=True)
class Setup:
    """A machine of the authors, with its software.

    `device`: the kind of device that computes, as a case names it; `device_name`: its name; `versions`: those of the software,
    in a few words. `precision` is text: a number format, and after a semicolon what is to be said of it; `float32` where the
    document says so. `assumed`: `precision`, where the document does not.
    """

    id: str
    lines: tuple[int, ...]
    hardware: str
    software: str
    precision: str
    device: str
    device_name: str
    versions: str
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stated(Conditions):
    """One table [[conditions]]: settings of the document for its networks `cells` on its machines `setups`; empty: all."""

    setups: tuple[str, ...] = ()


@dataclass(frozen=True)
class Value:
    """One published number, or an order without a number, with its coordinates.

    `batch`: its own; `batches`: several for which it holds alike.
    `value` is as printed, in `unit`; `low` and `high` are the ends of a range. `recomputed` is what follows from the
    document's own numbers where that differs, which `doubtful` says. `more` has the other keys of this entry.
    """

    network: str = ""
    cell: str = ""
    cells: tuple[str, ...] = ()
    framework: str = ""
    faster: str = ""
    mode: str = ""
    strategy: str = ""
    against: str = ""
    device: str = ""
    devices: int = 0
    setup: str = ""
    batch: int = 0
    batches: tuple[int, ...] = ()
    workers: int | None = None
    against_workers: int | None = None
    optimizer: str = ""
    epoch: int = 0
    phase: str = ""
    graph_pass: str = field(default="", metadata={"key": "pass"})
    kind: str = ""
    state: str = ""
    statistic: str = ""
    quantity: str = ""
    relation: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    printed: str = ""
    recomputed: float | None = None
    doubtful: bool = False
    lines: tuple[int, ...] = ()
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def all_cells(self) -> tuple[str, ...]:
        """The workloads and presets that the value holds for; empty if it names none."""
        return self.cells or ((self.cell,) if self.cell else ())


@dataclass(frozen=True)
class Entry:
    """One table, figure, claim or set of settings. `lines`: first and last line in the text of the document.

    An entry that is `derived` was computed by us from the entries `computed_from`. `quantity`, `unit` and `framework` hold
    for all values without their own. `check` and `checked`: whether a claim agrees with the document's own numbers.
    `conditions`: its settings if they differ from those of the document. `not_held`: why no table [[published]] of a
    study names it, although studies measure its subject.
    """

    id: str
    kind: str
    studies: tuple[str, ...]
    title: str = ""
    where: str = ""
    lines: tuple[int, ...] = ()
    computed_from: tuple[str, ...] = field(default=(), metadata={"key": "from"})
    formula: str = ""
    says: str = ""
    measures: str = ""
    setup: tuple[str, ...] = ()
    not_redone: str = ""
    not_held: str = ""
    quantity: str = ""
    unit: str = ""
    framework: str = ""
    readable: bool = True
    settings: dict[str, Any] = field(default_factory=dict)
    note: str = ""
    check: str = ""
    checked: str = ""
    conditions: Conditions = field(default_factory=Conditions)
    values: tuple[Value, ...] = ()

    @property
    def complete_values(self) -> tuple[Value, ...]:
        """The values with the entry's quantity, unit and framework where they have none of their own."""
        return tuple(
            replace(
                each,
                quantity=each.quantity or self.quantity,
                unit=each.unit or self.unit,
                framework=each.framework or self.framework,
                setup=each.setup or ", ".join(self.setup),
            )
            for each in self.values
        )


@dataclass(frozen=True)
class Flaw:
    """A contradiction, an omission or an error in a document, and the entries that it concerns."""

    id: str
    lines: tuple[int, ...]
    entries: tuple[str, ...]
    says: str


@dataclass(frozen=True)
class LeftOut:
    """Something that a document does or mentions and no study redoes."""

    item: str
    where: str
    lines: tuple[int, ...]
    reason: str


@dataclass(frozen=True)
class Document:
    """A published comparison. `short` is its name in study files, `cite` in texts; `compares` are the frameworks."""

    id: str
    short: str
    title: str
    cite: str
    authors: tuple[str, ...]
    year: str
    source: str
    compares: tuple[str, ...]
    today: tuple[str, ...] = ()
    setups: tuple[Setup, ...] = ()
    conditions: tuple[Stated, ...] = ()
    entries: tuple[Entry, ...] = ()
    errors: tuple[Flaw, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    def entry(self, name: str) -> Entry:
        """Return an entry. UserError: there is no entry with this name."""
        return named({each.id: each for each in self.entries}, name, f"'{self.short}' has no entry '{name}'.")

    def stated(self, setups: Sequence[Setup]) -> list[Stated]:
        """Return the settings that hold on one of these machines."""
        names = {each.id for each in setups}
        return [each for each in self.conditions if not each.setups or names & set(each.setups)]

    def networks(self, setups: Sequence[Setup]) -> list[str]:
        """Return the workload:preset of every network that was measured on one of these machines."""
        return list(dict.fromkeys(cell for each in self.stated(setups) for cell in each.cells))

    def machines(self, names: str) -> str:
        """Return the hardware of setups by their names, which are separated by commas."""
        known = {each.id: each.hardware for each in self.setups}
        return "; ".join(known[name] for name in filter(None, names.split(", ")))


@dataclass(frozen=True)
class StudyNotes:
    """The differences of a study today. `later`: why this version does not offer it; empty if it does, or will."""

    today: tuple[str, ...] = ()
    later: str = ""


@cache
def documents() -> dict[str, Document]:
    """Return every document by its short name."""
    found = [read(path) for path in sorted(DATA.glob("*.toml")) if path.name != STUDIES]
    return {each.short: each for each in sorted(found, key=lambda document: document.short)}


def find(name: str) -> tuple[Document, Entry]:
    """Return the document and the entry of a name such as `S0:table-2`. UserError: there is none."""
    short, _, entry = name.partition(":")
    by_name = {key: each for each in documents().values() for key in (each.id, each.short)}
    document = named(by_name, short, f"There is no document '{short}'.")
    return document, document.entry(entry)


@cache
def study_notes() -> tuple[tuple[str, ...], dict[str, StudyNotes]]:
    """Return the differences that all studies share today, and the notes of every study."""
    path = DATA / STUDIES
    raw = settings_files.read(path)
    settings_files.check_keys(path, raw, "", {"everywhere", "studies"}, {"everywhere", "studies"})
    notes = {
        name: settings_files.build(path, table, f"studies.{name}", StudyNotes) for name, table in raw["studies"].items()
    }
    return tuple(raw["everywhere"]), notes


def read(path: Path) -> Document:
    """Read one document. UserError: a key, a type or a name in it is wrong."""
    raw = settings_files.read(path)
    keys = {"document", "setups", "conditions", "entries", "errors", "left_out"}
    settings_files.check_keys(path, raw, "", {"document", "entries"}, keys)
    lists: dict[str, Any] = {
        "setups": _tables(path, raw, "setups", Setup),
        "conditions": _conditions(path, raw),
        "entries": _entries(path, raw["entries"]),
        "errors": _tables(path, raw, "errors", Flaw),
        "left_out": _tables(path, raw, "left_out", LeftOut),
    }
    found: Document = settings_files.build(path, raw["document"], "document", Document, **lists)
    for number, setup in enumerate(found.setups):
        settings_files.check_one_of(path, "device", setup.device, DEVICES, f"setups[{number}]")
    _check_names(path, found)
    return found


def _conditions(path: Path, raw: dict[str, Any]) -> tuple[Stated, ...]:
    found: tuple[Stated, ...] = _tables(path, raw, "conditions", Stated)
    for number, each in enumerate(found):
        settings_files.check_one_of(path, "batch_of", each.batch_of, ("", ALL, EACH), f"conditions[{number}]")
    return found


def _tables(path: Path, raw: dict[str, Any], name: str, kind: Any) -> tuple[Any, ...]:
    tables = enumerate(raw.get(name, ()))
    return tuple(settings_files.build(path, table, f"{name}[{number}]", kind) for number, table in tables)


def _entries(path: Path, tables: list[dict[str, Any]]) -> tuple[Entry, ...]:
    found = []
    for number, table in enumerate(tables):
        where = f"entries[{number}]"
        values = tuple(settings_files.build(path, each, where, Value) for each in table.get("values", ()))
        rest = {key: each for key, each in table.items() if key not in ("values", "conditions")}
        own = settings_files.build(path, table.get("conditions", {}), f"{where}.conditions", Conditions)
        entry: Entry = settings_files.build(path, rest, where, Entry, values=values, conditions=own)
        settings_files.check_one_of(path, "kind", entry.kind, KINDS, where)
        settings_files.check_one_of(path, "check", entry.check, CHECKS, where)
        for value in values:
            settings_files.check_one_of(path, "values", value.relation, RELATIONS, where)
        if entry.kind == "derived" and not (entry.computed_from and entry.formula):
            raise settings_files.wrong(
                path, "id", where, f"'{entry.id}' is derived and lacks 'from' or 'formula'. Add both."
            )
        if entry.kind != "derived" and not (entry.where and len(entry.lines) == 2):
            raise settings_files.wrong(path, "id", where, f"'{entry.id}' lacks its source. Add 'where' and 'lines'.")
        if bool(entry.studies) == bool(entry.not_redone):
            sentence = f"'{entry.id}' needs either 'studies' or 'not_redone'. Give one of the two."
            raise settings_files.wrong(path, "id", where, sentence)
        found.append(entry)
    return tuple(found)


def _check_names(path: Path, document: Document) -> None:
    entries, setups = [each.id for each in document.entries], {each.id for each in document.setups}
    if twice := sorted({name for name in entries if entries.count(name) > 1}):
        raise UserError(f"{path}: two entries are called '{twice[0]}'. Rename one.")
    for number, entry in enumerate(document.entries):
        used = {*entry.setup, *(each.setup for each in entry.values if each.setup)}
        if unknown := sorted(used - setups) or sorted(set(entry.computed_from) - set(entries)):
            sentence = f"'{entry.id}' names '{unknown[0]}', which this document does not have."
            raise settings_files.wrong(path, "id", f"entries[{number}]", sentence)
    for number, stated in enumerate(document.conditions):
        if unknown := sorted(set(stated.setups) - setups):
            sentence = f"'setups' names '{unknown[0]}', which this document does not have."
            raise settings_files.wrong(path, "setups", f"conditions[{number}]", sentence)
    for number, flaw in enumerate(document.errors):
        if unknown := sorted(set(flaw.entries) - set(entries)):
            sentence = f"'{flaw.id}' names the entry '{unknown[0]}', which this document does not have."
            raise settings_files.wrong(path, "entries", f"errors[{number}]", sentence)
