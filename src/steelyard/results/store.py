"""The index of all runs: an SQLite file of their trials, also for other programs.

Reports read the run folders, so a damaged, altered or locked index does not change them. A history reads the index,
once that is up to date with the folders. It can be rebuilt at any time.
"""

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from steelyard.errors import notice
from steelyard.files import paths
from steelyard.results import index_rows, indexing, points, record, run_folders, trials
from steelyard.results.index_rows import SCHEMA, SCHEMA_VERSION, Statement
from steelyard.results.points import Point, RunFacts
from steelyard.results.trials import Trial

FILE = "index.sqlite"
BUSY_S = 5
SILENCE_S = 5.0
"""After this many seconds of reading runs, a line says how many are done."""
LATER = "No data were lost: it will be brought up to date from the event files."


class Store:
    """The index of the runs in one folder. The file lies next to the run folders.

    If the index cannot be used, everything works without it, and `say` gets a sentence about it. `progress` gets the number of
    runs that have been read, and that of all that must be; without it, `say` gets a sentence now and then.
    """

    def __init__(
        self, folder: Path, say: Callable[[str], None] = notice, progress: Callable[[int, int], None] | None = None
    ) -> None:
        self.folder, self.path, self._say = folder, folder / FILE, say
        self._progress = progress or self._say_progress
        self._database: sqlite3.Connection | None = None
        self._said_s = time.monotonic()
        try:
            self._open()
        except (OSError, sqlite3.OperationalError) as error:  # locked, or on a read-only disk
            self._give_up(f"cannot be used ({error})")
        except sqlite3.DatabaseError as error:
            self._rebuild(error)

    def _open(self) -> None:
        paths.make_private(self.folder)
        if self.path.is_symlink():
            raise OSError("it is a link")
        is_new = not self.path.exists()
        self._database = sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None)
        if is_new:
            self.path.chmod(0o600)
        self._database.execute("PRAGMA foreign_keys = ON")
        # A power cut may lose the newest rows; they are read again from the event files.
        self._database.execute("PRAGMA synchronous = NORMAL")
        if self._database.execute("PRAGMA quick_check").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("its check failed")
        if tables := _tables(self._database):
            if tables != _expected_tables():
                raise sqlite3.DatabaseError("it was written by another version, or altered")
            return
        self._database.execute("PRAGMA journal_mode = WAL")
        # One transaction, so that of two processes that create the index one waits for the other.
        self._database.executescript(f"BEGIN IMMEDIATE; {_schema()} COMMIT;")
        self.catch_up()

    def _give_up(self, reason: str) -> None:
        """Continue without the index, so that nothing waits for it again."""
        self._say(f"The index {self.path} {reason}. {LATER}")
        self.close()

    def _rebuild(self, error: Exception) -> None:
        """Rename the damaged file, so that it can be examined, and build a new one from the event files."""
        self.close()
        try:
            for suffix in ("", "-wal", "-shm"):
                old = self.path.with_name(FILE + suffix)
                if old.exists():
                    old.replace(self.path.with_name(f"{FILE}.damaged{suffix}"))
            self._open()
        except (OSError, sqlite3.Error) as second:
            self._give_up(f"could not be used ({error}), nor rebuilt ({second})")
        else:
            self._say(
                f"The index {self.path} could not be used ({error}). It was rebuilt from the event files; no data were lost."
            )

    def catch_up(self) -> None:
        """Index every run that has changed since it was indexed, and remove those that are gone. Leave out runs in progress."""
        stamps = dict(self._rows("SELECT run, stamp FROM read_runs"))
        names = run_folders.names(self.folder)
        for (run,) in self._rows("SELECT id FROM runs"):
            if run not in names:
                self.remove_run(run)
        now = {self.folder / run: _stamp(self.folder / run) for run in names}
        changed = {folder: stamp for folder, stamp in now.items() if stamps.get(folder.name) != stamp}
        if changed:
            self._progress(0, len(changed))
        for number, found in enumerate(indexing.read_all(changed), 1):
            if found.statements:
                self._change(*found.statements)
            for sentence in found.damaged:
                self._say(sentence)
            self._progress(number, len(changed))

    def _say_progress(self, done: int, total: int) -> None:
        """Say the number of indexed runs if indexing takes long."""
        if 0 < done < total and time.monotonic() - self._said_s >= SILENCE_S:
            self._said_s = time.monotonic()
            self._say(f"{done:,} of {total:,} runs have been read into the index {self.path}.")

    def history(self) -> tuple[list[RunFacts], list[Point]]:
        """Return the facts and the points of all runs, after catching up; read from the folders if there is no index.

        An index with an impossible row is rebuilt, like an index that SQLite cannot read.
        """
        self.catch_up()
        found: tuple[list[RunFacts], list[Point]] = [], []
        try:
            found = self._history()
        except ValueError as error:
            self._rebuild(error)
            try:
                found = self._history()
            except ValueError as again:
                self._give_up(f"could not be read ({again})")
        return points.read_all(self.folder, []) if self._database is None else found

    def _history(self) -> tuple[list[RunFacts], list[Point]]:
        """Return the contents of the index. ValueError: a row was damaged or altered."""
        known, found = self._rows(index_rows.RUNS), self._rows(index_rows.POINTS)
        return [index_rows.to_facts(row) for row in known], [index_rows.to_point(row) for row in found]

    def _rows(self, query: str) -> list[Any]:
        """Return the rows of a query; empty if the index cannot be read, in which case it is given up."""
        if self._database is None:
            return []
        try:
            return self._database.execute(query).fetchall()
        except sqlite3.Error as error:
            self._give_up(f"could not be read ({error})")
            return []

    def _change(self, *statements: Statement) -> None:
        """Run all statements for their rows in one transaction; if the index cannot be written, continue without it."""
        if self._database is None:
            return
        try:
            self._database.execute("BEGIN IMMEDIATE")
            for text, rows in statements:
                self._database.executemany(text, rows)
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            self._give_up(f"could not be written ({error})")

    def add_run(self, folder: Path) -> None:
        """Index a run from its run.json, replacing an earlier entry. UserError: the file is damaged."""
        self._change(*index_rows.of_run(folder.name, folder, record.read(folder)))

    def add_trial(self, run: str, trial: Trial) -> None:
        """Index one trial and its blocks, replacing an earlier entry."""
        self._change(*index_rows.of_trial(run, trial))

    def add_trials(self, run: str, found: Iterable[Trial]) -> None:
        """Index trials and their blocks, replacing earlier entries."""
        for trial in found:
            self.add_trial(run, trial)

    def remove_run(self, run: str) -> None:
        """Remove a run with its trials from the index."""
        self._change(("DELETE FROM runs WHERE id = :run", [{"run": run}]))

    def close(self) -> None:
        """Close the index; uncommitted rows are lost."""
        if self._database is not None:
            with contextlib.suppress(sqlite3.Error):
                self._database.close()
            self._database = None


def _stamp(folder: Path) -> str:
    """Return a stamp that changes when a run continues or loses trials: sizes and times, as reading contents takes too long."""
    found = []
    for name in (record.FILE, record.CERTIFICATES, trials.FOLDER):
        with contextlib.suppress(OSError):
            status = (folder / name).stat()
            found.append(f"{name} {status.st_size} {status.st_mtime_ns}")
    return ", ".join(found)


def _schema() -> str:
    return f"{SCHEMA.read_text(encoding='utf-8')} PRAGMA user_version = {SCHEMA_VERSION};"


def _tables(database: sqlite3.Connection) -> list[Any]:
    """Return the version and the definitions of tables and indices; nothing for a new file."""
    found = database.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
    return [*database.execute("PRAGMA user_version"), *found] if found else []


def _expected_tables() -> list[Any]:
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.executescript(_schema())
        return _tables(database)
