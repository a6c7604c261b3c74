"""A run's record and trials -> what a page or a table shows: every number once, with its unit and its interval."""

from __future__ import annotations

import math
import statistics as plain
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from steelyard.errors import UserError
from steelyard.profiles import graphs, recorded
from steelyard.report.advice import advice, seconds_per_round
from steelyard.results import utilisation
from steelyard.results.quantities import LARGEST_BATCH, LATENCIES, PROCESS, STEP_TIME, in_task
from steelyard.results.trials import LATENCY
from steelyard.statistics import summaries
from steelyard.statistics.decision import decide
from steelyard.statistics.intervals import Location, Ratio, location_interval, ratio_interval
from steelyard.statistics.sentences import ranking_sentence
from steelyard.statistics.steadiness import SeriesLabel, series_label
from steelyard_worker.case import INFERENCE, TRAINING

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.profiles.graphs import Counted
    from steelyard.profiles.recorded import Explained
    from steelyard.report.published import Table
    from steelyard.report.warnings import ResultWarning
    from steelyard.results.quantities import Quantity
    from steelyard.results.record import FrameworkFacts, Group, Protocol, Reused, RunPlan, RunRecord, Skipped, Variant
    from steelyard.results.round_results import RoundResults
    from steelyard.results.searched import Searched
    from steelyard.results.trials import Evaluation, Trial
    from steelyard.statistics.decision import Ranking
    from steelyard_worker.case import Case

UNPROVED = {"passed": False, "sentence": "No certificate: this number is not proved to be the same computation."}


@dataclass(frozen=True)
class Speed:
    """One contender on one input. Times in nanoseconds per step; `throughput` in samples per second.

    `ratio`: time over the fastest contender's time; None for the fastest itself, and if another quantity is ranked.
    `flops`: of a step; `least_bytes`: what a step must move between memory and processor, `held_bytes`: the data that it uses, at
    least; 0 where they are not known. `busy_cores`: kept busy by the process; `gpu_share`: of the time in which a kernel ran.
    `joules`: energy per step, by meter. Means over processes.
    """

    median_ns: float
    location: Location
    throughput: float
    throughput_low: float
    throughput_high: float
    ratio: Ratio | None
    processes: int
    counted_steps: int
    share_of_peak: float | None
    share_of_bandwidth: float | None
    flops: int
    least_bytes: int
    held_bytes: int
    busy_cores: float | None
    share_of_cores: float | None
    gpu_share: float | None
    joules: dict[str, float]
    host_share: float | None
    label: SeriesLabel | None


@dataclass(frozen=True)
class Standing:
    """The ranked quantity of one contender on one input, in its unit: geometric mean over processes with its interval.

    `ratio`: the value over the best contender's value; None for the best itself and where they share no round.
    """

    value: float
    low: float
    high: float
    processes: int
    ratio: Ratio | None


@dataclass(frozen=True)
class Proof:
    """A certificate as the table shows it. `state`: certified, rejected, none.

    `on_purpose`: "another algorithm" or "wrong on purpose" where something else is computed on purpose; otherwise empty.
    """

    state: str
    sentence: str
    details: dict[str, Any]
    on_purpose: str = ""


