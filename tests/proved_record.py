"""The record of tests that passed: one line per test, by kind of machine; a line that is damaged counts as missing."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import tomllib

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

HEAD = """\
# Which tests of real frameworks passed, by kind of machine, with the hash of everything that decides each, the day, and the method of
# certificates. `make test` rests on lines with its own hashes. Written by `make record` and `make test-all`, never by hand.
"""


@dataclass(frozen=True)
class Entry:
    """How a test ended. `key`: hash of all that decides it; `date`: ISO, UTC; `method`: of certificates; `failed`: in local records."""

    key: str
    date: str
    method: int
    failed: bool = False

    def line(self, name: str) -> str:
        """Return the entry as one line of TOML."""
        failed = ", failed = true" if self.failed else ""
        words = f"key = {json.dumps(self.key)}, date = {json.dumps(self.date)}, method = {self.method}{failed}"
        return f"{json.dumps(name, ensure_ascii=False)} = {{ {words} }}\n"

    @staticmethod
    def read(raw: Any) -> Entry | None:
        """Return a parsed entry; None if it is damaged."""
        if not isinstance(raw, dict) or not raw.keys() <= {"key", "date", "method", "failed"}:
            return None
        values = (raw.get("key"), raw.get("date"), raw.get("method"), raw.get("failed", False))
        if [type(each) for each in values] != [str, str, int, bool]:
            return None
        return Entry(*values)


@dataclass(frozen=True)
class Record:
    """Entries by kind of machine and name of the test."""

    entries: Mapping[str, Mapping[str, Entry]] = field(default_factory=dict)

    @staticmethod
    def read(path: Path) -> tuple[Record, str]:
        """Return the record in a file, and what is wrong with the file: an empty text if nothing is, or there is none."""
        try:
            raw = tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return Record(), ""
        except (OSError, ValueError) as error:
            return Record(), f"{path} cannot be read ({error}), so nothing rests on it."
        lines = [
            (machine, name, Entry.read(each))
            for machine, tests in raw.items()
            for name, each in (tests.items() if isinstance(tests, dict) else [("", None)])
        ]
        found: dict[str, dict[str, Entry]] = {}
        for machine, name, entry in lines:
            if entry:
                found.setdefault(machine, {})[name] = entry
        damaged = sum(entry is None for _, _, entry in lines)
        return Record(found), f"{damaged} damaged lines of {path} count as missing." if damaged else ""

    def find(self, machine: str, name: str) -> Entry | None:
        """Return the entry of a test on this kind of machine, if there is one."""
        return self.entries.get(machine, {}).get(name)

    def names(self, machine: str) -> set[str]:
        """Return the tests that are recorded for this kind of machine."""
        return {*self.entries.get(machine, {})}

    def changed(self, machine: str, more: Mapping[str, Entry], without: Collection[str] = ()) -> Record:
        """Return the record with more entries for this kind of machine, and without those of some tests."""
        own = {name: entry for name, entry in self.entries.get(machine, {}).items() if name not in without}
        return Record({**self.entries, machine: own | dict(more)})

    def write(self, path: Path) -> None:
        """Write the record, sorted, in one step; a record that says the same is left alone."""
        tables = [
            f"\n[{json.dumps(machine, ensure_ascii=False)}]\n"
            + "".join(tests[name].line(name) for name in sorted(tests))
            for machine, tests in sorted(self.entries.items())
            if tests
        ]
        text = HEAD + "".join(tables)
        if path.is_file() and path.read_text(encoding="utf-8", errors="replace") == text:
            return
        part = path.with_name(f"{path.name}.{os.getpid()}.partial")
        part.write_text(text, encoding="utf-8")
        part.replace(path)
