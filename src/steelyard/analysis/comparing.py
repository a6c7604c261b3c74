"""Make the comparison of a group from its record and its trials."""

from __future__ import annotations

import math
import statistics as plain
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from steelyard.analysis import commands, port_runs, titles
from steelyard.analysis.advice import advice, round_times
from steelyard.analysis.commands import Further
from steelyard.analysis.model import Comparison, Contender, Proof, Source, Speed, Standing, location_of
from steelyard.results import end_check, ranks, utilisation
from steelyard.results.first_losses import not_compared
from steelyard.results.quantities import LARGEST_BATCH, LATENCIES, PROCESS, STEP_TIME, in_task
from steelyard.results.trials import LATENCY
from steelyard.statistics import summaries
from steelyard.statistics.decision import decide
from steelyard.statistics.intervals import Ratio, ratio_interval
from steelyard.statistics.sentences import ranking_sentence
from steelyard.statistics.steadiness import series_label
from steelyard_worker.case import INFERENCE

if TYPE_CHECKING:
    from steelyard.plan.run_plan import Group, Variant
    from steelyard.results.record import RunRecord
    from steelyard.results.trials import Trial
    from steelyard.statistics.decision import Ranking
    from steelyard_worker.case import Case

UNPROVED = {"passed": False, "sentence": "No certificate: this number is not proved to be the same computation."}


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
    rankings = {name: decide(each, source.plan.decision(group)) for name, each in costs.items()}
    contenders = [_contender(source, group, variant, inputs, rankings) for variant in group.variants]
    order = rankings[primary].order if primary in rankings else ()

    def place(contender: Contender) -> tuple[int, float]:
        key, mean = contender.case.id, contender.standings.get(primary)
        return order.index(key) if key in order else len(order), source.quantity.cost(mean.value) if mean else math.inf

    contenders.sort(key=place)
    facts = {case.framework: source.plan.frameworks[case.framework] for case in group.cases}
    names = {contender.case.id: contender.title_in_text for contender in contenders}
    sentences = {name: ranking_sentence(each, names, quantity.wording) for name, each in rankings.items()}
    further = _further(source, group)
    # Contenders with different numbers of cores do not share a limit of the machine.
    alike = len({source.record.threads_of(case) for case in group.cases}) == 1
    return Comparison(
        group=group.name,
        title=group.title,
        task=task,
        unit=group.unit,
        preset=group.summary,
        origin=_origin(source, group),
        batch=group.cases[0].batch,
        parameters=group.parameters or port_runs.parameters(group.cases, source.certificates),
        primary=primary,
        quantity=quantity,
        contenders=tuple(contenders),
        rankings=rankings,
        sentences=sentences,
        advice={name: _advice(source, group, names, name == primary, each, further) for name, each in rankings.items()},
        skipped=tuple(each for each in source.plan.skipped if each.group == group.name),
        reused=source.record.reused.get(group.name),
        remarks=(
            *((("Compared with each other only", group.apart),) if group.apart else ()),
            *((each.title, each.note) for each in facts.values() if each.note),
            *((each.title, each.proof.sentence) for each in contenders if each.proof.on_purpose),
        ),
        protocol=group.protocol,
        further=further,
        thresholds=group.thresholds or source.plan.thresholds,
        apart=group.apart,
        cache_bytes=source.record.last_cache_bytes,
        threads=source.record.threads_of(group.cases[0]),
        replaced=group.replaced,
        initial_weights=source.plan.initial_weights,
        price=source.price,
        peak_flops=_peak_flops(source.record, group.cases[0]) if alike else None,
        bandwidth=_bandwidth(source.record, group.cases[0]) if alike else None,
    )


def _origin(source: Source, group: Group) -> str:
    """Return where the data of a group is from, in words; empty if the record does not say."""
    data = source.record.inputs.get(group.name)
    return port_runs.ORIGIN if data and port_runs.is_one(group.cases) else data["origin"] if data else ""


def _advice(
    source: Source, group: Group, names: dict[str, str], is_primary: bool, ranking: Ranking, further: Further
) -> str:
    extends = is_primary and source.quantity is STEP_TIME
    return advice(ranking, names, group.protocol, further, extends)