@dataclass(frozen=True)
class Contender:
    """One case with everything that was measured of it.

    `variant` is its name in the group, `title` what tables show, `settings` its knobs that are not at their defaults.
    `standings` is by ranked input, `speeds` by measured input.
    `profile`: where the time of its step goes; None if that was not asked, or failed for the reason `not_profiled`. `profiles`:
    those of all profiled processes, by number.
    `graphs`: stages of the graph of its step, empty if they were not counted, or could not be for the reason `no_graph`.
    `latencies` are by quantity. `facts` are those of the framework. `above_peak` says why its speed is an error; empty
    where it is none.
    """

    case: Case
    facts: FrameworkFacts
    variant: str
    title: str
    settings: str
    version: str
    mode: str
    standings: dict[str, Standing]
    speeds: dict[str, Speed]
    first_step_ns: float | None
    to_first_step_ns: float | None
    phases_ns: dict[str, float]
    latencies: dict[str, Location]
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
    profile: Explained | None = None
    not_profiled: str = ""
    graphs: tuple[Counted, ...] = ()
    no_graph: str = ""
    profiles: dict[int, Explained] = field(default_factory=dict)

    @property
    def maintained(self) -> bool:
        """Whether its framework is maintained, and not retired."""
        return self.facts.maintained

    @property
    def trains_epochs(self) -> bool:
        """Whether its processes train whole epochs."""
        return any(trial.epochs for trial in self.trials)

    @property
    def steps_per_epoch(self) -> int:
        """The steps of an epoch; 0 where no whole epochs are trained."""
        return sum(block.steps for block in self.trials[0].epochs.get(1, ())) if self.trials else 0

    @property
    def name(self) -> str:
        """The title, with a mark if the framework is retired."""
        return self.title if self.maintained else f"{self.title} (retired)"

    @property
    def curve(self) -> str:
        """The title, with a mark if something else is computed on purpose."""
        return f"{self.title} ({self.proof.on_purpose})" if self.proof.on_purpose else self.title


@dataclass(frozen=True)
class Comparison:
    """One group: contenders best first on the primary input, with verdicts for each input.

    `task`: training or inference. `quantity` is what they are ranked by, in the task's words; one with a single value per process
    has PROCESS as its only input. `sentences` and `advice` are by input. `reused` says from which earlier run the rounds are,
    if they are. `thresholds` are of the main score of the test metric. `remarks` are (title, note) pairs: that a framework is
    retired, or what a row computes that is wrong on purpose. `apart`: why its contenders are compared with each other only;
    usually empty. `round_s`: seconds of a further round, None if unknown. `peak_flops` (FLOP/s) and `bandwidth` (bytes/s) are the
    measured limits of this machine, None where they are not known; `cache_bytes`: size of its last-level caches, 0 where it is
    not known.
    """

    group: str
    title: str
    task: str
    unit: str
    preset: str
    origin: str
    batch: int
    parameters: int
    primary: str
    quantity: Quantity
    contenders: tuple[Contender, ...]
    rankings: dict[str, Ranking]
    sentences: dict[str, str]
    advice: dict[str, str]
    skipped: tuple[Skipped, ...]
    reused: Reused | None
    remarks: tuple[tuple[str, str], ...]
    protocol: Protocol
    round_s: float | None
    thresholds: tuple[float, ...] = ()
    apart: str = ""
    peak_flops: float | None = None
    bandwidth: float | None = None
    cache_bytes: int = 0
    threads: int = 0


@dataclass(frozen=True)
class View:
    """Everything a report shows.

    `missing`: what is skipped of groups of which nothing could be measured. `published`: the entries of documents that the
    study is held against. `searched`: the settings that were tried before the rounds.
    """

    name: str
    folder: Path
    record: RunRecord
    quantity: Quantity
    comparisons: tuple[Comparison, ...]
    missing: tuple[Skipped, ...]
    disturbances: tuple[dict[str, Any], ...]
    warnings: tuple[ResultWarning, ...]
    published: tuple[Table, ...] = ()
    searched: Searched | None = None

    @property
    def task(self) -> str:
        """The task whose words describe the run as a whole: inference where all of it is."""
        return TRAINING if {each.task for each in self.comparisons} - {INFERENCE} else INFERENCE


@dataclass(frozen=True)
class Source:
    """What a view is made from: all of it was read from the run folder. `certificates` are by case id."""

    name: str
    plan: RunPlan
    record: RunRecord
    results: RoundResults
    certificates: dict[str, dict[str, Any]]
    quantity: Quantity
    disturbances: tuple[dict[str, Any], ...]
    folder: Path


