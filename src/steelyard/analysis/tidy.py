"""A run as a tidy table: one row for every process, input and quantity, with everything that decides the value."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from steelyard.results.quantities import PROCESS, QUANTITIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.analysis.model import Comparison, Contender, View
    from steelyard.results.trials import Trial
    from steelyard_worker.case import Case

Value = str | int | float | bool | None


def rows(view: View) -> Iterator[dict[str, Value]]:
    """Yield one row for each (contender, process, input, quantity) that has a value; all rows have the same names.

    `value` is in `unit`: a mean over the counted steps of one process, or one value of the process where `input` is "process".
    Names that begin with `case.` are the fields of the case. Lists and tables among them are JSON. `counts`: whether the
    contender is in verdicts.
    """
    for comparison in view.comparisons:
        for contender in comparison.contenders:
            for trial in contender.trials:
                facts = _facts(view, comparison, contender, trial)
                yield from (facts | value for value in _values(comparison, trial))


def _values(comparison: Comparison, trial: Trial) -> Iterator[dict[str, Value]]:
    for quantity in QUANTITIES.values():
        if comparison.task not in quantity.tasks:
            continue
        for source in [PROCESS] if quantity.per_process else trial.job.schedule.inputs:
            value = quantity.read(trial, source)
            if value:
                yield {"input": source, "quantity": quantity.name, "unit": quantity.unit, "value": float(value)}


def _facts(view: View, comparison: Comparison, contender: Contender, trial: Trial) -> dict[str, Value]:
    known = view.record
    return {
        "run": view.name,
        "created": known.created,
        "study": known.study,
        "steelyard": known.steelyard,
        "method": known.method,
        "machine": known.machine,
        "cpu": str(known.host.get("cpu_model", "")),
        "group": comparison.group,
        "contender": contender.variant,
        "title": contender.title,
        "version": contender.version,
        "maintained": contender.maintained,
        "certificate": contender.proof.state,
        "counts": contender.proof.state == "certified" and not contender.failure and not contender.above_peak,
        "round": trial.job.round,
        "process": trial.folder.name,
        **fields(contender.case),
    }


def fields(case: Case) -> dict[str, Value]:
    """Return all fields of a case with its id, under the names of the table."""
    return {f"case.{name}": _plain(value) for name, value in _flat(asdict(case)).items()} | {"case.id": case.id}


def _flat(case: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a case, with those of its settings and its optimizer among them."""
    found: dict[str, Any] = {}
    for name, value in case.items():
        if name in ("settings", "optimizer"):
            found |= {f"{name}.{inner}": inside for inner, inside in value.items()}
        else:
            found[name] = value
    return found


def _plain(value: Any) -> Value:
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return json.dumps(value, sort_keys=True)
