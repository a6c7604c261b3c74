"""One attempt at a round on this machine: a new process of every variant, in random order, and what disturbed them."""

from dataclasses import dataclass, field, replace
from typing import Any

from steelyard.host.noise import Disturbance, judge, unequal_frequencies
from steelyard.host.sampler import Sampler
from steelyard.measure import jobs, largest_batch
from steelyard.measure.session import Session
from steelyard.results.standstill import standstill
from steelyard.results.trials import Trial
from steelyard.statistics.effort import FIRST_RATIO
from steelyard.statistics.orders import round_order


@dataclass(frozen=True)
class Attempt:
    """What is run: the cases of a group, by their ids, in one round. A disturbed round is repeated under the next number.

    `ratios`: case id -> s_step / s_process, where it is known; it decides how many steps the process counts.
    `nodes`: of a cluster that it needs at the same time, because a strategy is spread over them.
    """

    group: str
    round: int
    attempt: int
    cases: tuple[str, ...]
    ratios: dict[str, float] = field(default_factory=dict)
    nodes: int = 1


@dataclass(frozen=True)
class Outcome:
    """What became of an attempt. `node`: where it ran; empty: on the machine of the run, without a cluster.

    `reasons`, `severity` and `host_noise`: what disturbed the machine, as in rounds.jsonl. `lost`: why the attempt did not come
    to its end, such as a node that left; its trials do not count then. `beside`: the other nodes that had ranks of its
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
    """Run every process of the attempt, one after the other."""
    with Sampler() as sampler:
        trials = _processes(session, attempt)
    found = _disturbances(sampler, trials)
    return Outcome(
        attempt, tuple(trials), tuple(dict.fromkeys(each.reason for each in found)),
        max((each.severity for each in found), default=0.0), sampler.summary().to_dict(), session.node,
    )  # fmt: skip


def _processes(session: Session, attempt: Attempt) -> list[Trial]:
    by_key = {session.plan.by_id[case_id].key: session.plan.by_id[case_id] for case_id in attempt.cases}
    number, trials = attempt.round, []
    for key in round_order(by_key, number, session.plan.seed):
        variant = by_key[key]
        session.screen.trial(number, variant)
        folder = jobs.trial_folder(session.folder, number, attempt.attempt, variant)
        ratio = attempt.ratios.get(variant.case.id, FIRST_RATIO)
        inputs = session.inputs_of(variant.case)
        job = jobs.measuring(session.plan, variant, inputs, number, attempt.attempt, folder, ratio)
        job = replace(job, node=session.node)
        searches = session.plan.group(variant.group).protocol.searches_batch
        trials.append(largest_batch.find(session, job) if searches else session.run_trial(job))
    return trials


def _disturbances(sampler: Sampler, trials: list[Trial]) -> list[Disturbance]:
    """Return what disturbed the round: the machine as a whole, unequal processor frequencies, workers that stood still."""
    finished = [trial for trial in trials if trial.done]
    during = [sampler.summary(*trial.counted_span_ns) for trial in finished]
    still = [disturbance for trial in finished if (disturbance := standstill(trial))]
    return [*judge(sampler.summary()), *unequal_frequencies(during), *still]