def compare(source: Source, group: Group) -> Comparison:
    """Build one comparison."""
    task = group.cases[0].task
    if group.protocol.searches_batch and source.quantity is STEP_TIME:  # steps of different batches are not compared
        source = replace(source, quantity=LARGEST_BATCH)
    quantity = in_task(source.quantity, task)
    inputs = _inputs(source, group)
    ranked = [PROCESS] if inputs and source.quantity.per_process else inputs
    primary = ranked[0] if ranked else "cached"
    # Cases that are not certified, or faster than possible, are shown, but they are in no ranking.
    passed = {key for key, found in source.certificates.items() if found["passed"]} - source.record.above_peak.keys()
    able = [case for case in group.cases if case.id in passed]
    costs = {name: source.results.costs(able, source.quantity, name) for name in ranked}
    rankings = {name: decide(each, group.protocol.decision(source.plan.options.delta)) for name, each in costs.items()}
    contenders = [_contender(source, group, variant, inputs, rankings) for variant in group.variants]
    order = rankings[primary].order if primary in rankings else ()

    def place(contender: Contender) -> tuple[int, float]:
        key, mean = contender.case.id, contender.standings.get(primary)
        return order.index(key) if key in order else len(order), source.quantity.cost(mean.value) if mean else math.inf

    contenders.sort(key=place)
    facts = {case.framework: source.plan.frameworks[case.framework] for case in group.cases}
    titles = {contender.case.id: contender.title for contender in contenders}
    sentences = {name: ranking_sentence(each, titles, quantity.wording) for name, each in rankings.items()}
    round_s = seconds_per_round(source.disturbances, group.name)
    return Comparison(
        group=group.name, title=group.title, task=task, unit=group.unit, preset=group.summary,
        origin=data["origin"] if (data := source.record.inputs.get(group.name)) else "", batch=group.cases[0].batch,
        parameters=group.parameters, primary=primary, quantity=quantity, contenders=tuple(contenders),
        rankings=rankings, sentences=sentences,
        advice={name: _advice(source, group, titles, name == primary, each, round_s) for name, each in rankings.items()},
        skipped=tuple(each for each in source.plan.skipped if each.group == group.name),
        reused=source.record.reused.get(group.name),
        remarks=(
            *((("Compared with each other only", group.apart),) if group.apart else ()),
            *((each.title, each.note) for each in facts.values() if each.note),
            *((each.title, each.proof.sentence) for each in contenders if each.proof.on_purpose),
        ),
        protocol=group.protocol, round_s=round_s, thresholds=source.plan.thresholds, apart=group.apart,
        cache_bytes=source.record.last_cache_bytes, threads=source.record.threads_of(group.cases[0]),
        peak_flops=_peak_flops(source.record, group.cases[0]), bandwidth=_bandwidth(source.record, group.cases[0]),
    )  # fmt: skip


def _advice(
    source: Source, group: Group, titles: dict[str, str], is_primary: bool, ranking: Ranking, round_s: float | None
) -> str:
    extends = is_primary and source.quantity is STEP_TIME
    return advice(ranking, titles, group.protocol, source.name, round_s, extends)


def _inputs(source: Source, group: Group) -> list[str]:
    finished = source.results.finished
    trials = [trial for case in group.cases for trial in finished.get(case.id, {}).values()]
    found = {block.input for trial in trials for block in trial.blocks if block.phase != LATENCY}
    return [name for name in ("pipeline", "cached") if name in found]


