"""The measuring trials of a run by case and round. If a round was attempted several times, the last attempt counts."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from steelyard.results import end_check, first_losses, imported, loss_courses
from steelyard.results.contradictions import contradiction
from steelyard.results.loss_courses import Parting
from steelyard.results.quantities import Quantity
from steelyard.results.trials import Trial
from steelyard_worker import job_kinds
from steelyard_worker.case import Case

# Kind of the error of a trial that did not compute what was certified.
DEVIATES = "deviation"
# Kind of the error of a trial whose record contradicts itself.
CONTRADICTS = "contradiction"


@dataclass
class RoundResults:
    """Trials by case id and round. A later attempt at a round replaces an earlier one, regardless of the order of adding.

    `certificates`: by case id. A trial counts as failed if its first losses or imported files are not the certified ones, if it
    differed from it at its end, or if its record contradicts itself. `partings`: contenders whose losses diverge,
    as `compare_courses` found them.
    """

    certificates: dict[str, dict[str, Any]] = field(default_factory=dict)
    latest: dict[str, dict[int, Trial]] = field(default_factory=lambda: defaultdict(dict))
    partings: tuple[Parting, ...] = ()

    def add(self, trial: Trial) -> Trial:
        """Add an ended trial. Return it with its failure, if it counts as failed."""
        rounds, job = self.latest[trial.job.case.id], trial.job
        certificate = self.certificates.get(job.case.id, {})
        if trial.done and (sentence := _deviation(trial, certificate)):
            trial = replace(trial, done=False, error=(DEVIATES, sentence))
        if trial.done and (sentence := contradiction(trial)):
            trial = replace(trial, done=False, error=(CONTRADICTS, sentence))
        if job.round not in rounds or rounds[job.round].job.attempt <= job.attempt:
            rounds[job.round] = trial
        return trial

    def compare_courses(self) -> list[Trial]:
        """Compare the losses of all finished trials. Return the trials that diverge, which now count as failed."""
        found = loss_courses.compare(self.finished, self.certificates)
        self.partings = found.partings
        odd = [replace(trial, done=False, error=(DEVIATES, sentence)) for trial, sentence in found.odd]
        for trial in odd:
            self.latest[trial.job.case.id][trial.job.round] = trial
        return odd

    @property
    def finished(self) -> dict[str, dict[int, Trial]]:
        """Finished trials: case id -> {round: trial}."""
        return {key: {n: trial for n, trial in rounds.items() if trial.done} for key, rounds in self.latest.items()}

    @property
    def failed(self) -> dict[str, Trial]:
        """The latest failure of each case that failed; such a case is not run again."""
        failed = {key: [n for n, trial in rounds.items() if not trial.done] for key, rounds in self.latest.items()}
        return {key: self.latest[key][max(failures)] for key, failures in failed.items() if failures}

    def has(self, case_id: str, number: int) -> bool:
        """Return whether a case has finished a round."""
        return number in self.latest[case_id] and self.latest[case_id][number].done

    def discard(self, rejected: Callable[[Trial], bool]) -> None:
        """Remove trials, so that their rounds are run again."""
        for rounds in self.latest.values():
            for number in [number for number, trial in rounds.items() if rejected(trial)]:
                del rounds[number]

    def values(self, cases: Iterable[Case], quantity: Quantity, source: str) -> dict[str, dict[int, float]]:
        """Return case id -> {round: value} of one quantity on one input.

        Cases that failed, and cases whose finished rounds lack the quantity, are left out. A case without a finished
        round has an empty entry.
        """
        finished, failed = self.finished, self.failed
        ids = [case.id for case in cases if case.id not in failed]
        found = {key: quantity.of_rounds(finished.get(key, {}), source) for key in ids}
        return {key: rounds for key, rounds in found.items() if rounds or not finished.get(key)}

    def costs(self, cases: Iterable[Case], quantity: Quantity, source: str) -> dict[str, dict[int, float]]:
        """Return `values` as numbers that are better when smaller, as the decision rule needs them."""
        found = self.values(cases, quantity, source).items()
        return {key: {number: quantity.cost(value) for number, value in rounds.items()} for key, rounds in found}


def _deviation(trial: Trial, certificate: dict[str, Any]) -> str:
    """Return a sentence about a difference between a trial and its certificate; empty if there is none."""
    checks = imported.deviation, first_losses.deviation, end_check.deviation
    return next(filter(None, (check(trial, certificate) for check in checks)), "")


def collect(trials: Iterable[Trial], certificates: dict[str, dict[str, Any]]) -> RoundResults:
    """Return the results of all measuring trials that have ended; `certificates` are by case id."""
    results = RoundResults(certificates)
    for trial in trials:
        if job_kinds.of(trial.job.kind).in_rounds and (trial.done or trial.error):
            results.add(trial)
    results.compare_courses()
    return results
