"""Search for the fastest settings of one framework by successive halving, before the rounds that measure what was chosen.

The times of a search are in no verdict, because the best of many is partly luck. What it chose is measured anew.
"""

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from steelyard.environments import Failure
from steelyard.errors import UserError
from steelyard.files import within
from steelyard.host.noise import judge
from steelyard.host.sampler import Sampler
from steelyard.measure import jobs
from steelyard.measure.session import Session
from steelyard.measure.watching import with_withheld
from steelyard.plan import tuning
from steelyard.plan.run_plan import Search, Variant
from steelyard.results import record, searched, trials
from steelyard.results.searched import CHOSEN, FAILED, LEFT, REJECTED, USUAL, Searched, Tried
from steelyard.results.standstill import standstill
from steelyard.results.trials import Trial
from steelyard.statistics.halving import better_half, measurements, ordered
from steelyard.statistics.orders import round_order
from steelyard_worker.case import Case
from steelyard_worker.job_kinds import SEARCH

ATTEMPTS = 2
"""The most processes for one measurement: after one that the machine disturbed, another is started at once."""
FIRST_SHARE = 0.4
"""The share of the time limit for the first processes of all candidates."""
Certify = Callable[[Session], dict[str, dict[str, Any]]]
"""Certify the cases of a session; returns the certificates by case id."""
LEAST = 3
"""At least so many candidates are tried, even beyond the time limit: the usual settings and two others."""