def _further(source: Source, group: Group) -> Further:
    groups, delta = source.plan.groups, source.plan.options.delta
    spans = round_times(source.disturbances, (each.name for each in groups))
    # A new run measures all groups and contenders, like the first rounds.
    full_round_s = commands.full_round_s(
        spans, {each.name: each.protocol.decision(delta).least_rounds for each in groups}
    )
    resume, again = commands.resume(source.record, source.folder), commands.again(source.record, source.folder)
    return Further(resume, again, spans[group.name][-1] if spans[group.name] else None, full_round_s)


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
    beside = source.beside[case.id]
    evaluated = next((trial for trial in trials if trial.evaluation), None)
    standings = {
        name: found for name, each in rankings.items() if (found := _standing(source, case, trials, name, each))
    }
    ratios = {name: standing.ratio for name, standing in standings.items() if source.quantity is STEP_TIME}
    speeds = {name: speed for name in inputs if (speed := _speed(source, group, case, trials, name, ratios.get(name)))}
    return Contender(
        case=case,
        facts=source.plan.frameworks[case.framework],
        variant=variant.name,
        title=variant.title,
        title_parts=titles.parts(variant.title, source.plan.frameworks[case.framework].title, case),
        settings=titles.settings(variant.settings, case),
        version=environment["version"] if environment else "",
        mode=case.settings.mode,
        standings=standings,
        speeds=speeds,
        first_step_ns=_median(t.phases_ns.get("first-step") for t in trials),
        to_first_step_ns=_median(t.first_step_since_spawn_ns for t in trials),
        phases_ns={
            name: _median(t.phases_ns.get(name) for t in trials) or 0.0 for name in ("import", "build", "first-step")
        },
        latencies={each.name: where for each in LATENCIES if (where := location_of(each, trials, PROCESS))},
        peak_resident_bytes=max((ranks.resident_bytes(t) or 0 for t in trials), default=0) or None,
        peak_device_bytes=max((ranks.device_bytes(t) or 0 for t in trials), default=0) or None,
        evaluation=evaluated.evaluation if evaluated else None,
        losses=_losses(evaluated or first),
        proof=_proof(source, case, trials),
        applied=first.applied if first else {},
        libraries=first.libraries if first else {},
        trials=trials,
        failure=f"{failed.error[1]} ({failed.error[0]}; see {failed.folder / 'output.log'})"
        if failed and failed.error
        else "",
        above_peak=source.record.above_peak.get(case.id, ""),
        profile=next(iter(beside.profiles.values()), None),
        not_profiled=beside.not_profiled,
        profiles=beside.profiles,
        graphs=beside.graphs,
        no_graph=beside.no_graph,
        communication=beside.communication,
        no_communication=beside.no_communication,
    )


def _standing(source: Source, case: Case, trials: tuple[Trial, ...], name: str, ranking: Ranking) -> Standing | None:
    found = location_of(source.quantity, trials, name)
    if not found:
        return None
    return Standing(found.value_ns, found.low_ns, found.high_ns, found.processes, _ratio(source, case, name, ranking))


def _speed(
    source: Source, group: Group, case: Case, trials: tuple[Trial, ...], name: str, ratio: Ratio | None
) -> Speed | None:
    location = location_of(STEP_TIME, trials, name)
    if not location:
        return None
    steps = [t.steps_ns(name) for t in trials]
    # Whole epochs include the first step. It has a column of its own and is left out of the series of steady steps.
    longest = max((s[1:] if t.counts_first_step else s for s, t in zip(steps, trials, strict=True)), key=len)
    batches = {trial.batch for trial in trials}
    batch = batches.pop() if len(batches) == 1 else plain.geometric_mean(trial.batch for trial in trials)
    peak, flops = _peak_flops(source.record, case), group.known_step_flops(case) * batch / case.batch
    bandwidth, traffic = _bandwidth(source.record, case), group.known_traffic(case)
    least_bytes, threads = traffic.moved(round(batch)), source.record.threads_of(case)
    busy = _mean(utilisation.busy_cores(trial, name) for trial in trials)
    return Speed(
        median_ns=plain.median(summaries.summarise(s).median_ns for s in steps if len(s)),
        location=location,
        throughput=batch * 1e9 / location.value_ns,
        throughput_low=batch * 1e9 / location.high_ns,
        throughput_high=batch * 1e9 / location.low_ns if location.low_ns else math.inf,
        ratio=ratio,
        processes=location.processes,
        counted_steps=sum(len(s) for s in steps),
        share_of_peak=flops / (location.value_ns / 1e9) / peak if peak and flops else None,
        share_of_bandwidth=least_bytes / (location.value_ns / 1e9) / bandwidth if bandwidth and least_bytes else None,
        flops=round(flops),
        least_bytes=least_bytes,
        held_bytes=traffic.held(round(batch)),
        busy_cores=busy,
        share_of_cores=busy / threads if busy and threads else None,
        gpu_share=_mean(utilisation.gpu_share(trial, name) for trial in trials),
        joules=_joules(trials, name),
        host_share=_median(t.host_share(name) for t in trials),
        # Steps on batches of different shapes cannot be compared as a series.
        label=series_label(longest) if len(longest) >= 20 and not case.cuts_batches else None,
    )


