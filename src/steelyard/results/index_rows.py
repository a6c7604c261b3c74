"""The rows of the index: a run, its trials, their blocks and its points, as statements that SQLite and PostgreSQL understand."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

from steelyard.results import record
from steelyard.results.points import LEAST_PROCESSES, Point, RunFacts
from steelyard.results.record import RunRecord
from steelyard.results.trials import Trial
from steelyard_worker import records

SCHEMA = Path(__file__).parent / "schema.sql"
SCHEMA_VERSION = 3
# The fields of a trial, and of its blocks, that are columns of the same name.
AS_THEY_ARE = ("method", "peak_resident_bytes", "peak_device_bytes")
OF_BLOCKS = ("input", "phase", "steps", "start_ns", "elapsed_ns", "first_step", "cpu_ns", "epoch")
AS_JSON = ("applied", "libraries", "phases_ns", "warnings")
# The possible inputs of a point.
INPUTS = ("pipeline", "cached")

Made = TypeVar("Made")

Statement = tuple[str, list[dict[str, Any]]]
"""A statement with named parameters, `:name`, and the rows of their values."""

POINTS = """
    SELECT run, line, group_name, variant, title, input, framework, environment, version, processes_ns
    FROM points JOIN runs ON runs.id = points.run ORDER BY created, run, group_name, variant, input"""
RUNS = "SELECT id, name, study, created, machine, host, method, worker_hash, environments FROM runs"


def of_run(run: str, folder: Path, known: RunRecord) -> list[Statement]:
    """Return the statements that index a run under an id. They replace an earlier entry, but not its trials."""
    row = {key: getattr(known, key) for key in ("study", "created", "state", "machine", "method", "worker_hash")}
    row |= {"id": run, "name": folder.name, "folder": str(folder), "host": json.dumps(known.host)}
    row |= {"environments": json.dumps(known.environments), "plan": as_json(known.plan)}
    updates = ", ".join(f"{name} = excluded.{name}" for name in row if name != "id")
    return [(f"{insert('runs', row)} ON CONFLICT (id) DO UPDATE SET {updates}", [row])]


def of_trial(run: str, trial: Trial) -> list[Statement]:
    """Return the statements that index a trial and its blocks. They replace an earlier entry."""
    name = trial.folder.name
    return [("DELETE FROM trials WHERE run = :run AND id = :id", [{"run": run, "id": name}]), *_inserted(run, [trial])]


def of_trials(run: str, found: Iterable[Trial]) -> list[Statement]:
    """Return the statements that index all trials of a run and their blocks. They replace all earlier entries of that run."""
    return [("DELETE FROM trials WHERE run = :run", [{"run": run}]), *_inserted(run, found)]


def _inserted(run: str, found: Iterable[Trial]) -> list[Statement]:
    """Return one statement for each table that has rows: a database takes many rows at once in less time."""
    rows: list[dict[str, Any]] = []
    blocks: list[dict[str, Any]] = []
    shared = SharedTexts()
    for trial in found:
        rows.append(_row(run, trial, shared))
        place = {"run": run, "trial": trial.folder.name}
        blocks += [place | {key: getattr(block, key) for key in OF_BLOCKS} for block in trial.blocks]
    return [(insert(table, rows[0]), rows) for table, rows in (("trials", rows), ("blocks", blocks)) if rows]


def of_points(run: str, found: Iterable[Point], stamp: str) -> list[Statement]:
    """Return the statements that index the points of a run that was read in the state `stamp`. They replace earlier ones."""
    rows = [
        {
            "run": run,
            "line": each.line,
            "group_name": each.group,
            "variant": each.variant,
            "title": each.title,
            "input": each.input,
            "framework": each.framework,
            "environment": each.environment,
            "version": each.version,
            "step_ns": each.step_ns,
            "processes_ns": json.dumps(each.processes_ns),
        }
        for each in found
    ]
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


def as_json(made: Any) -> str:
    """Return a dataclass as JSON, as of `records.plain`, which copies every value and takes ten times as long."""
    return json.dumps(made, default=records.present)


class SharedTexts:
    """Dataclasses as JSON. The text of an object that several of them share, such as the case of jobs, is made once."""

    def __init__(self) -> None:
        self._texts: dict[int, tuple[Any, str]] = {}  # with the object, so that no other one gets its id

    def as_json(self, made: Any) -> str:
        """Return a dataclass as JSON: the fields that are dataclasses come last."""
        own = records.present(made)
        parts = {name: own.pop(name) for name, value in list(own.items()) if is_dataclass(value)}
        texts = [json.dumps(own)[1:-1], *(f'"{name}": {self._text(part)}' for name, part in parts.items())]
        return f"{{{', '.join(filter(None, texts))}}}"

    def _text(self, part: Any) -> str:
        if id(part) not in self._texts:
            self._texts[id(part)] = part, as_json(part)
        return self._texts[id(part)][1]


def to_point(row: tuple[Any, ...]) -> Point:
    """Return the point in a row of the query POINTS. ValueError: the row was damaged or altered."""
    found = _built(Point, row, "points", {"processes_ns"})
    # `points.points` writes no other values, and a history takes their logarithms.
    if len(found.processes_ns) < LEAST_PROCESSES or min(found.processes_ns) <= 0:
        message = f"points.processes_ns must be {LEAST_PROCESSES} or more times above 0, but it is {row[-1][:80]!r}"
        raise ValueError(message)
    if found.input not in INPUTS:
        message = f"points.input must be {' or '.join(INPUTS)}, but it is {found.input[:80]!r}"
        raise ValueError(message)
    return found


def to_facts(row: tuple[Any, ...]) -> RunFacts:
    """Return the facts in a row of the query RUNS. ValueError: the row was damaged or altered."""
    found = _built(RunFacts, row, "runs", {"host", "environments"})
    try:
        record.moment(found.created)
    except ValueError as error:
        message = f"runs.created is no time: {error}"
        raise ValueError(message) from None
    return found


def _built(kind: type[Made], row: tuple[Any, ...], table: str, as_json: set[str]) -> Made:
    """Return a row, whose columns are in the order of the fields of a dataclass, as that class. ValueError: they do not fit."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    raw = dict(zip(names, row, strict=True))
    made: Made = records.build(kind, raw | {name: _parsed(raw, name, table) for name in as_json}, table)
    return made


def _parsed(raw: Mapping[str, Any], name: str, table: str) -> Any:
    text = records.convert(str, raw[name], f"{table}.{name}")
    try:
        return records.parse(text)
    except ValueError as error:
        message = f"{table}.{name} is no JSON: {error}"
        raise ValueError(message) from None


def _row(run: str, trial: Trial, shared: "SharedTexts") -> dict[str, Any]:
    job, case = trial.job, trial.job.case
    kind, message = trial.error or (None, None)
    return {
        "run": run,
        "id": trial.folder.name,
        "kind": job.kind,
        "case_id": case.id,
        "round": job.round,
        "attempt": job.attempt,
        "framework": case.framework,
        "workload": case.workload,
        "preset": case.preset,
        "mode": case.settings.mode,
        "worker_hash": job.worker_hash,
        "job": shared.as_json(job),
        "to_first_step_ns": trial.first_step_since_spawn_ns,
        "evaluation": as_json(trial.evaluation) if trial.evaluation else None,
        "error_kind": kind,
        "error_message": message,
        "done": int(trial.done),
        "folder": str(trial.folder),
        **{name: getattr(trial, name) for name in AS_THEY_ARE},
        **{name: json.dumps(getattr(trial, name)) for name in AS_JSON},
    }
