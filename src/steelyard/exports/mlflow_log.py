"""Contenders as runs of MLflow: settings, versions and machine, values with their intervals, learning curves, verdict tables."""

from __future__ import annotations

import logging
import math
import os
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.analysis import headlines, tidy
from steelyard.analysis.model import location_of
from steelyard.errors import UserError
from steelyard.exports import extras, markdown, writing
from steelyard.files import atomic
from steelyard.report import privacy
from steelyard.results.learning import by_step, course
from steelyard.results.quantities import PROCESS, QUANTITIES, in_task

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.analysis.model import Comparison, Contender, View
    from steelyard.results.trials import Trial

DATABASE, ARTIFACTS = "mlflow.db", "mlflow-artifacts"
SQLITE = "sqlite:///"
KEY = "steelyard.key"
"""The tag by which a contender is found again, to replace it when it is exported once more."""
LONGEST_NAME, LONGEST_PARAM, LONGEST_TAG = 250, 6000, 5000
"""Letters that MLflow stores of names, parameters and tags, at most."""
MOST_PARAMS, MOST_METRICS = 100, 1000
"""Values that MLflow takes at once."""
Point = tuple[str, float, int]
"""Name, value, and step of a metric."""


def write(view: View, folder: Path) -> list[Path]:
    """Write into the store `mlflow.db` of a folder, and return its files. UserError: MLflow is not installed."""
    return write_to(view, f"{SQLITE}{folder / DATABASE}")


def write_to(view: View, address: str) -> list[Path]:
    """Write into a store of SQLite, such as `sqlite:///results.db`, and return its files.

    UserError: it is no such address, the store is inside the folder of the run or cannot be used, or MLflow is not installed.
    """
    database = _database(address, view)
    client = _client()
    errors = tuple(
        getattr(extras.needed(module, package, "mlflow", "The format mlflow"), name)
        for module, package, name in (
            ("mlflow.exceptions", "mlflow-skinny", "MlflowException"),
            ("sqlalchemy.exc", "sqlalchemy", "SQLAlchemyError"),
        )
    )
    database.parent.mkdir(parents=True, exist_ok=True)
    try:
        store = client(tracking_uri=f"{SQLITE}{database}")
        experiment = _experiment(store, view, database.parent / ARTIFACTS)
        for comparison in view.comparisons:
            for contender in comparison.contenders:
                _write_contender(store, experiment, view, comparison, contender)
    except errors as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"The store {database} cannot be used ({reason}). Name another one with -o.") from None
    return [database, *sorted(path for path in (database.parent / ARTIFACTS).rglob("*") if path.is_file())]


def _database(address: str, view: View) -> Path:
    if not address.startswith(SQLITE) or len(address) == len(SQLITE) or "?" in address:
        raise UserError(f"{address} is no store that the format mlflow writes to: name a folder, or {SQLITE}FILE.")
    path = Path(address.removeprefix(SQLITE)).expanduser().absolute()
    writing.check_outside(path, view.folder)
    return path


def _client() -> Any:
    """Return MLflow's class of clients. It reports its use to its makers unless it is told not to, before it is imported."""
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    found = extras.needed("mlflow.tracking", "mlflow-skinny", "mlflow", "The format mlflow")
    for package in ("sqlalchemy", "alembic"):
        extras.needed(package, package, "mlflow", "The format mlflow")
    for name in ("mlflow", "alembic"):  # they tell how they make the tables of a new store
        logging.getLogger(name).setLevel(logging.WARNING)
    return found.MlflowClient


def _experiment(store: Any, view: View, artifacts: Path) -> str:
    """Return the id of the experiment of a study, which holds the runs of all its contenders."""
    name = f"steelyard {view.record.study}".strip()
    known = store.get_experiment_by_name(name)
    found: str = known.experiment_id if known else store.create_experiment(name, artifact_location=artifacts.as_uri())
    return found


def _write_contender(store: Any, experiment: str, view: View, comparison: Comparison, contender: Contender) -> None:
    entities = extras.needed("mlflow.entities", "mlflow-skinny", "mlflow", "The format mlflow")
    started = int(view.record.started.timestamp() * 1000)
    key = atomic.key(view.name, view.record.identity, comparison.group, contender.variant)
    for earlier in store.search_runs([experiment], f"tags.`{KEY}` = '{key}'"):
        store.delete_run(earlier.info.run_id)
    name = _text(f"{view.name}, {comparison.group}, {contender.title}", LONGEST_NAME)
    tags = {KEY: key, **_texts(_tags(view, comparison, contender), LONGEST_TAG)}
    run = store.create_run(experiment, start_time=started, tags=tags, run_name=name).info.run_id
    params = _texts(_params(view, comparison, contender), LONGEST_PARAM)
    for part in _parts([entities.Param(*each) for each in params.items()], MOST_PARAMS):
        store.log_batch(run, params=part)
    points = [each for each in _points(comparison, contender) if math.isfinite(each[1])]
    metrics = [entities.Metric(_name(label), value, started, step) for label, value, step in points]
    for part in _parts(metrics, MOST_METRICS):
        store.log_batch(run, metrics=part)
    store.log_text(run, markdown.text(view), "verdicts.md")
    store.log_dict(run, asdict(contender.case), "case.json")
    store.set_terminated(run, "FAILED" if contender.failure else "FINISHED", started)


