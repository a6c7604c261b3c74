"""Rounds that were repeated only because workers stood still, with the contenders whose workers did."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from steelyard.host.noise import HostNoise, is_unusual, judge
from steelyard.results.facts import RoundNote
from steelyard.results.round_results import RoundResults
from steelyard.results.standstill import SAID, is_standstill, stood_still
from steelyard.results.trials import Trial
from steelyard_worker import job_kinds


@dataclass(frozen=True)
class Repeated:
    """An attempt at a round that does not count, only because workers stood still.

    `trials`: of the attempt, as far as their folders are there; `still`: the case ids of those that stood still. `kept_from`:
    whether it was checked who had the processors meanwhile; methods before 16 did not check.
    """

    group: str
    round: int
    attempt: int
    trials: tuple[Trial, ...]
    still: tuple[str, ...]
    kept_from: bool


def only_for_standstill(
    notes: Sequence[RoundNote], trials: Iterable[Trial], groups: Mapping[str, Collection[str]]
) -> tuple[Repeated, ...]:
    """Return the attempts that were repeated only because workers stood still. `groups`: name -> case ids."""
    measured = [trial for trial in trials if job_kinds.of(trial.job.kind).in_rounds and trial.done]
    found = []
    for place, note in enumerate(notes):
        if _only(note, notes[:place]):
            of_attempt = tuple(trial for trial in measured if _is_of(trial, note, groups.get(note["group"], ())))
            still = tuple(trial.job.case.id for trial in of_attempt if stood_still(trial))
            kept_from = all(SAID in reason for reason in note["reasons"] if is_standstill(reason))
            found.append(Repeated(note["group"], note["round"], note["attempt"], of_attempt, still, kept_from))
    return tuple(found)


def as_if_not_repeated(results: RoundResults, repeated: Iterable[Repeated]) -> RoundResults:
    """Return results in which these attempts count, and not those that came after them; the given ones stay as they are."""
    other = RoundResults(results.certificates, partings=results.partings)
    for key, rounds in results.latest.items():
        other.latest[key] |= rounds
    for each in sorted(repeated, key=lambda each: each.attempt, reverse=True):
        for trial in each.trials:
            other.latest[trial.job.case.id].pop(trial.job.round, None)
            other.add(trial)
    return other


def _only(note: RoundNote, earlier: Sequence[RoundNote]) -> bool:
    """Return whether a round was repeated, and would not have been if no worker had stood still."""
    others = [reason for reason in note["reasons"] if not is_standstill(reason)]
    if note["kept"] or len(others) == len(note["reasons"]):
        return False
    facts = note["host_noise"]
    noise = HostNoise(facts.get("seconds", 0.0), 0, facts.get("steal_share", 0.0), facts.get("foreign_cores", 0.0))
    rest = judge(noise)
    if {each.reason for each in rest} != set(others):  # the record has no figure for other disturbances
        return False
    before = [each["severity"] for each in earlier if each.get("node", "") == note.get("node", "")]
    return not is_unusual(max((each.severity for each in rest), default=0.0), before)


def _is_of(trial: Trial, note: RoundNote, cases: Collection[str]) -> bool:
    job = trial.job
    return job.case.id in cases and (job.round, job.attempt) == (note["round"], note["attempt"])
