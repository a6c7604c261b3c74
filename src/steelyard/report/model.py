"""A run's record and trials -> what a page or a table shows: every number once, with its unit and its interval."""

from __future__ import annotations

import statistics as plain
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from steelyard.results.quantities import STEP_TIME
from steelyard.statistics import summaries
from steelyard.statistics.decision import DecisionPlan, Ranking, decide
from steelyard.statistics.intervals import Location, Ratio, location_interval, ratio_interval
from steelyard.statistics.sentences import ranking_sentence
from steelyard.statistics.steadiness import SeriesLabel, series_label

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.report.warnings import ResultWarning
    from steelyard.results.quantities import Quantity
    from steelyard.results.record import Group, RunPlan, RunRecord, Skipped, Variant
    from steelyard.results.round_results import RoundResults
    from steelyard.results.trials import Evaluation, Trial
    from steelyard.statistics.calibration import NoiseFloor
    from steelyard_worker.case import Case

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
    """One case with everything that was measured of it.

    `variant` is its name in the group, `title` what tables show, `settings` its knobs that are not at their defaults.
    `above_peak` says why its speed is an error; empty where it is none.
    """

    case: Case
    variant: str
    title: str
    settings: str
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
    above_peak: str = ""


@dataclass(frozen=True)
class Comparison:
    """One group: contenders best first on the primary input, with verdicts for each input.

    `quantity` is what they are ranked by; `remarks` are (framework, note) pairs, such as that a framework is retired.
    """

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
    quantity: Quantity
    contenders: tuple[Contender, ...]
    rankings: dict[str, Ranking]
    sentences: dict[str, str]
    skipped: tuple[Skipped, ...]
    remarks: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class View:
    """Everything a report shows."""

    name: str
    folder: Path
    record: RunRecord
    noise: NoiseFloor
    quantity: Quantity
    comparisons: tuple[Comparison, ...]
    disturbances: tuple[dict[str, Any], ...]
    warnings: tuple[ResultWarning, ...]


@dataclass(frozen=True)
class Source:
    """What a view is made from: all of it was read from the run folder. `certificates` are by case id."""

    plan: RunPlan
    record: RunRecord
    results: RoundResults
    noise: NoiseFloor
    certificates: dict[str, dict[str, Any]]
    decision: DecisionPlan
    quantity: Quantity

    def rank(self, cases: list[Case], source: str) -> Ranking:
        """Rank cases on one input by the quantity."""
        quantity = self.quantity
        values = self.results.values(cases, quantity, source)
        costs = {
            key: {number: quantity.cost(value) for number, value in rounds.items()} for key, rounds in values.items()
        }
        return decide(costs, self.decision)


def compare(source: Source, group: Group) -> Comparison:
    """Build one comparison."""
    inputs = _inputs(source, group)
    primary = "pipeline" if "pipeline" in inputs else "cached"
    # Cases that are not certified, or faster than possible, are shown, but they are in no ranking.
    able = [case for case in group.cases if certified(source, case)]
    rankings = {name: source.rank(able, name) for name in inputs}
    contenders = [_contender(source, group, variant, rankings) for variant in group.variants]
    order = {key: place for place, key in enumerate(rankings[primary].order)} if primary in rankings else {}
    contenders.sort(key=lambda c: (order.get(c.case.id, len(order)), _mean_ns(c, primary)))
    facts = {case.framework: source.plan.frameworks[case.framework] for case in group.cases}
    return Comparison(
        group=group.name, title=group.title, unit=group.unit, metric=group.metric, preset=group.summary,
        origin=source.record.inputs.get(group.name, {}).get("origin", ""), batch=group.cases[0].batch,
        parameters=group.parameters, training_flops=group.training_flops, primary=primary, quantity=source.quantity,
        contenders=tuple(contenders), rankings=rankings,
        sentences={name: ranking_sentence(ranking, group.titles, source.quantity.wording) for name, ranking in rankings.items()},
        skipped=tuple(each for each in source.plan.skipped if each.group == group.name),
        remarks=tuple((each.title, each.note) for each in facts.values() if each.note),
    )  # fmt: skip


def _mean_ns(contender: Contender, source: str) -> float:
    speed = contender.speeds.get(source)
    return speed.location.value_ns if speed else float("inf")


