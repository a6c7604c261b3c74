"""Benchmark records of PyTorch HUD, in the form of its table `oss_ci_benchmark_v3`.

Source: pytorch/test-infra, clickhouse_db_schema/oss_ci_benchmark_v3/schema.sql. It has no interval: that is in `extra_info`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from steelyard.results.quantities import PROCESS, QUANTITIES, in_task
from steelyard.statistics.intervals import location_interval

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.analysis.model import Comparison, Contender, View
    from steelyard.results.quantities import Quantity
    from steelyard.results.record import RunRecord

BENCHMARK = "steelyard"
LARGEST = 2**32 - 1
"""The largest count that the table holds."""


def text(view: View) -> str:
    """Return a JSON list of records: one for each contender, input and quantity with a value."""
    return json.dumps(list(records(view)), indent=1, allow_nan=False) + "\n"


def records(view: View) -> Iterator[dict[str, Any]]:
    """Yield the records. `benchmark_values` has one value for each process, in the unit that the metric's `extra_info` names."""
    runners = [_runner(view.record)]
    for comparison in view.comparisons:
        for contender in comparison.contenders:
            shared = {
                "benchmark": _benchmark(view, comparison, contender),
                "model": _model(comparison, contender),
                "dependencies": _dependencies(view.record, contender),
                "runners": runners,
            }
            yield from (shared | measured for measured in _metrics(comparison, contender))


def _metrics(comparison: Comparison, contender: Contender) -> Iterator[dict[str, Any]]:
    for known in QUANTITIES.values():
        quantity = in_task(known, comparison.task)
        if comparison.task not in quantity.tasks:
            continue
        inputs = dict.fromkeys(name for trial in contender.trials for name in trial.job.schedule.inputs)
        for source in [PROCESS] if quantity.per_process else inputs:
            values = [float(value) for trial in contender.trials if (value := quantity.read(trial, source))]
            if values:
                yield {
                    "inputs": {source: {"dtype": contender.case.settings.precision, "extra_info": {}}},
                    "metric": _metric(quantity, values),
                }


def _metric(quantity: Quantity, values: list[float]) -> dict[str, Any]:
    found = location_interval(values)
    ends = {"mean": found.value_ns, "low": found.low_ns, "high": found.high_ns} if found else {}
    direction = "more" if quantity.more_is_better else "less"
    extra = {"unit": quantity.unit, "better": direction, "confidence": "0.95" if found else "", **ends}
    return {"name": quantity.name, "benchmark_values": values, "extra_info": _texts(extra)}


def _benchmark(view: View, comparison: Comparison, contender: Contender) -> dict[str, Any]:
    known, case = view.record, contender.case
    extra = {
        "run": view.name,
        "created": known.created,
        "study": known.study,
        "steelyard": known.steelyard,
        "method": known.method,
        "group": comparison.group,
        "case": case.id,
        "certificate": contender.proof.state,
        "certificate_key": contender.proof.details.get("key", ""),
        "device": case.settings.device,
        "threads": case.settings.threads,
        "batch": case.batch,
        "strategy": case.strategy,
        "seed": case.seed,
    }
    return {
        "name": BENCHMARK,
        "mode": case.task,
        "dtype": case.settings.precision,
        "extra_info": _texts(extra),
    }


def _model(comparison: Comparison, contender: Contender) -> dict[str, Any]:
    extra = {"title": comparison.title, "preset": contender.case.preset, "parameters": comparison.parameters}
    return {
        "name": contender.case.workload,
        "type": "network",
        "backend": contender.variant,
        "origins": [BENCHMARK],
        "extra_info": _texts(extra),
    }


def _dependencies(known: RunRecord, contender: Contender) -> dict[str, Any]:
    environment = known.environments.get(contender.case.environment)
    packages = {contender.case.framework: contender.version, **(environment["packages"] if environment else {})}
    return {
        name: {"repo": "", "branch": "", "sha": "", "version": version, "extra_info": {}}
        for name, version in packages.items()
    }


def _runner(known: RunRecord) -> dict[str, Any]:
    host = known.host
    gpus = [*host.get("gpus", ()), *host.get("npus", ())]
    return {
        "name": "",
        "type": known.machine,
        "cpu_info": str(host.get("cpu_model", "")),
        "cpu_count": _count(host.get("cores_usable", 0)),
        "avail_mem_in_gb": _count(host.get("memory_bytes", 0) // 2**30),
        "gpu_info": ", ".join(dict.fromkeys(gpus)),
        "gpu_count": len(gpus),
        "extra_info": _texts({"system": host.get("system", ""), "virtualised": host.get("virtualised", "")}),
    }


def _count(value: int | None) -> int:
    return min(max(int(value or 0), 0), LARGEST)


def _texts(values: dict[str, Any]) -> dict[str, str]:
    """Return a map of texts, without those that are empty."""
    return {name: str(value) for name, value in values.items() if value not in ("", None)}
