"""The index of all runs: an SQLite file of their trials. It is a cache and can be rebuilt from the event files."""

from __future__ import annotations

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
RUN = record.FILE
BUSY_S = 30
TRIALS = "trials"
SCHEMA_VERSION = 2


class Store:
    """The index of the runs in one folder. The file lies next to the run folders."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._notices: list[str] = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._open(folder / FILE)
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
        version = self._database.execute("PRAGMA user_version").fetchone()[0]
        if version != SCHEMA_VERSION:
            self._create()

    def _create(self) -> None:
        is_new = not self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if not is_new:
            raise sqlite3.DatabaseError("it was written by another version")
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.executescript((Path(__file__).parent / "schema.sql").read_text(encoding="utf-8"))
        self._database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        self._ingest_all()

    def _use_memory(self, error: Exception) -> None:
        """If the file can be neither read nor written, as on a read-only disk, build the index in memory."""
        self._open(":memory:")
        self._notices.append(
            f"The index {self.folder / FILE} cannot be used ({error}); the event files were read instead."
        )

    def _rebuild(self, error: sqlite3.DatabaseError) -> None:
        """Rename the damaged file, so that it can be examined, and build a new one from the event files."""
        path = self.folder / FILE
        self._database.close()
        for suffix in ("", "-wal", "-shm"):
            old = path.with_name(path.name + suffix)
            if old.exists():
                old.replace(path.with_name(f"{path.name}.damaged{suffix}"))
        self._notices.append(
            f"The index {path} could not be used ({error}). It was rebuilt from the event files; no data were lost."
        )
        self._open(path)

    def _ingest_all(self) -> None:
        for path in sorted(self.folder.glob(f"*/{RUN}")):
            try:
                self._add_missing(path.parent.name)
            except UserError as error:
                self._notices.append(str(error))

    def _add_missing(self, run: str) -> None:
        """Index ended trials that are not in the index, because the orchestrator was killed or could not write it."""
        if not self._database.execute("SELECT count(*) FROM runs WHERE id = ?", (run,)).fetchone()[0]:
            self.add_run(self.folder / run)
        known = {row["id"] for row in self._database.execute("SELECT id FROM trials WHERE run = ?", (run,))}
        for folder in sorted((self.folder / run / TRIALS).glob("*/")):
            if folder.name not in known and (folder / trials.JOB).exists():
                self._ingest(run, folder)

    def _ingest(self, run: str, folder: Path) -> None:
        try:
            trial = trials.read(folder)
        except UserError as error:
            self._notices.append(str(error))
            return
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
                f"The index {self.folder / FILE} could not be written ({error}). No data were lost: it will be rebuilt "
                "from the event files."
            )
        finally:
            if self._database.in_transaction:  # on some errors, such as a full disk, SQLite has already rolled back
                self._database.execute("ROLLBACK")

    def add_run(self, folder: Path) -> None:
        """Index a run from its run.json, replacing an earlier entry. UserError: the file is damaged."""
        known = record.read(folder)
        row = {key: getattr(known, key) for key in ("study", "created", "state", "machine", "method")}
        row |= {"id": folder.name, "folder": str(folder), "plan": json.dumps(known.plan.to_dict())}
        names = ", ".join(row)
        updates = ", ".join(f"{name} = excluded.{name}" for name in row if name != "id")
        marks = ", ".join(f":{name}" for name in row)
        self._change((f"INSERT INTO runs ({names}) VALUES ({marks}) ON CONFLICT (id) DO UPDATE SET {updates}", [row]))

    def add_trial(self, run: str, trial: Trial) -> None:
        """Index one trial and its blocks, replacing an earlier entry."""
        row, name = _row(run, trial), trial.folder.name
        self._change(
            ("DELETE FROM trials WHERE run = ? AND id = ?", [(run, name)]),
            (f"INSERT INTO trials ({', '.join(row)}) VALUES ({', '.join(':' + key for key in row)})", [row]),
            (
                "INSERT INTO blocks VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [(run, name, *vars(block).values()) for block in trial.blocks],
            ),
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


def _row(run: str, trial: Trial) -> dict[str, Any]:
    job, case = trial.job, trial.job.case
    return {
        "run": run, "id": trial.folder.name, "kind": job.kind, "case_id": case.id,
        "round": job.round, "attempt": job.attempt,
        "framework": case.framework, "workload": case.workload, "preset": case.preset, "mode": case.settings.mode,
        "method": trial.method, "worker_hash": job.worker_hash, "job": json.dumps(asdict(job)),
        "applied": json.dumps(trial.applied), "libraries": json.dumps(trial.libraries),
        "phases_ns": json.dumps(trial.phases_ns), "to_first_step_ns": trial.first_step_since_spawn_ns,
        "peak_resident_bytes": trial.peak_resident_bytes, "peak_device_bytes": trial.peak_device_bytes,
        "evaluation": json.dumps(asdict(trial.evaluation)) if trial.evaluation else None,
        "warnings": json.dumps(trial.warnings), "error_kind": trial.error[0] if trial.error else None,
        "error_message": trial.error[1] if trial.error else None, "done": int(trial.done), "folder": str(trial.folder),
    }  # fmt: skip


def _trial(folder: Path, row: sqlite3.Row, blocks: list[Block]) -> Trial:
    evaluation = json.loads(row["evaluation"]) if row["evaluation"] else None
    return Trial(
        folder=folder, job=protocol.from_line(row["job"]), method=row["method"],
        applied=json.loads(row["applied"]), libraries=json.loads(row["libraries"]), phases_ns=json.loads(row["phases_ns"]),
        first_step_since_spawn_ns=row["to_first_step_ns"], blocks=tuple(blocks),
        evaluation=Evaluation(**evaluation) if evaluation else None, peak_resident_bytes=row["peak_resident_bytes"],
        peak_device_bytes=row["peak_device_bytes"], warnings=tuple(json.loads(row["warnings"])),
        error=(row["error_kind"], row["error_message"]) if row["error_kind"] else None, done=bool(row["done"]),
    )  # fmt: skip
