"""The index of all runs: an SQLite file of their trials, to be searched by other programs.

steelyard itself reads the run folders, so an index that is damaged, altered or locked changes no result. It can be rebuilt
at any time.
"""

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from steelyard.errors import UserError, notice
from steelyard.files import paths
from steelyard.results import record, trials
from steelyard.results.trials import Trial

FILE = "index.sqlite"
BUSY_S = 5
SCHEMA_VERSION = 2
SCHEMA = Path(__file__).parent / "schema.sql"
LATER = "No data were lost: it will be brought up to date from the event files."
# The fields of a trial, and of its blocks, that are columns of the same name.
AS_THEY_ARE = ("method", "peak_resident_bytes", "peak_device_bytes")
OF_BLOCKS = ("input", "phase", "steps", "start_ns", "elapsed_ns", "first_step", "cpu_ns", "epoch")
AS_JSON = ("applied", "libraries", "phases_ns", "warnings")


class Store:
    """The index of the runs in one folder. The file lies next to the run folders.

    If the index cannot be used, everything works without it, and `say` gets a sentence about it.
    """

    def __init__(self, folder: Path, say: Callable[[str], None] = notice) -> None:
        self.folder, self.path, self._say = folder, folder / FILE, say
        self._database: sqlite3.Connection | None = None
        try:
            self._open()
        except (OSError, sqlite3.OperationalError) as error:  # locked, or on a read-only disk
            self._give_up(f"cannot be used ({error})")
        except sqlite3.DatabaseError as error:
            self._rebuild(error)

    def _open(self) -> None:
        paths.make_private(self.folder)
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
        for run in record.names(self.folder):
            self._add_all(run)

    def _give_up(self, reason: str) -> None:
        """Continue without the index. Nothing waits for it a second time."""
        self._say(f"The index {self.path} {reason}. {LATER}")
        self.close()

    def _rebuild(self, error: sqlite3.DatabaseError) -> None:
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

    def _add_all(self, run: str) -> None:
        found, damaged = trials.read_all(self.folder / run)
        for sentence in damaged:
            self._say(sentence)
        try:
            self.add_run(self.folder / run)
        except UserError as error:
            self._say(str(error))
        else:
            self.add_trials(run, found)

    def _change(self, *statements: tuple[str, list[Any]]) -> None:
        """Run each statement for its rows, all or nothing; if it cannot be written, continue without the index."""
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
        known = record.read(folder)
        row = {key: getattr(known, key) for key in ("study", "created", "state", "machine", "method")}
        row |= {"id": folder.name, "folder": str(folder), "plan": json.dumps(known.plan.to_dict())}
        updates = ", ".join(f"{name} = excluded.{name}" for name in row if name != "id")
        self._change((f"{_insert('runs', row)} ON CONFLICT (id) DO UPDATE SET {updates}", [row]))

    def add_trial(self, run: str, trial: Trial) -> None:
        """Index one trial and its blocks, replacing an earlier entry."""
        self.add_trials(run, [trial])

    def add_trials(self, run: str, found: Iterable[Trial]) -> None:
        """Index trials and their blocks, replacing earlier entries."""
        for trial in found:
            row, name = _row(run, trial), trial.folder.name
            blocks = [
                {"run": run, "trial": name, **{key: getattr(block, key) for key in OF_BLOCKS}} for block in trial.blocks
            ]
            self._change(
                ("DELETE FROM trials WHERE run = ? AND id = ?", [(run, name)]),
                (_insert("trials", row), [row]),
                *([(_insert("blocks", blocks[0]), blocks)] if blocks else []),
            )

    def remove_run(self, run: str) -> None:
        """Remove a run with its trials from the index."""
        self._change(("DELETE FROM runs WHERE id = ?", [(run,)]))

    def close(self) -> None:
        """Close the file. What was not committed is not kept."""
        if self._database is not None:
            with contextlib.suppress(sqlite3.Error):
                self._database.close()
            self._database = None


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


def _insert(table: str, row: dict[str, Any]) -> str:
    return f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join(f':{name}' for name in row)})"


def _row(run: str, trial: Trial) -> dict[str, Any]:
    job, case = trial.job, trial.job.case
    kind, message = trial.error or (None, None)
    return {
        "run": run, "id": trial.folder.name, "kind": job.kind, "case_id": case.id, "round": job.round, "attempt": job.attempt,
        "framework": case.framework, "workload": case.workload, "preset": case.preset, "mode": case.settings.mode,
        "worker_hash": job.worker_hash, "job": json.dumps(asdict(job)), "to_first_step_ns": trial.first_step_since_spawn_ns,
        "evaluation": json.dumps(asdict(trial.evaluation)) if trial.evaluation else None,
        "error_kind": kind, "error_message": message, "done": int(trial.done), "folder": str(trial.folder),
        **{name: getattr(trial, name) for name in AS_THEY_ARE}, **{name: json.dumps(getattr(trial, name)) for name in AS_JSON},
    }  # fmt: skip
