"""The result of a run as JSON: plain values for scripts."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from steelyard.analysis import (
    energy,
    graphs,
    headlines,
    job_length,
    machine_limits,
    money,
    published_tables,
    rank_exchange,
    recommendation,
    setting_effects,
    shares,
    strategies,
    trade_offs,
)
from steelyard.analysis.model import Comparison, Contender, View, location_of
from steelyard.profiles.quantities import QUANTITIES as PROFILED
from steelyard.results import confusions
from steelyard.results.learning import courses
from steelyard.results.port_record import PORT_CHECK
from steelyard.results.quantities import OF_PHASES, PROCESS, STEP_TIME
from steelyard.results.repeated import Repeated
from steelyard.statistics.verdicts import Verdict
from steelyard.wording.task_words import fill


def show(view: View) -> None:
    """Print the result of a run."""
    print(json.dumps(as_dict(view), indent=1, allow_nan=False))


def as_dict(view: View) -> dict[str, Any]:
    """Return the result as plain values for scripts. Values that are not finite become None.

    Fields of quantities other than the time per step are included only if that quantity is ranked.
    """
    known, quantity = view.record, view.quantity
    found = {
        "run": view.name,
        "study": known.study,
        "created": known.created,
        "state": known.state,
        "method": known.method,
        "machine": known.machine,
        "comparisons": [_comparison(each, view.comparisons) for each in view.comparisons],
        "missing": [asdict(each) for each in view.missing],
        "warnings": [asdict(warning) for warning in view.warnings],
        "folder": str(view.folder),
    }
    if view.repeated:
        found["repeated_for_standstill"] = [_repeated(each, view) for each in view.repeated]
    if view.searched:
        found["search"] = asdict(view.searched)
    if view.published:
        found["published"] = [published_tables.as_dict(each) for each in view.published]
    if view.price:
        found["price"] = money.price_as_dict(view.price)
    if quantity is not STEP_TIME:
        facts = _picked(quantity, "name", "unit", "more_is_better")
        found["quantity"] = {**facts, "decision": fill(headlines.RULE, view.task)}
    plain: dict[str, Any] = finite(found)
    return plain


def _repeated(attempt: Repeated, view: View) -> dict[str, Any]:
    titles = {each.case.id: each.title for comparison in view.comparisons for each in comparison.contenders}
    return {
        **_picked(attempt, "group", "round", "attempt"),
        "contenders": [titles[key] for key in attempt.still if key in titles],
    }


def finite(value: Any) -> Any:
    """Return plain values with None in place of numbers that are not finite, which JSON cannot express."""
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _picked(values: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(values, name) for name in names}


def _comparison(comparison: Comparison, among: Sequence[Comparison]) -> dict[str, Any]:
    rankings = comparison.rankings
    spread, exchanges = strategies.strategies(comparison, among), rank_exchange.exchanges(comparison)
    traded = recommendation.trade_offs_of(comparison)

    def named(each: Contender) -> str:
        return case_name(comparison, each)

    return {
        **_picked(comparison, "group", "title", "task", "batch", "unit", "primary", "reused"),
        "headlines": {source: headlines.headline(comparison, source) for source in rankings},
        "sentences": {source: headlines.verdict(comparison, source) for source in rankings},
        "advice": comparison.advice,
        "verdicts": {
            source: [_verdict(comparison, verdict) for verdict in ranking.verdicts]
            for source, ranking in rankings.items()
        },
        "limits": machine_limits.as_dict(comparison),
        "job_length": job_length.as_dict(comparison, named),
        "contenders": [_contender(comparison, contender) for contender in comparison.contenders],
        "skipped": [asdict(each) for each in comparison.skipped],
        **({"initial_weights": comparison.initial_weights} if comparison.initial_weights else {}),
        **({"ranks": strategies.as_dict(spread, named)} if spread else {}),
        **({"communication": [rank_exchange.as_dict(each, named) for each in exchanges]} if exchanges else {}),
        **({"energy": used} if (used := energy.as_dict(comparison, named)) else {}),
        **({"cost": money.as_dict(comparison, named)} if comparison.price else {}),
        **({"trade_offs": [trade_offs.as_dict(each, named) for each in traded]} if traded else {}),
        **({"setting_effects": effects} if (effects := setting_effects.as_dict(comparison, named)) else {}),
    }


def case_name(comparison: Comparison, contender: Contender) -> str:
    """Return the name of a contender in the JSON of a run."""
    return f"{comparison.group}/{contender.variant}"


def _verdict(comparison: Comparison, verdict: Verdict) -> dict[str, Any]:
    names = {contender.case.id: case_name(comparison, contender) for contender in comparison.contenders}
    ratio = comparison.quantity.ratio(verdict)
    values = {"ratio": ratio.value, "low": ratio.low, "high": ratio.high}
    return asdict(verdict) | values | {"a": names[verdict.a], "b": names[verdict.b]}


def _contender(comparison: Comparison, contender: Contender) -> dict[str, Any]:
    found = {
        "case": case_name(comparison, contender),
        "id": contender.case.id,
        **_picked(contender, "title", "version", "mode", "maintained"),
        "certificate": contender.proof.state,
        **({"certificate_by": PORT_CHECK} if contender.proof.by_port_check else {}),
        "certificate_sentence": contender.proof.sentence,
        "certificate_of_processes": contender.proof.processes,
        "speeds": {source: asdict(speed) for source, speed in contender.speeds.items()},
        "latencies": {name: asdict(each) for name, each in contender.latencies.items()},
        **_picked(contender, "first_step_ns", "to_first_step_ns", "peak_resident_bytes", "peak_device_bytes"),
        "memory_by_phase": {
            each.name: found.value_ns for each in OF_PHASES if (found := location_of(each, contender.trials, PROCESS))
        },
        "evaluation": asdict(contender.evaluation) if contender.evaluation else None,
        "failure": contender.failure,
        "settings": contender.applied,
        "libraries": contender.libraries,
    }
    if contender.profile:
        found["profile"] = {**asdict(contender.profile.breakdown), "files": contender.profile.files}
    if contender.not_profiled:
        found["not_profiled"] = contender.not_profiled
    if contender.profiles:
        levels = {name: shares.level(each, contender) for name, each in PROFILED.items()}
        found["profile_quantities"] = {name: asdict(each) for name, each in levels.items() if each}
    if contender.graphs or contender.no_graph:
        found["graph"] = graphs.as_dict(contender)
    if (matrix := confusions.matrix(contender.trials)) is not None:
        found["confusion"] = matrix.tolist()
    if contender.trains_epochs:
        found["trainings"] = [asdict(each) for each in courses(contender.trials)]
    if comparison.quantity is not STEP_TIME:
        found["standings"] = {source: asdict(standing) for source, standing in contender.standings.items()}
    return found
