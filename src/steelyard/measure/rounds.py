"""Interleaved rounds: fresh processes in random order, judged after each round, until every pair is decided."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from steelyard.host.noise import judge, unequal_frequencies
from steelyard.host.sampler import Sampler
from steelyard.measure import jobs
from steelyard.report.titles import titles
from steelyard.results import store
from steelyard.statistics.decision import Ranking, decide, rounds_wanted
from steelyard.statistics.orders import round_order

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from steelyard.measure.session import Session
    from steelyard.plan.cells import Cell
    from steelyard.results.trials import Trial
    from steelyard.statistics.calibration import NoiseFloor

MOST_ATTEMPTS = 3


@dataclass
class Book:
    """Trials by cell and round; a later attempt at a round replaces the earlier one, in whatever order they come."""

    latest: dict[str, dict[int, Trial]] = field(default_factory=lambda: defaultdict(dict))

    def enter(self, trial: Trial) -> None:
        """Note an ended trial."""
        rounds, (number, attempt) = self.latest[store.cell_of(trial)], store.round_of(trial)
        if number not in rounds or store.round_of(rounds[number])[1] <= attempt:
            rounds[number] = trial

    @property
    def kept(self) -> dict[str, dict[int, Trial]]:
        """Finished trials: cell key -> {round: trial}."""
        return {
            key: {number: trial for number, trial in rounds.items() if trial.done}
            for key, rounds in self.latest.items()
        }

    @property
    def failed(self) -> dict[str, Trial]:
        """Cells whose process failed, which take no further part, with the latest failure."""
        failures = {
            key: [rounds[n] for n in sorted(rounds) if not rounds[n].done] for key, rounds in self.latest.items()
        }
        return {key: found[-1] for key, found in failures.items() if found}

    def has(self, key: str, number: int) -> bool:
        """Say whether a cell has finished a round."""
        return number in self.latest[key] and self.latest[key][number].done

    def forget(self, dismissed: Callable[[Trial], bool]) -> None:
        """Leave out what is to be done again."""
        for rounds in self.latest.values():
            for number in [number for number, trial in rounds.items() if dismissed(trial)]:
                del rounds[number]

    def locations(self, cells: list[Cell], source: str) -> dict[str, dict[int, float]]:
        """Return cell key -> {round: time per step in ns} of one input."""
        kept, failed = self.kept, self.failed
        found = {cell.key: self._of(kept.get(cell.key, {}), source) for cell in cells if cell.key not in failed}
        return {key: rounds for key, rounds in found.items() if rounds or not kept.get(key)}

    def _of(self, kept: dict[int, Trial], source: str) -> dict[int, float]:
        located = {number: trial.location_ns(source) for number, trial in kept.items()}
        return {number: value for number, value in located.items() if value}


def read_book(trials: list[Trial]) -> Book:
    """Enter the measuring trials of a run in the order in which they were done."""
    book = Book()
    for trial in trials:
        if trial.job.task == "measure" and (trial.done or trial.error):
            book.enter(trial)
    return book


def primary_input(session: Session, group: str) -> str:
    """Return the input that decides: the framework's own pipeline where there is data, as that is what users pay."""
    shape = session.plan.protocol.plan
    return "pipeline" if session.inputs[group].data.prepared and "pipeline" in shape.inputs else "cached"


def measure(session: Session, noise: NoiseFloor, book: Book) -> dict[str, Ranking]:
    """Run rounds until nobody is wanted any more; returns the ranking of every group.

    A run that goes on has its gaps filled: a failed process gets another chance, and an attempt that was to be repeated
    because the machine was disturbed does not count. A study's time limit ends rounds early, whatever they have shown.
    """
    deadline_s = time.monotonic() + 60 * minutes_of(session)
    repeated = {(note["group"], note["round"], note["attempt"]) for note in session.noted_rounds() if not note["kept"]}
    book.forget(lambda trial: not trial.done or (store.group_of(trial), *store.round_of(trial)) in repeated)
    rankings = {group: rank(session, group, noise, book) for group in session.plan.groups}
    for number in range(1, session.plan.protocol.rounds_max + 1):
        for group, cells in session.plan.groups.items():
            wanted = _wanted(session, rankings[group], cells, number, book)
            missing = [cell for cell in wanted if not book.has(cell.key, number)]
            if missing and number > session.plan.protocol.rounds_min and time.monotonic() > deadline_s:
                session.screen.say(_time_is_up(session))
                return rankings
            if missing:
                _run_round(session, number, group, missing, book)
                rankings[group] = rank(session, group, noise, book)
                session.screen.ranking(group, rankings[group], titles(cells))
    return rankings


