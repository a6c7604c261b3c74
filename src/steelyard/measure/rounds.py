"""Interleaved rounds of new processes in random order, evaluated after each round until every pair is decided."""

import math
import time
from pathlib import Path

from steelyard.host.noise import Disturbance, is_unusual, judge, unequal_frequencies
from steelyard.host.sampler import Sampler
from steelyard.measure import jobs, largest_batch
from steelyard.measure.session import Session
from steelyard.plan.run_plan import Group, Variant
from steelyard.results.quantities import STEP_TIME, Quantity
from steelyard.results.round_results import RoundResults
from steelyard.results.standstill import standstill
from steelyard.results.trials import Trial
from steelyard.statistics.decision import Ranking, decide, rounds_wanted
from steelyard.statistics.effort import FIRST_RATIO, Process, noise_ratios
from steelyard.statistics.orders import round_order

MOST_ATTEMPTS = 3


def primary_input(session: Session, group: Group) -> str:
    """Return the input that verdicts are based on: the framework's own pipeline if there is data, as in real training."""
    prepared = session.inputs_of(group.cases[0]).data.prepared
    return "pipeline" if prepared and "pipeline" in group.protocol.schedule.inputs else "cached"


def measure(session: Session, results: RoundResults) -> dict[str, Ranking]:
    """Run rounds until no case needs another one; returns {group: ranking}.

    A resumed run repeats failed processes, and disturbed rounds that were not repeated yet. The time limit of the study
    can end the rounds early, independently of their results.
    """
    deadline_s = time.monotonic() + 60 * minutes_of(session)
    _discard_incomplete(session, results)
    rankings = {group.name: rank(session, group, results) for group in session.plan.groups}
    for number in range(1, session.plan.rounds_max + 1):
        for group in session.plan.groups:
            if number > group.protocol.rounds_max:
                continue
            variants = _variants_to_run(rankings[group.name], group, number, results)
            missing = [variant for variant in variants if not results.has(variant.case.id, number)]
            if missing and number > group.protocol.rounds_min and time.monotonic() > deadline_s:
                session.screen.say(
                    f"The time limit of {minutes_of(session):g} minutes is reached. For more rounds, use "
                    f"steelyard run --resume {session.folder.name}; --minutes 0 removes the limit."
                )
                return rankings
            if missing:
                _run_round(session, number, group, missing, results)
                rankings[group.name] = rank(session, group, results)
                session.screen.ranking(group.name, rankings[group.name], group.titles)
    return rankings


def minutes_of(session: Session) -> float:
    """Return the minutes after which no further round starts; infinite without a limit."""
    return session.plan.minutes or math.inf


def rank(session: Session, group: Group, results: RoundResults, quantity: Quantity = STEP_TIME) -> Ranking:
    """Rank a group by a quantity on its primary input."""
    costs = results.costs(group.cases, quantity, primary_input(session, group))
    return decide(costs, group.protocol.decision(session.plan.options.delta))


def _discard_incomplete(session: Session, results: RoundResults) -> None:
    repeated = {(note["group"], note["round"], note["attempt"]) for note in session.noted_rounds() if not note["kept"]}
    group_of = {case_id: variant.group for case_id, variant in session.plan.by_id.items()}

    def is_incomplete(trial: Trial) -> bool:
        job = trial.job
        return not trial.done or (group_of.get(job.case.id, ""), job.round, job.attempt) in repeated

    results.discard(is_incomplete)


def _variants_to_run(ranking: Ranking, group: Group, number: int, results: RoundResults) -> list[Variant]:
    """Return the variants of a round: all of them in the first rounds, later those that are not decided yet."""
    failed = results.failed
    able = [variant for variant in group.variants if variant.case.id not in failed]
    protocol = group.protocol
    alone = len(able) == 1
    if not protocol.sequential or number < protocol.drops_from or (alone and number <= protocol.rounds_min):
        return able
    ids = frozenset() if alone else rounds_wanted(ranking)
    return [variant for variant in able if variant.case.id in ids]


def _run_round(session: Session, number: int, group: Group, variants: list[Variant], results: RoundResults) -> None:
    """Run one round; if it was unusually disturbed, repeat all of it: never a single variant, and never because of times."""
    first = _next_attempt(session.folder, number, variants)
    ratios = _noise_ratios(session, group, results)
    for attempt in range(first, first + MOST_ATTEMPTS):
        with Sampler() as sampler:
            trials = _run_once(session, number, attempt, variants, ratios)
        found = _disturbances(sampler, trials)
        reasons = list(dict.fromkeys(each.reason for each in found))
        severity = max((each.severity for each in found), default=0.0)
        earlier = [note["severity"] for note in session.noted_rounds()]
        more = (
            session.plan.options.guard
            and attempt + 1 < first + MOST_ATTEMPTS
            and all(trial.done for trial in trials)
            and not group.protocol.searches_batch  # a disturbance changes no memory, and a search has many processes
        )
        again = more and is_unusual(severity, earlier)
        session.note_round(
            group=group.name, round=number, attempt=attempt, kept=not again, reasons=reasons,
            severity=severity, host_noise=sampler.summary().to_dict(),
        )  # fmt: skip
        if not again:
            break
        session.screen.say(
            f"Round {number} of {group.name} is repeated because the machine was disturbed: {'; '.join(reasons)}."
        )
    for trial in trials:
        counted = results.add(trial)
        if trial.done and counted.error:
            session.screen.say(f"{session.plan.by_id[trial.job.case.id].key} is left out: {counted.error[1]}")


def _disturbances(sampler: Sampler, trials: list[Trial]) -> list[Disturbance]:
    """Return what disturbed the round: the machine as a whole, unequal processor frequencies, workers that stood still."""
    finished = [trial for trial in trials if trial.done]
    during = [sampler.summary(*trial.counted_span_ns) for trial in finished]
    still = [disturbance for trial in finished if (disturbance := standstill(trial))]
    return [*judge(sampler.summary()), *unequal_frequencies(during), *still]


def _next_attempt(run: Path, number: int, variants: list[Variant]) -> int:
    """Return the first attempt at a round that has no folder yet, so that no earlier record is overwritten."""
    attempt = 0
    while any(jobs.trial_folder(run, number, attempt, variant).exists() for variant in variants):
        attempt += 1
    return attempt


def _noise_ratios(session: Session, group: Group, results: RoundResults) -> dict[str, float]:
    """Return s_step / s_process of each case as the rounds so far show it; they decide how many steps its next process counts."""
    source, finished = primary_input(session, group), results.finished
    processes = {
        case.id: {
            number: Process([(block.steps, block.elapsed_ns / block.steps) for block in trial.counted(source)])
            for number, trial in finished.get(case.id, {}).items()
        }
        for case in group.cases
    }
    return noise_ratios({key: rounds for key, rounds in processes.items() if rounds})


def _run_once(
    session: Session, number: int, attempt: int, variants: list[Variant], ratios: dict[str, float]
) -> list[Trial]:
    by_key = {variant.key: variant for variant in variants}
    trials = []
    for key in round_order(by_key, number, session.plan.seed):
        variant = by_key[key]
        session.screen.trial(number, variant)
        folder = jobs.trial_folder(session.folder, number, attempt, variant)
        ratio = ratios.get(variant.case.id, FIRST_RATIO)
        job = jobs.measuring(session.plan, variant, session.inputs_of(variant.case), number, attempt, folder, ratio)
        searches = session.plan.group(variant.group).protocol.searches_batch
        trials.append(largest_batch.find(session, job) if searches else session.run_trial(job))
    return trials