def _ratio(source: Source, case: Case, name: str, ranking: Ranking) -> Ratio | None:
    """Return the ratio of the quantity to the best contender's; None for the best itself and if the two share no round."""
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
    """Return {meter: joules per step}, means over processes."""
    found = [utilisation.joules_per_step(trial, name) for trial in trials]
    return {meter: plain.mean(each[meter] for each in found if meter in each) for meter in sorted(set().union(*found))}


def _proof(source: Source, case: Case, trials: tuple[Trial, ...]) -> Proof:
    found = source.certificates.get(case.id, UNPROVED)
    if (
        not found["passed"] and "key" not in found
    ):  # there was no judgement, because there was no reference or it failed
        return Proof("none", found["sentence"], {}, found.get("on_purpose", ""))
    state = "certified" if found["passed"] else "rejected"
    return Proof(state, found["sentence"], found, processes=f"{_beginnings(trials, found)}{_ends(trials, found)}")


def _beginnings(trials: tuple[Trial, ...], certificate: dict[str, Any]) -> str:
    """Say whether the first losses of finished processes were compared. Processes that differ have failed and are not here."""
    if not trials:
        return ""
    infers = trials[0].job.case.task == INFERENCE
    what = "outputs" if infers else "losses"
    reasons = [not_compared(trial, certificate) for trial in trials]
    alike, count = reasons.count(""), len(trials)
    if alike == count:
        whose = "its process" if count == 1 else f"all {count} processes"
        return f"The first {what} of {whose} are the certified ones."
    others = "its processes" if not alike else f"{count - alike} of {count} processes"
    return f"The first {what} of {others} were not compared with the certified ones: {next(filter(None, reasons))}."


def _ends(trials: tuple[Trial, ...], certificate: dict[str, Any]) -> str:
    """Say whether the ends of finished processes were compared; empty if their first losses could not be compared either."""
    alike = [trial for trial in trials if not not_compared(trial, certificate)]
    if not alike:
        return ""
    what = "first outputs" if alike[0].job.case.task == INFERENCE else "first certified steps"
    count = len(alike)
    which = ("its process" if count == 1 else f"all {count} processes") if count == len(trials) else "these processes"
    checks = {
        f"the {what}, computed once more,": [end_check.not_checked(trial, certificate) for trial in alike],
        "the batches of the input pipeline": [end_check.batches_not_checked(trial) for trial in alike],
    }
    found = ""
    for subject, reasons in checks.items():
        if all(reasons):
            found += f" At the end of {which}, {subject} were not checked: {reasons[0]}."
        elif any(reasons):
            missing = f"{sum(map(bool, reasons))} of {count} processes"
            found += f" At the end of {missing}, {subject} were not checked: {next(filter(None, reasons))}."
    if not any(checks[f"the {what}, computed once more,"]):
        found = f" At the end of {which}, the {what}, computed once more, are the certified ones.{found}"
    return found


def _losses(trial: Trial | None) -> tuple[float, ...]:
    """Return the losses of the training steps in order, on the pipeline if it was measured, otherwise on the cached batch."""
    found = (trial.losses(source).tolist() for source in ("pipeline", "cached")) if trial else ()
    return next((tuple(losses) for losses in found if losses), ())


def _mean(values: Any) -> float | None:
    known = [float(value) for value in values if value is not None]
    return plain.mean(known) if known else None


def _median(values: Any) -> float | None:
    known = [float(value) for value in values if value is not None]
    return plain.median(known) if known else None