def minutes_of(session: Session) -> float:
    """Return the time that rounds may take; infinite without a limit."""
    asked = session.plan.options.minutes
    return (session.plan.study.minutes if asked is None else asked) or math.inf


def _time_is_up(session: Session) -> str:
    return (
        f"The {minutes_of(session):g} minutes of this study are used up. For more rounds: "
        f"steelyard run --resume {session.folder.name}, or a run with --minutes 0 (no limit)."
    )


def rank(session: Session, group: str, noise: NoiseFloor, book: Book) -> Ranking:
    """Judge a group on its deciding input."""
    cells = session.plan.groups[group]
    return decide(
        book.locations(cells, primary_input(session, group)),
        noise,
        session.plan.protocol.decision(session.plan.options.delta),
    )


def _wanted(session: Session, ranking: Ranking, cells: list[Cell], number: int, book: Book) -> list[Cell]:
    failed = book.failed
    able = [cell for cell in cells if cell.key not in failed]
    if not session.plan.protocol.sequential or number <= session.plan.protocol.rounds_min:
        return able
    keys = rounds_wanted(ranking)
    return [cell for cell in able if cell.key in keys] if len(able) > 1 else []


def _run_round(session: Session, number: int, group: str, cells: list[Cell], book: Book) -> None:
    """Run one round; when the machine was disturbed, run the whole of it again: never one arm, never by its times."""
    first = _next_attempt(session.folder, number, cells)
    for attempt in range(first, first + MOST_ATTEMPTS):
        with Sampler() as sampler:
            trials = _run_once(session, number, attempt, group, cells)
        reasons = _disturbances(sampler, trials) if session.plan.options.guard else []
        again = bool(reasons) and attempt + 1 < first + MOST_ATTEMPTS and all(trial.done for trial in trials)
        session.note_round(
            group=group,
            round=number,
            attempt=attempt,
            kept=not again,
            reasons=reasons,
            host_noise=sampler.summary().to_dict(),
        )
        if not again:
            break
        session.screen.say(
            f"Round {number} of {group} is measured again, as the machine was disturbed: {'; '.join(reasons)}."
        )
    for trial in trials:
        book.enter(trial)


def _disturbances(sampler: Sampler, trials: list[Trial]) -> list[str]:
    """Say what the whole round bore, and whether its contenders had processors of unlike speed."""
    arms = [sampler.summary(*trial.counted_span_ns) for trial in trials if trial.done]
    return judge(sampler.summary()) + unequal_frequencies(arms)


def _next_attempt(run: Path, number: int, cells: list[Cell]) -> int:
    """Return the first attempt at a round that has left no folder: an interrupted process keeps what it wrote."""
    attempt = 0
    while any(jobs.trial_folder(run, number, attempt, cell).exists() for cell in cells):
        attempt += 1
    return attempt


def _run_once(session: Session, number: int, attempt: int, group: str, cells: list[Cell]) -> list[Trial]:
    by_key = {cell.key: cell for cell in cells}
    trials = []
    for key in round_order(by_key, number, session.plan.options.seed):
        cell = by_key[key]
        session.screen.trial(number, cell)
        folder = jobs.trial_folder(session.folder, number, attempt, cell)
        job = jobs.measuring(session.plan, cell, session.inputs[group], number, attempt, folder)
        trials.append(session.run_trial(cell, job))
    return trials
