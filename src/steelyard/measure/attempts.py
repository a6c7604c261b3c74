"""One attempt at a round on this machine: a new process of every variant, in random order, and what disturbed them."""

from dataclasses import dataclass, field, replace
from typing import Any

from steelyard.host import available_memory_bytes
from steelyard.host.noise import Disturbance, judge, unequal_frequencies
from steelyard.host.sampler import Sampler
from steelyard.measure import jobs, largest_batch
from steelyard.measure.launch import Watch
from steelyard.measure.session import Session
from steelyard.measure.turns import Turns
from steelyard.measure.watching import with_withheld
from steelyard.plan import memory
from steelyard.plan.run_plan import Variant
from steelyard.results.durations import PROCESSES
from steelyard.results.standstill import standstill
from steelyard.results.trials import Trial
from steelyard.statistics.effort import FIRST_RATIO
from steelyard.statistics.orders import round_order
from steelyard_worker.protocol import Job

# A process may need more memory than its estimate, and a machine without free memory slows all processes down.
SPARE_MEMORY = 2


@dataclass(frozen=True)
class Attempt:
    """The work of one attempt: the cases of a group, by their ids, in one round. A disturbed round is repeated under the next
    number.

    `ratios`: case id -> s_step / s_process, where it is known; it decides how many steps the process counts.
    `nodes`: how many nodes of a cluster it needs at the same time, because a strategy is spread over them.
    """

    group: str
    round: int
    attempt: int
    cases: tuple[str, ...]
    ratios: dict[str, float] = field(default_factory=dict)
    nodes: int = 1


@dataclass(frozen=True)
class Outcome:
    """The outcome of an attempt. `node`: where it ran; empty: on the machine of the run, without a cluster.

    `reasons`, `severity` and `host_noise`: what disturbed the machine, as in rounds.jsonl. `lost`: why the attempt did not
    finish, such as a node that left the cluster; its trials then do not count. `beside`: the other nodes that had ranks of its
    strategies.
    """

    attempt: Attempt
    trials: tuple[Trial, ...] = ()
    reasons: tuple[str, ...] = ()
    severity: float = 0.0
    host_noise: dict[str, Any] = field(default_factory=dict)
    node: str = ""
    lost: str = ""
    beside: tuple[str, ...] = ()


def run(session: Session, attempt: Attempt) -> Outcome:
    """Run every process of the attempt: in turns, or one after the other."""
    with Sampler() as sampler:
        trials = _processes(session, attempt)
    trials = [with_withheld(trial, sampler.samples) if trial.done else trial for trial in trials]
    found = _disturbances(sampler, trials)
    return Outcome(
        attempt,
        tuple(trials),
        tuple(dict.fromkeys(each.reason for each in found)),
        max((each.severity for each in found), default=0.0),
        sampler.summary().to_dict(),
        session.node,
    )


def _processes(session: Session, attempt: Attempt) -> list[Trial]:
    by_key = {session.plan.by_id[case_id].key: session.plan.by_id[case_id] for case_id in attempt.cases}
    order = round_order(by_key, attempt.round, session.plan.seed)
    if len(order) > 1 and session.plan.group(attempt.group).takes_turns:
        return _in_turns(session, attempt, by_key, order)
    trials = []
    for key in order:
        variant = by_key[key]
        session.screen.trial(attempt.round, variant)
        job = _job(session, attempt, variant, turns=False)
        searches = session.plan.group(variant.group).protocol.searches_batch
        trials.append(largest_batch.find(session, job) if searches else session.run(job))
    return trials


def _in_turns(session: Session, attempt: Attempt, by_key: dict[str, Variant], order: tuple[str, ...]) -> list[Trial]:
    def start(key: str, turn: Watch) -> Trial:
        return session.run(_job(session, attempt, by_key[key], turns=True), turn)

    def has_room(key: str) -> bool:
        return available_memory_bytes() > SPARE_MEMORY * memory.of_variant(session.plan, by_key[key])

    def show(key: str, goes_on: bool) -> None:
        session.screen.turn(by_key[key]) if goes_on else session.screen.trial(attempt.round, by_key[key])

    turns = Turns(session.stop, f"{session.plan.seed}|{attempt.group}|{attempt.round}")
    with session.durations.of(PROCESSES):
        trials = turns.run(order, start, has_room, show)
    for trial in trials:
        session.keep(trial)
    return trials


def _job(session: Session, attempt: Attempt, variant: Variant, turns: bool) -> Job:
    folder = jobs.trial_folder(session.folder, attempt.round, attempt.attempt, variant)
    ratio = attempt.ratios.get(variant.case.id, FIRST_RATIO)
    inputs = session.inputs_of(variant.case)
    job = jobs.measuring(session.plan, variant, inputs, attempt.round, attempt.attempt, folder, ratio, turns)
    return replace(job, node=session.node)


def _disturbances(sampler: Sampler, trials: list[Trial]) -> list[Disturbance]:
    """Return what disturbed the round: the machine as a whole, unequal processor frequencies, workers that stood still."""
    finished = [trial for trial in trials if trial.done]
    during = [sampler.summary(*trial.counted_span_ns) for trial in finished]
    still = [disturbance for trial in finished if (disturbance := standstill(trial))]
    return [*judge(sampler.summary()), *unequal_frequencies(during), *still]
