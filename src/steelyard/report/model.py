"""The store's rows and the run's record -> what a page or a table shows: every number once, with its unit and its doubt."""

from __future__ import annotations

import statistics as plain
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from steelyard.report import titles
from steelyard.results import store
from steelyard.statistics import summaries
from steelyard.statistics.decision import DecisionPlan, Ranking, decide
from steelyard.statistics.intervals import Location, location_interval, ratio_interval
from steelyard.statistics.sentences import ranking_sentence
from steelyard.statistics.steadiness import SeriesLabel, series_label

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.measure.rounds import Book
    from steelyard.plan.cells import Cell
    from steelyard.plan.resolve import Gap, RunPlan
    from steelyard.report.warnings import Caution
    from steelyard.results.record import RunRecord
    from steelyard.results.trials import Evaluation, Trial
    from steelyard.statistics.calibration import NoiseFloor
    from steelyard.statistics.intervals import Ratio

NO_CERTIFICATE = "none"


@dataclass(frozen=True)
class Speed:
    """One contender on one input. Times in nanoseconds per step; `throughput` in samples per second."""

    median_ns: float
    location: Location
    throughput: float
    throughput_low: float
    throughput_high: float
    ratio: Ratio | None  # time over the fastest contender's time; None for the fastest itself
    processes: int
    counted_steps: int
    share_of_peak: float | None
    host_share: float | None
    label: SeriesLabel | None


@dataclass(frozen=True)
class Proof:
    """A certificate as the table shows it. `state`: certified, rejected, none."""

    state: str
    sentence: str
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Contender:
    """One cell with everything measured of it; `title` is the shortest that tells it from the others of its group."""

    cell: Cell
    title: str
    version: str
    mode: str
    speeds: dict[str, Speed]
    first_step_ns: float | None
    to_first_step_ns: float | None
    phases_ns: dict[str, float]
    peak_resident_bytes: int | None
    peak_device_bytes: int | None
    evaluation: Evaluation | None
    losses: tuple[float, ...]
    proof: Proof
    applied: dict[str, Any]
    libraries: dict[str, Any]
    trials: tuple[Trial, ...]
    failure: str
    impossible: str = ""
    """Why its speed is an error and no record; empty for everything a machine can do."""


@dataclass(frozen=True)
class Comparison:
    """One group: contenders fastest first on the deciding input, with verdicts for each input."""

    group: str
    title: str
    unit: str
    metric: str
    preset: str
    origin: str
    batch: int
    parameters: int
    training_flops: int
    primary: str
    contenders: tuple[Contender, ...]
    rankings: dict[str, Ranking]
    sentences: dict[str, str]
    gaps: tuple[Gap, ...]


@dataclass(frozen=True)
class View:
    """Everything a report shows."""

    name: str
    folder: Path
    record: RunRecord
    noise: NoiseFloor
    comparisons: tuple[Comparison, ...]
    disturbances: tuple[dict[str, Any], ...]
    warnings: tuple[Caution, ...]


@dataclass(frozen=True)
class Material:
    """What the view is made from: the plan again, and what was recorded."""

    plan: RunPlan
    record: RunRecord
    book: Book
    noise: NoiseFloor
    certificates: dict[str, dict[str, Any]]
    decision: DecisionPlan


def compare(material: Material, group: str) -> Comparison:
    """Build one comparison."""
    workload, preset = material.plan.preset(group)
    network = workload.network(preset)
    cells = material.plan.groups[group]
    inputs = _inputs(material, cells)
    primary = "pipeline" if "pipeline" in inputs else "cached"
    rankings = {source: _rank(material, cells, source) for source in inputs}
    named = titles.titles(cells)
    flops = network.training_flops * preset.sizes["batch"]
    contenders = [_contender(material, cell, named[cell.key], rankings, flops) for cell in cells]
    order = {key: place for place, key in enumerate(rankings[primary].order)} if primary in rankings else {}
    contenders.sort(key=lambda c: (order.get(c.cell.key, len(order)), _mean_ns(c, primary)))
    return Comparison(
        group=group, title=workload.title, unit=workload.unit, metric=workload.metric, preset=preset.summary,
        origin=material.record.inputs.get(group, {}).get("origin", ""), batch=preset.sizes["batch"],
        parameters=network.trainable_count, training_flops=network.training_flops, primary=primary,
        contenders=tuple(contenders), rankings=rankings,
        sentences={source: ranking_sentence(ranking, named) for source, ranking in rankings.items()},
        gaps=tuple(gap for gap in material.plan.gaps if gap.group == group),
    )  # fmt: skip


def _mean_ns(contender: Contender, source: str) -> float:
    speed = contender.speeds.get(source)
    return speed.location.value_ns if speed else float("inf")


def certified(material: Material, cell: Cell) -> bool:
    """Say whether a cell may take part in verdicts: proved to be the same computation, and not impossibly fast."""
    proved = bool(material.certificates.get(cell.key, {}).get("passed"))
    return proved and cell.key not in material.record.impossible


def _inputs(material: Material, cells: list[Cell]) -> list[str]:
    found = {
        block.input
        for cell in cells
        for trial in material.book.kept.get(cell.key, {}).values()
        for block in trial.blocks
    }
    return [source for source in ("pipeline", "cached") if source in found]


