"""Runs with trials, and the index of their folder as another program reads it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import recorded_trials

from steelyard.plan import resolve
from steelyard.plan.options import Options
from steelyard.results import record
from steelyard.results.store import Store

WORKLOADS = Path(__file__).parents[1] / "workloads"
PLAN = resolve.plan(Options(workloads=("line",), frameworks=("fake",), workload_folders=(str(WORKLOADS),)))


def new_run(runs: Path, name: str = "20260101-000000-first-look") -> Path:
    folder = runs / name
    folder.mkdir(parents=True)
    record.write(folder, record.RunRecord(PLAN, "2026-01-01", "running", "steelyard run"))
    return folder


def opened(runs: Path) -> tuple[Store, list[str]]:
    """Open the index of a folder; returns it with the sentences that it says."""
    said: list[str] = []
    return Store(runs, said.append), said


def rows(runs: Path, *columns: str) -> list[tuple[Any, ...]]:
    """Return columns of all trials in an index, as another program reads them."""
    with closing(sqlite3.connect(runs / "index.sqlite")) as database:
        return database.execute(f"SELECT {', '.join(columns)} FROM trials ORDER BY run, id").fetchall()


def new_trial(run: Path, number: int, attempt: int, framework: str, blocks: list[int], ending: str) -> Path:
    folder = run / "trials" / f"r{number:02d}.{attempt}-{framework}"
    made = recorded_trials.job(folder, number, attempt, framework)
    return recorded_trials.write(folder, made, recorded_trials.events(tuple(blocks), ending))