def _contender(
    source: Source, group: Group, variant: Variant, inputs: list[str], rankings: dict[str, Ranking]
) -> Contender:
    case = variant.case
    trials = tuple(trial for _, trial in sorted(source.results.finished.get(case.id, {}).items()))
    failed = source.results.failed.get(case.id)
    first = trials[0] if trials else failed
    environment = source.record.environments.get(case.environment)
    profiles, not_profiled = _profiles(source, variant)
    counted, no_graph = _graphs(source, variant)
    evaluated = next((trial for trial in trials if trial.evaluation), None)
    standings = {
        name: found for name, each in rankings.items() if (found := _standing(source, case, trials, name, each))
    }
    ratios = {name: standing.ratio for name, standing in standings.items() if source.quantity is STEP_TIME}
    speeds = {name: speed for name in inputs if (speed := _speed(source, group, case, trials, name, ratios.get(name)))}
    return Contender(
        case=case, facts=source.plan.frameworks[case.framework], variant=variant.name, title=variant.title,
        settings=variant.settings,
        version=environment["version"] if environment else "", mode=case.settings.mode, standings=standings, speeds=speeds,
        first_step_ns=_median(t.phases_ns.get("first-step") for t in trials),
        to_first_step_ns=_median(t.first_step_since_spawn_ns for t in trials),
        phases_ns={name: _median(t.phases_ns.get(name) for t in trials) or 0.0 for name in ("import", "build", "first-step")},
        latencies={each.name: where for each in LATENCIES if (where := location_of(each, trials, PROCESS))},
        peak_resident_bytes=max((t.peak_resident_bytes or 0 for t in trials), default=0) or None,
        peak_device_bytes=max((t.peak_device_bytes or 0 for t in trials), default=0) or None,
        evaluation=evaluated.evaluation if evaluated else None,
        losses=_losses(evaluated or first), proof=_proof(source, case),
        applied=first.applied if first else {}, libraries=first.libraries if first else {}, trials=trials,
        failure=f"{failed.error[1]} ({failed.error[0]}; see {failed.folder / 'output.log'})" if failed and failed.error else "",
        above_peak=source.record.above_peak.get(case.id, ""),
        profile=next(iter(profiles.values()), None), not_profiled="" if profiles else not_profiled, profiles=profiles,
        graphs=counted, no_graph=no_graph,
    )  # fmt: skip


def _profiles(source: Source, variant: Variant) -> tuple[dict[int, Explained], str]:
    """Return a variant's profiles by number, and why one is missing; neither where none was taken."""
    found: dict[int, Explained] = {}
    reason = ""
    for number in range(1, max(1, source.plan.profiles) + 1):
        try:
            profile = recorded.read(source.folder, variant.file_name, number)
        except UserError as error:
            reason = reason or str(error)
        else:
            found |= {number: profile} if profile else {}
    return found, reason


def _graphs(source: Source, variant: Variant) -> tuple[tuple[Counted, ...], str]:
    """Return the stages of the graph of a variant's step, or why there are none; neither where they were not to be counted."""
    try:
        return graphs.read(source.folder, variant.file_name), ""
    except UserError as error:
        return (), str(error)


def _standing(source: Source, case: Case, trials: tuple[Trial, ...], name: str, ranking: Ranking) -> Standing | None:
    found = location_of(source.quantity, trials, name)
    if not found:
        return None
    return Standing(found.value_ns, found.low_ns, found.high_ns, found.processes, _ratio(source, case, name, ranking))


def location_of(quantity: Quantity, trials: tuple[Trial, ...], name: str) -> Location | None:
    """Return the mean over processes of a quantity, in its unit; None without any."""
    values = list(quantity.of_rounds({t.job.round: t for t in trials}, name).values())
    return (location_interval(values) or Location(values[0], 0.0, math.inf, 1)) if values else None