@dataclass
class _Tries:
    """A search in progress: candidates by case id, their times per step so far, and why some failed."""

    session: Session
    search: Search
    base: Case
    others: Sequence[Case]
    cases: dict[str, Case] = field(default_factory=dict)
    times_ns: dict[str, list[float]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    rejected: dict[str, str] = field(default_factory=dict)
    began_s: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """Seconds since the search began."""
        return time.monotonic() - self.began_s

    def has_time(self, share: float = 1.0) -> bool:
        """Return whether less than this share of the time limit has passed."""
        return self.seconds < share * 60 * self.search.minutes

    def alive(self) -> dict[str, list[float]]:
        """Return the times of the candidates that can be chosen: all but the usual settings and those that failed."""
        return {key: found for key, found in self.times_ns.items() if key != self.base.id and key not in self.reasons}


def run(session: Session, certify: Certify) -> Session:
    """Search, and return the session with the plan that measures what was chosen; the plan is written into run.json.

    UserError: the framework's environment could not be made, or the usual settings cannot be measured.
    """
    search = session.plan.search
    assert search
    session.screen.stage("Search")
    made = session.environments.results()[search.environment]
    if isinstance(made, Failure):
        raise UserError(made.sentence)
    base, *others = session.plan.groups[0].cases
    tries = _Tries(session, search, base, others)
    left_out = _first_processes(tries)
    _halve(tries)
    chosen = _certified(tries, certify)
    found = [base, *([chosen] if chosen else []), *others]
    plan = tuning.ended(tuning.with_cases(session.plan, found))
    searched.write(session.folder, Searched(tuple(_tried(tries, chosen)), left_out, tries.seconds))
    record.update(session.folder, plan=plan)
    session.screen.planned(plan)
    _say(tries, chosen)
    return replace(session, plan=plan)


def _first_processes(tries: _Tries) -> int:
    """Run one process of as many candidates as there is time for; returns how many there was no time for."""
    waiting = tuning.candidates(tries.search, tries.base, tries.session.plan)
    tried = itertools.takewhile(lambda _: len(tries.cases) < LEAST or tries.has_time(FIRST_SHARE), waiting)
    for case in tried:
        _measure(tries, case, 1)
    if tries.base.id in tries.reasons:
        raise UserError(f"The usual settings cannot be measured: {tries.reasons[tries.base.id]}")
    costs = {key: found[0] for key, found in tries.times_ns.items() if found and key not in tries.reasons}
    together = tuning.joined(tries.search, tries.base, costs, tries.session.plan)
    if together and together.id not in tries.cases:
        _measure(tries, together, 1)
    return sum(case.id not in tries.cases for case in tuning.candidates(tries.search, tries.base, tries.session.plan))


def _halve(tries: _Tries) -> None:
    """Measure the faster half of the candidates again, and again half of these, until one is left or the time is over."""
    stage, left = 1, list(tries.alive())
    while len(left) > 1 and tries.has_time():
        stage += 1
        left = better_half({key: tries.times_ns[key] for key in left})
        for number in range(measurements(stage - 1) + 1, measurements(stage) + 1):
            for key in round_order(left, number, tries.base.seed) if len(left) > 1 else ():
                if tries.has_time():
                    _measure(tries, tries.cases[key], number)
        left = [key for key in left if key not in tries.reasons]


def _measure(tries: _Tries, case: Case, number: int) -> None:
    """Run a process of a candidate, unless an interrupted part of this run has finished it."""
    tries.cases[case.id] = case
    variant, times = _variant(tries, case), tries.times_ns.setdefault(case.id, [])
    label = f"process {number} of each" if number > 1 else "settings tried once"
    for attempt in range(ATTEMPTS):
        trial, disturbed = _process(tries.session, variant, number, attempt, label)
        location = trial.location_ns(trial.job.schedule.inputs[0]) if trial.done else None
        if not location:
            tries.reasons[case.id] = trial.error[1] if trial.error else "It counted no step."
            return
        times.append(location)
        # An interrupted part of this run may have found that it was.
        repeated = disturbed or _folder(tries.session, variant, number, attempt + 1).exists()
        if not repeated or not tries.session.plan.options.guard:
            return


def _variant(tries: _Tries, case: Case) -> Variant:
    """Return the candidate as a variant, named beside the usual settings."""
    plan = tuning.with_cases(tries.session.plan, [case])
    return plan.groups[0].variants[0]


def _process(session: Session, variant: Variant, number: int, attempt: int, label: str) -> tuple[Trial, bool]:
    """Run a process, unless it has been run; returns its trial, and whether the machine disturbed it."""
    folder = _folder(session, variant, number, attempt)
    if earlier := _finished(folder):
        return earlier, bool(standstill(earlier))
    within.remove(session.folder, folder)
    session.screen.progress(label, 0, 0, variant.name)
    plan = replace(session.plan, groups=(replace(session.plan.groups[0], variants=(variant,)),))
    inputs = session.inputs_of(variant.case)
    job = jobs.measuring(plan, variant, inputs, number, attempt, folder, inputs=jobs.FIRST)
    with Sampler() as sampler:
        trial = session.run(replace(job, kind=SEARCH))
    trial = with_withheld(trial, sampler.samples) if trial.done else trial
    return trial, bool(judge(sampler.summary()) or standstill(trial))


def _folder(session: Session, variant: Variant, number: int, attempt: int) -> Path:
    return session.folder / searched.FOLDER / f"{number}.{attempt}-{variant.file_name}"


def _finished(folder: Path) -> Trial | None:
    if not (folder / trials.JOB).exists():
        return None
    try:
        found = trials.read(folder)
    except UserError:
        return None
    return found if found.done else None


def _certified(tries: _Tries, certify: Certify) -> Case | None:
    """Return the fastest candidate that is certified, trying the fastest first; None where none is."""
    for key in ordered(tries.alive()):
        case, session = tries.cases[key], tries.session
        plan = tuning.with_cases(session.plan, [tries.base, case, *tries.others])
        found = certify(replace(session, plan=plan)).get(key)
        if found is None or found["passed"]:
            return case
        tries.rejected[key] = found["sentence"]
    return None


def _tried(tries: _Tries, chosen: Case | None) -> list[Tried]:
    return [
        Tried(_differences(tries, case), tuple(tries.times_ns[key]), *_outcome(tries, key, chosen))
        for key, case in tries.cases.items()
    ]


def _outcome(tries: _Tries, key: str, chosen: Case | None) -> tuple[str, str]:
    if key == tries.base.id:
        return USUAL, ""
    if key in tries.reasons:
        return FAILED, tries.reasons[key]
    if key in tries.rejected:
        return REJECTED, tries.rejected[key]
    return (CHOSEN if chosen and key == chosen.id else LEFT), ""


def _differences(tries: _Tries, case: Case) -> dict[str, str]:
    """Return the settings of a candidate that are not the usual ones."""
    usual, own = tries.base.settings, case.settings
    found = {tuning.MODE: own.mode} if own.mode != usual.mode else {}
    return found | {name: str(value) for name, value in own.knobs.items() if value != usual.knobs.get(name)}


def _say(tries: _Tries, chosen: Case | None) -> None:
    tried = f"{len(tries.cases)} settings were tried in {tries.seconds:.0f} s"
    if chosen is None:
        tries.session.screen.say(f"{tried}. None of them can be measured beside the usual ones.")
    else:
        found = ", ".join(f"{name} {value}" for name, value in _differences(tries, chosen).items())
        tries.session.screen.say(f"{tried}. The rounds measure {found} beside the usual settings.")