def _tags(view: View, comparison: Comparison, contender: Contender) -> dict[str, Any]:
    source = comparison.primary
    verdict = headlines.headline(comparison, source) if source in comparison.rankings else ""
    units = {f"unit.{name}": each.unit for name, each in QUANTITIES.items() if comparison.task in each.tasks}
    return {
        "steelyard.run": view.name,
        "steelyard.group": comparison.group,
        "steelyard.contender": contender.variant,
        "steelyard.method": view.record.method,
        "steelyard.certificate": contender.proof.state,
        "steelyard.certificate_key": contender.proof.details.get("key", ""),
        "steelyard.verdict": verdict,
        "steelyard.failure": contender.failure,
        **units,
    }


def _params(view: View, comparison: Comparison, contender: Contender) -> dict[str, Any]:
    """Return every field of the case, as the tidy table names them, with versions and machine."""
    known = view.record
    environment = known.environments.get(contender.case.environment)
    versions = {"Python": environment["python_version"], **environment["packages"]} if environment else {}
    host = {f"machine.{name}": value for name, value in known.host.items() if name not in ("unknown", "caches")}
    return {
        **tidy.fields(contender.case),
        "version": contender.version,
        "parameters": comparison.parameters,
        "steelyard": known.steelyard,
        "method": known.method,
        "machine": known.machine,
        **host,
        **{f"package.{name}": version for name, version in versions.items()},
    }


def _points(comparison: Comparison, contender: Contender) -> Iterator[Point]:
    """Yield the values with their intervals, the ratios to the best, and the learning curves of the first process."""
    for known in QUANTITIES.values():
        quantity = in_task(known, comparison.task)
        if comparison.task not in quantity.tasks:
            continue
        inputs = dict.fromkeys(name for trial in contender.trials for name in trial.job.schedule.inputs)
        for source in [PROCESS] if quantity.per_process else inputs:
            if found := location_of(quantity, contender.trials, source):
                ends = {"mean": found.value_ns, "low": found.low_ns, "high": found.high_ns}
                yield from ((f"{quantity.name}/{source}/{end}", value, 0) for end, value in ends.items())
    for source, standing in contender.standings.items():
        if ratio := standing.ratio:
            ends = {"value": ratio.value, "low": ratio.low, "high": ratio.high}
            yield from ((f"ratio/{source}/{end}", value, 0) for end, value in ends.items())
    yield from _curves(contender.trials[0]) if contender.trials else ()


def _curves(trial: Trial) -> Iterator[Point]:
    """Yield loss and scores by step, and by epoch where whole epochs are trained."""
    for source in dict.fromkeys(block.input for block in trial.blocks):
        losses = by_step(trial, source)[1]
        yield from ((f"loss/{source}", value, step) for step, value in enumerate(losses.tolist(), 1))
    for evaluation in trial.evaluations:
        yield from ((f"test/{name}", value, evaluation.steps) for name, value in evaluation.scores.items())
    if trained := course(trial):
        columns = {"loss": trained.losses, "seconds of training": trained.seconds, **trained.scores}
        for name, values in columns.items():
            yield from (
                (f"epoch/{name}", value, int(epoch)) for epoch, value in zip(trained.epochs, values, strict=True)
            )


def _texts(values: dict[str, Any], longest: int) -> dict[str, str]:
    """Return names and values as MLflow stores them: without home folders, and cut where they are too long for it."""
    return {_name(name): _text(str(value), longest) for name, value in values.items() if value not in ("", None)}


def _name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_\-. /]+", "_", name)[:LONGEST_NAME]


def _text(value: str, longest: int) -> str:
    shown = privacy.without_names(value)
    return shown if len(shown) <= longest else f"{shown[: longest - 3]}..."


def _parts(values: list[Any], most: int) -> Iterator[Sequence[Any]]:
    yield from (values[place : place + most] for place in range(0, len(values), most))