def certified(source: Source, case: Case) -> bool:
    """Return whether a case may be ranked: certified, and not above the machine's peak."""
    return bool(source.certificates.get(case.id, {}).get("passed")) and case.id not in source.record.above_peak


def _inputs(source: Source, group: Group) -> list[str]:
    finished = source.results.finished
    found = {
        block.input for case in group.cases for trial in finished.get(case.id, {}).values() for block in trial.blocks
    }
    return [name for name in ("pipeline", "cached") if name in found]


def _contender(source: Source, group: Group, variant: Variant, rankings: dict[str, Ranking]) -> Contender:
    case = variant.case
    trials = tuple(trial for _, trial in sorted(source.results.finished.get(case.id, {}).items()))
    failed = source.results.failed.get(case.id)
    first = trials[0] if trials else failed
    environment = source.record.environments.get(case.environment, {})
    evaluated = next((trial for trial in trials if trial.evaluation), None)
    speeds = {name: _speed(source, group, case, trials, name, ranking) for name, ranking in rankings.items()}
    return Contender(
        case=case, variant=variant.name, title=variant.title, settings=variant.settings, version=environment.get("version", ""),
        mode=case.settings.mode, speeds={name: speed for name, speed in speeds.items() if speed},
        first_step_ns=_median(t.phases_ns.get("first-step") for t in trials),
        to_first_step_ns=_median(t.first_step_since_spawn_ns for t in trials),
        phases_ns={name: _median(t.phases_ns.get(name) for t in trials) or 0.0 for name in ("import", "build", "first-step")},
        peak_resident_bytes=max((t.peak_resident_bytes or 0 for t in trials), default=0) or None,
        peak_device_bytes=max((t.peak_device_bytes or 0 for t in trials), default=0) or None,
        evaluation=evaluated.evaluation if evaluated else None,
        losses=_losses(evaluated or first), proof=_proof(source, case),
        applied=first.applied if first else {}, libraries=first.libraries if first else {}, trials=trials,
        failure=f"{failed.error[1]} ({failed.error[0]}; see {failed.folder / 'output.log'})" if failed and failed.error else "",
        above_peak=source.record.above_peak.get(case.id, ""),
    )  # fmt: skip


def _speed(
    source: Source, group: Group, case: Case, trials: tuple[Trial, ...], name: str, ranking: Ranking
) -> Speed | None:
    values = list(STEP_TIME.of_rounds({t.job.round: t for t in trials}, name).values())
    if not values:
        return None
    location = location_interval(values) or Location(values[0], 0.0, float("inf"), 1)
    steps = [t.steps_ns(name) for t in trials]
    longest = max(steps, key=len)
    peak, flops = peak_flops(source.record, case), group.training_flops * case.batch
    return Speed(
        median_ns=plain.median(summaries.summarise(s).median_ns for s in steps if len(s)), location=location,
        throughput=case.batch * 1e9 / location.value_ns, throughput_low=case.batch * 1e9 / location.high_ns,
        throughput_high=case.batch * 1e9 / location.low_ns if location.low_ns else float("inf"),
        ratio=_ratio(source, case, name, ranking), processes=len(values), counted_steps=sum(len(s) for s in steps),
        share_of_peak=flops / (location.value_ns / 1e9) / peak if peak else None,
        host_share=_median(t.host_share(name) for t in trials),
        label=series_label(longest) if len(longest) >= 20 else None,
    )  # fmt: skip


def _ratio(source: Source, case: Case, name: str, ranking: Ranking) -> Ratio | None:
    """Return the quantity's value over the best contender's; None for the best itself and where they share no round."""
    leader = ranking.leader
    if not leader or leader == case.id:
        return None
    verdict = ranking.between(case.id, leader)
    if verdict:
        return Ratio(verdict.ratio, verdict.low, verdict.high, verdict.rounds)
    values = source.results.values([case, source.plan.by_id[leader].case], source.quantity, name)
    if case.id not in values or leader not in values:
        return None
    return ratio_interval(values[case.id], values[leader])


def peak_flops(record: RunRecord, case: Case) -> float | None:
    """Return the measured matrix-product peak in FLOP/s for a case's precision; CPU only."""
    if case.settings.device != "cpu":
        return None
    values = [float(value) for value in record.peak.get(case.settings.precision, {}).values()]
    return max(values) * 1e9 if values else None


def _proof(source: Source, case: Case) -> Proof:
    found = source.certificates.get(case.id)
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