def _speed(
    source: Source, group: Group, case: Case, trials: tuple[Trial, ...], name: str, ratio: Ratio | None
) -> Speed | None:
    location = location_of(STEP_TIME, trials, name)
    if not location:
        return None
    steps = [t.steps_ns(name) for t in trials]
    # Where whole epochs count, the first step does, too; it has its own column, and it is no part of a steady series.
    longest = max((s[1:] if t.counts_first_step else s for s, t in zip(steps, trials, strict=True)), key=len)
    batches = {trial.batch for trial in trials}
    batch = batches.pop() if len(batches) == 1 else plain.geometric_mean(trial.batch for trial in trials)
    peak, flops = _peak_flops(source.record, case), group.known_step_flops(case) * batch / case.batch
    bandwidth, traffic = _bandwidth(source.record, case), group.known_traffic(case)
    least_bytes, threads = traffic.moved(round(batch)), source.record.threads_of(case)
    busy = _mean(utilisation.busy_cores(trial, name) for trial in trials)
    return Speed(
        median_ns=plain.median(summaries.summarise(s).median_ns for s in steps if len(s)), location=location,
        throughput=batch * 1e9 / location.value_ns, throughput_low=batch * 1e9 / location.high_ns,
        throughput_high=batch * 1e9 / location.low_ns if location.low_ns else math.inf,
        ratio=ratio, processes=location.processes, counted_steps=sum(len(s) for s in steps),
        share_of_peak=flops / (location.value_ns / 1e9) / peak if peak and flops else None,
        share_of_bandwidth=least_bytes / (location.value_ns / 1e9) / bandwidth if bandwidth and least_bytes else None,
        flops=round(flops), least_bytes=least_bytes, held_bytes=traffic.held(round(batch)),
        busy_cores=busy, share_of_cores=busy / threads if busy and threads else None,
        gpu_share=_mean(utilisation.gpu_share(trial, name) for trial in trials), joules=_joules(trials, name),
        host_share=_median(t.host_share(name) for t in trials),
        # Steps on batches of different shapes are no series.
        label=series_label(longest) if len(longest) >= 20 and not case.cuts_batches else None,
    )  # fmt: skip


def _ratio(source: Source, case: Case, name: str, ranking: Ranking) -> Ratio | None:
    """Return the quantity's value over the best contender's; None for the best itself and where they share no round."""
    leader = ranking.leader
    if not leader or leader == case.id:
        return None
    verdict = ranking.between(case.id, leader)
    if verdict:
        return source.quantity.ratio(verdict)
    values = source.results.values([case, source.plan.by_id[leader].case], source.quantity, name)
    if case.id not in values or leader not in values:
        return None
    return ratio_interval(values[case.id], values[leader])


def _peak_flops(record: RunRecord, case: Case) -> float | None:
    """Return the measured matrix-product peak in FLOP/s for a case's precision and threads; CPU only."""
    found = record.peak_gflops(case) if case.settings.device == "cpu" else None
    return found * 1e9 if found else None


def _bandwidth(record: RunRecord, case: Case) -> float | None:
    """Return the measured bandwidth of the memory in bytes/s with a case's threads; CPU only."""
    found = record.bandwidth_gbps(case) if case.settings.device == "cpu" else None
    return found * 1e9 if found else None


def _joules(trials: tuple[Trial, ...], name: str) -> dict[str, float]:
    """Return the energy per step by meter, the mean over processes."""
    found = [utilisation.joules_per_step(trial, name) for trial in trials]
    return {meter: plain.mean(each[meter] for each in found if meter in each) for meter in sorted(set().union(*found))}


def _proof(source: Source, case: Case) -> Proof:
    found = source.certificates.get(case.id, UNPROVED)
    if not found["passed"] and "key" not in found:  # nothing was judged: there was no reference, or it broke down
        return Proof("none", found["sentence"], {}, found.get("on_purpose", ""))
    return Proof("certified" if found["passed"] else "rejected", found["sentence"], found)


def _losses(trial: Trial | None) -> tuple[float, ...]:
    """Return the losses of the training steps in order: of the pipeline, or of the cached batch without one."""
    found = (trial.losses(source).tolist() for source in ("pipeline", "cached")) if trial else ()
    return next((tuple(losses) for losses in found if losses), ())


def _mean(values: Any) -> float | None:
    known = [float(value) for value in values if value is not None]
    return plain.mean(known) if known else None


def _median(values: Any) -> float | None:
    known = [float(value) for value in values if value is not None]
    return plain.median(known) if known else None
