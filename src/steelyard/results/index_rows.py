"""The rows of the index: a run, its trials, their blocks and its points, as statements that SQLite and PostgreSQL understand."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from steelyard.results.points import Point, RunFacts
from steelyard.results.record import RunRecord
from steelyard.results.trials import Trial

SCHEMA = Path(__file__).parent / "schema.sql"
SCHEMA_VERSION = 3
# The fields of a trial, and of its blocks, that are columns of the same name.
AS_THEY_ARE = ("method", "peak_resident_bytes", "peak_device_bytes")
OF_BLOCKS = ("input", "phase", "steps", "start_ns", "elapsed_ns", "first_step", "cpu_ns", "epoch")
AS_JSON = ("applied", "libraries", "phases_ns", "warnings")

Statement = tuple[str, list[dict[str, Any]]]
"""A statement with named parameters, `:name`, and the rows that it is run for."""

POINTS = """
    SELECT run, line, group_name, variant, title, input, framework, environment, version, processes_ns
    FROM points JOIN runs ON runs.id = points.run ORDER BY created, run, group_name, variant, input"""
RUNS = "SELECT id, name, study, created, machine, host, method, worker_hash, environments FROM runs"


def of_run(run: str, folder: Path, known: RunRecord) -> list[Statement]:
    """Return what indexes a run under an id, replacing an earlier entry without its trials."""
    row = {key: getattr(known, key) for key in ("study", "created", "state", "machine", "method", "worker_hash")}
    row |= {"id": run, "name": folder.name, "folder": str(folder), "host": json.dumps(known.host)}
    row |= {"environments": json.dumps(known.environments), "plan": json.dumps(known.plan.to_dict())}
    updates = ", ".join(f"{name} = excluded.{name}" for name in row if name != "id")
    return [(f"{insert('runs', row)} ON CONFLICT (id) DO UPDATE SET {updates}", [row])]


def of_trial(run: str, trial: Trial) -> list[Statement]:
    """Return what indexes a trial and its blocks, replacing an earlier entry."""
    row, name = _row(run, trial), trial.folder.name
    blocks = [{"run": run, "trial": name, **{key: getattr(block, key) for key in OF_BLOCKS}} for block in trial.blocks]
    return [
        ("DELETE FROM trials WHERE run = :run AND id = :id", [{"run": run, "id": name}]),
        (insert("trials", row), [row]),
        *([(insert("blocks", blocks[0]), blocks)] if blocks else []),
    ]


def of_points(run: str, found: Iterable[Point], stamp: str) -> list[Statement]:
    """Return what indexes the points of a run that was read completely in the state `stamp`, replacing earlier ones."""
    rows = [
        {
            "run": run, "line": each.line, "group_name": each.group, "variant": each.variant, "title": each.title,
            "input": each.input, "framework": each.framework, "environment": each.environment, "version": each.version,
            "step_ns": each.step_ns, "processes_ns": json.dumps(each.processes_ns),
        }
        for each in found
    ]  # fmt: skip
    read = {"run": run, "stamp": stamp}
    return [
        ("DELETE FROM points WHERE run = :run", [{"run": run}]),
        *([(insert("points", rows[0]), rows)] if rows else []),
        ("DELETE FROM read_runs WHERE run = :run", [{"run": run}]),
        (insert("read_runs", read), [read]),
    ]


def insert(table: str, row: dict[str, Any]) -> str:
    """Return the statement that inserts rows with these columns."""
    return f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join(f':{name}' for name in row)})"


def to_point(row: tuple[Any, ...]) -> Point:
    """Return the point in a row of the query POINTS."""
    run, line, group, variant, title, source, framework, environment, version, processes = row
    values = tuple(json.loads(processes))
    return Point(run, line, group, variant, title, source, framework, environment, version, values)


def to_facts(row: tuple[Any, ...]) -> RunFacts:
    """Return the facts in a row of the query RUNS."""
    run, name, study, created, machine, host, method, code, environments = row
    return RunFacts(run, name, study, created, machine, json.loads(host), method, code, json.loads(environments))


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