def _rank(material: Material, cells: list[Cell], source: str) -> Ranking:
    """Judge cells that are certified and physically possible; the others are shown, but no verdict rests on them."""
    able = [cell for cell in cells if certified(material, cell)]
    return decide(material.book.locations(able, source), material.noise, material.decision)


def _share_of_peak(material: Material, cell: Cell, flops: int, step_ns: float) -> float | None:
    peak = peak_flops(material.record, cell)
    return flops / (step_ns / 1e9) / peak if peak else None


def _contender(material: Material, cell: Cell, title: str, rankings: dict[str, Ranking], flops: int) -> Contender:
    trials = tuple(trial for _, trial in sorted(material.book.kept.get(cell.key, {}).items()))
    failed = material.book.failed.get(cell.key)
    first = trials[0] if trials else failed
    environment = material.record.environments.get(cell.environment, {})
    evaluated = next((trial for trial in trials if trial.evaluation), None)
    speeds = {source: _speed(material, cell, trials, source, ranking, flops) for source, ranking in rankings.items()}
    return Contender(
        cell=cell, title=title, version=environment.get("version", ""), mode=cell.settings.mode,
        speeds={source: speed for source, speed in speeds.items() if speed},
        first_step_ns=_median(t.phases_ns.get("first-step") for t in trials),
        to_first_step_ns=_median(t.first_step_since_spawn_ns for t in trials),
        phases_ns={name: _median(t.phases_ns.get(name) for t in trials) or 0.0 for name in ("import", "build", "first-step")},
        peak_resident_bytes=max((t.peak_resident_bytes or 0 for t in trials), default=0) or None,
        peak_device_bytes=max((t.peak_device_bytes or 0 for t in trials), default=0) or None,
        evaluation=evaluated.evaluation if evaluated else None,
        losses=_losses(evaluated or first), proof=_proof(material, cell),
        applied=first.applied if first else {}, libraries=first.libraries if first else {}, trials=trials,
        failure=f"{failed.error[1]} ({failed.error[0]}; see {failed.folder / 'output.log'})" if failed and failed.error else "",
        impossible=material.record.impossible.get(cell.key, ""),
    )  # fmt: skip


def _speed(
    material: Material, cell: Cell, trials: tuple[Trial, ...], source: str, ranking: Ranking, flops: int
) -> Speed | None:
    located = {store.round_of(t)[0]: value for t in trials if (value := t.location_ns(source))}
    if not located:
        return None
    values = list(located.values())
    location = location_interval(values) or Location(values[0], 0.0, float("inf"), 1)
    steps = [t.steps_ns(source) for t in trials]
    leader = ranking.leader
    ratio = None
    if leader and leader != cell.key:
        ratio = _ratio(material, cell, leader, source, ranking)
    batch = material.plan.preset(cell.group)[1].sizes["batch"]
    pooled = max(steps, key=len)
    return Speed(
        median_ns=plain.median(summaries.summarise(s).median_ns for s in steps if len(s)), location=location,
        throughput=batch * 1e9 / location.value_ns, throughput_low=batch * 1e9 / location.high_ns,
        throughput_high=batch * 1e9 / location.low_ns if location.low_ns else float("inf"), ratio=ratio,
        processes=len(values), counted_steps=sum(len(s) for s in steps),
        share_of_peak=_share_of_peak(material, cell, flops, location.value_ns),
        host_share=_median(t.host_share(source) for t in trials),
        label=series_label(pooled) if len(pooled) >= 20 else None,
    )  # fmt: skip


def _ratio(material: Material, cell: Cell, leader: str, source: str, ranking: Ranking) -> Ratio | None:
    verdict = ranking.between(cell.key, leader)
    if verdict:
        from steelyard.statistics.intervals import Ratio

        return Ratio(verdict.ratio, verdict.low, verdict.high, verdict.rounds)
    cells = [each for each in material.plan.cells if each.key in (cell.key, leader)]
    located = material.book.locations(cells, source)
    if cell.key not in located or leader not in located:
        return None
    return ratio_interval(located[cell.key], located[leader], noise=material.noise)


def peak_flops(record: RunRecord, cell: Cell) -> float | None:
    """Return the measured matrix-product peak in FLOP/s for a cell's precision; CPU only."""
    if cell.settings.device != "cpu":
        return None
    values = [float(value) for value in record.peak.get(cell.settings.precision, {}).values()]
    return max(values) * 1e9 if values else None


def _proof(material: Material, cell: Cell) -> Proof:
    found = material.certificates.get(cell.key)
    if not found:
        return Proof(NO_CERTIFICATE, "No certificate: this number is not proved to be the same computation.")
    if not found["passed"] and "key" not in found:  # nothing was judged: there was no reference, or it broke down
        return Proof(NO_CERTIFICATE, found["sentence"])
    return Proof("certified" if found["passed"] else "rejected", found["sentence"], found)


def _losses(trial: Trial | None) -> tuple[float, ...]:
    """Return the losses of the training steps in order: of the pipeline, or of the cached batch without one."""
    if trial is None:
        return ()
    pipeline = trial.losses("pipeline")
    return tuple((pipeline if len(pipeline) else trial.losses("cached")).tolist())


def _median(values: Any) -> float | None:
    known = [float(value) for value in values if value is not None]
    return plain.median(known) if known else None
