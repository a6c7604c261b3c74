"""The index of all runs: an SQLite file of their trials. It is a cache and can be rebuilt from the event files."""

import json
import sqlite3
from dataclasses import asdict
from pathlib import Path
from typing import Any

from steelyard.errors import UserError
from steelyard.results import record, trials
from steelyard.results.trials import Block, Evaluation, Trial
from steelyard_worker import protocol

FILE = "index.sqlite"
BUSY_S = 30
TRIALS = "trials"
SCHEMA_VERSION = 2
# The fields of a trial that are columns of the same name.
AS_THEY_ARE = ("method", "peak_resident_bytes", "peak_device_bytes")
AS_JSON = ("applied", "libraries", "phases_ns", "warnings")


class Store:
    """The index of the runs in one folder. The file lies next to the run folders."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / FILE
        self._notices: list[str] = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._open(self.path)
        except (OSError, sqlite3.OperationalError) as error:
            self._use_memory(error)
        except sqlite3.DatabaseError as error:
            self._rebuild(error)

    @property
    def notice(self) -> str:
        """Problems of the index that the user should know about; empty if there are none."""
        return " ".join(dict.fromkeys(self._notices))

    def _open(self, where: Path | str) -> None:
        self._database = sqlite3.connect(where, timeout=BUSY_S, isolation_level=None)
        self._database.row_factory = sqlite3.Row
        self._database.execute("PRAGMA foreign_keys = ON")
        # A power cut may lose the newest rows; they are read again from the event files.
        self._database.execute("PRAGMA synchronous = NORMAL")
        if self._database.execute("PRAGMA quick_check").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("its check failed")
        if self._database.execute("PRAGMA user_version").fetchone()[0] == SCHEMA_VERSION:
            return
        if self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise sqlite3.DatabaseError("it was written by another version")
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.executescript((Path(__file__).parent / "schema.sql").read_text(encoding="utf-8"))
        self._database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        for path in sorted(self.folder.glob(f"*/{record.FILE}")):
            try:
                self._add_missing(path.parent.name)
            except UserError as error:
                self._notices.append(str(error))

    def _use_memory(self, error: Exception) -> None:
        """If the file can be neither read nor written, as on a read-only disk, build the index in memory."""
        self._open(":memory:")
        self._notices.append(f"The index {self.path} cannot be used ({error}); the event files were read instead.")

    def _rebuild(self, error: sqlite3.DatabaseError) -> None:
        """Rename the damaged file, so that it can be examined, and build a new one from the event files."""
        self._database.close()
        for suffix in ("", "-wal", "-shm"):
            old = self.path.with_name(FILE + suffix)
            if old.exists():
                old.replace(self.path.with_name(f"{FILE}.damaged{suffix}"))
        self._notices.append(
            f"The index {self.path} could not be used ({error}). It was rebuilt from the event files; no data were lost."
        )
        self._open(self.path)

    def _add_missing(self, run: str) -> None:
        """Index ended trials that are not in the index, because the orchestrator was killed or could not write it."""
        if not self._database.execute("SELECT count(*) FROM runs WHERE id = ?", (run,)).fetchone()[0]:
            self.add_run(self.folder / run)
        known = {row["id"] for row in self._database.execute("SELECT id FROM trials WHERE run = ?", (run,))}
        for folder in sorted((self.folder / run / TRIALS).glob("*/")):
            if folder.name not in known and (folder / trials.JOB).exists():
                try:
                    trial = trials.read(folder)
                except UserError as error:
                    self._notices.append(str(error))
                    continue
                if trial.done or trial.error:
                    self.add_trial(run, trial)

    def _change(self, *statements: tuple[str, list[Any]]) -> None:
        """Run each statement for its rows, all or nothing.

        If the index cannot be written, the run continues; the index is rebuilt later from the event files.
        """
        try:
            self._database.execute("BEGIN IMMEDIATE")
            for text, rows in statements:
                self._database.executemany(text, rows)
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            self._notices.append(
                f"The index {self.path} could not be written ({error}). No data were lost: it will be rebuilt from the "
                "event files."
            )
        finally:
            if self._database.in_transaction:  # on some errors, such as a full disk, SQLite has already rolled back
                self._database.execute("ROLLBACK")

    def add_run(self, folder: Path) -> None:
        """Index a run from its run.json, replacing an earlier entry. UserError: the file is damaged."""
        known = record.read(folder)
        row = {key: getattr(known, key) for key in ("study", "created", "state", "machine", "method")}
        row |= {"id": folder.name, "folder": str(folder), "plan": json.dumps(known.plan.to_dict())}
        updates = ", ".join(f"{name} = excluded.{name}" for name in row if name != "id")
        self._change((f"{_insert('runs', row)} ON CONFLICT (id) DO UPDATE SET {updates}", [row]))

    def add_trial(self, run: str, trial: Trial) -> None:
        """Index one trial and its blocks, replacing an earlier entry."""
        row, name = _row(run, trial), trial.folder.name
        blocks = [(run, name, *vars(block).values()) for block in trial.blocks]
        self._change(
            ("DELETE FROM trials WHERE run = ? AND id = ?", [(run, name)]),
            (_insert("trials", row), [row]),
            ("INSERT INTO blocks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", blocks),
        )

    def trials(self, run: str) -> list[Trial]:
        """Return the ended trials of a run, sorted by round and attempt."""
        self._add_missing(run)
        blocks: dict[str, list[Block]] = {}
        for row in self._database.execute("SELECT * FROM blocks WHERE run = ? ORDER BY trial, first_step", (run,)):
            blocks.setdefault(row["trial"], []).append(Block(*tuple(row)[2:]))
        rows = self._database.execute("SELECT * FROM trials WHERE run = ? ORDER BY id", (run,))
        known = [(self.folder / run / TRIALS / row["id"], row) for row in rows]
        # Trials whose folder was deleted are left out. The current folder is used, as runs may have been moved.
        return [_trial(folder, row, blocks.get(row["id"], [])) for folder, row in known if folder.is_dir()]

    def close(self) -> None:
        """Close the file."""
        self._database.close()


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


def _trial(folder: Path, row: sqlite3.Row, blocks: list[Block]) -> Trial:
    known = {name: json.loads(row[name]) for name in AS_JSON} | {name: row[name] for name in AS_THEY_ARE}
    evaluation = Evaluation(**json.loads(row["evaluation"])) if row["evaluation"] else None
    return Trial(
        folder=folder, job=protocol.from_line(row["job"]), first_step_since_spawn_ns=row["to_first_step_ns"],
        blocks=tuple(blocks), evaluation=evaluation, done=bool(row["done"]),
        error=(row["error_kind"], row["error_message"]) if row["error_kind"] else None,
        **known | {"warnings": tuple(known["warnings"])},
    )  # fmt: skip
