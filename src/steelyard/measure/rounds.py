"""Interleaved rounds of new processes in random order, until the fastest are decided; which round runs where and when.

A round runs completely on one machine. Where a place has several nodes, rounds run at the same time if no decision lies between
them; rounds of unlike groups, and those that would very likely be needed anyway, fill the nodes that are left.
"""

import math
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from steelyard.files import paths
from steelyard.host.noise import is_unusual
from steelyard.measure import jobs
from steelyard.measure.attempts import Attempt, Outcome
from steelyard.measure.places import Here, Place
from steelyard.measure.session import Session
from steelyard.plan.run_plan import Group, Variant
from steelyard.results.quantities import STEP_TIME, Quantity
from steelyard.results.round_results import RoundResults
from steelyard.results.trials import Trial
from steelyard.statistics.decision import Ranking, decide, rounds_needed, rounds_wanted
from steelyard.statistics.effort import Process, noise_ratios
from steelyard.statistics.sentences import in_text
from steelyard_worker.strategy import nodes_of

MOST_ATTEMPTS = 3


def primary_input(session: Session, group: Group) -> str:
    """Return the input that verdicts are based on: the framework's own pipeline if there is data, as in real training."""
    prepared = session.inputs_of(group.cases[0]).data.prepared
    return "pipeline" if prepared and "pipeline" in group.protocol.schedule.inputs else "cached"


def measure(session: Session, results: RoundResults, place: Place | None = None) -> dict[str, Ranking]:
    """Run rounds until no case needs another one; returns {group: ranking}. `place`: where; by default on this machine.

    A resumed run repeats failed processes, and disturbed rounds that were not repeated yet. The time limit of the study
    can end the rounds early, independently of their results.
    """
    _discard_incomplete(session, results)
    return _Rounds(session, results, place or Here(session)).run()


def minutes_of(session: Session) -> float:
    """Return the minutes after which no further round starts; infinite without a limit."""
    return session.plan.minutes or math.inf


@dataclass(frozen=True)
class Standing:
    """The results of a group's rounds so far. `ranking`: of those that can be in a verdict; `everyone`: also of the others."""

    ranking: Ranking
    everyone: Ranking

    @property
    def wanted(self) -> frozenset[str]:
        """The contenders of the next round; empty if all verdicts are decided.

        A contender that is in no verdict runs as long as it would be undecided.
        """
        if not (wanted := rounds_wanted(self.ranking)):
            return wanted
        others = frozenset(self.everyone.order) - frozenset(self.ranking.order)
        return wanted | (rounds_wanted(self.everyone) & others)


def rank(session: Session, group: Group, results: RoundResults, quantity: Quantity = STEP_TIME) -> Standing:
    """Rank a group by a quantity on its primary input.

    As in reports, only certified contenders are in verdicts. Where fewer than two are, there is none, and all are ranked.
    """
    costs = results.costs(group.cases, quantity, primary_input(session, group))
    plan = session.plan.decision(group)
    everyone = decide(costs, plan)
    certified = {key: each for key, each in costs.items() if results.certificates.get(key, {}).get("passed")}
    return Standing(decide(certified, plan) if 1 < len(certified) < len(costs) else everyone, everyone)


@dataclass(frozen=True)
class _Task:
    """A round to be run. `node`: only there, because part of it was measured there. `tries`: attempts so far."""

    group: Group
    number: int
    variants: tuple[Variant, ...]
    node: str | None = None
    tries: int = 0

    @property
    def nodes(self) -> int:
        """How many nodes it needs at the same time."""
        return max(nodes_of(each.case.strategy) for each in self.variants)


@dataclass
class _Wave:
    """The rounds of one group up to its next decision; all have the same variants. `reached`: the last that was planned."""

    group: Group
    reached: int = 0
    waiting: list[_Task] = field(default_factory=list)
    running: int = 0


class _Rounds:
    """Starts the rounds of all groups in the order of their numbers, and takes their outcomes."""

    def __init__(self, session: Session, results: RoundResults, place: Place) -> None:
        self._session, self._results, self._place = session, results, place
        self._deadline_s = time.monotonic() + 60 * minutes_of(session)
        self._standings = {group.name: rank(session, group, results) for group in session.plan.groups}
        self._waves = [_Wave(group) for group in session.plan.groups]
        self._running: dict[tuple[str, int], _Task] = {}
        self._late = False

    def run(self) -> dict[str, Ranking]:
        while True:
            while not self._late and (idle := self._place.idle()) and (task := self._next(idle)):
                self._start(task, idle)
            if not self._running and (self._late or not self._waits_for_a_node()):
                return {name: standing.ranking for name, standing in self._standings.items()}
            if outcome := self._place.wait():
                self._end(outcome)

    def _waits_for_a_node(self) -> bool:
        return not self._place.idle() or any(wave.waiting for wave in self._waves)

    def _next(self, idle: frozenset[str]) -> _Task | None:
        """Return the round to start now; None if all remaining rounds wait for a decision, or for their node."""
        for wave in self._waves:
            if not wave.waiting and not wave.running:
                self._plan(wave)
            wave.waiting = [self._movable(task) for task in wave.waiting]
        heads = [wave.waiting[0] for wave in self._waves if wave.waiting]
        able = [task for task in heads if (task.node is None or task.node in idle) and self._has_room(task, idle)]
        if not heads:
            able = [task for wave in self._waves if (task := self._one_more(wave)) and self._has_room(task, idle)]
        if not able:
            return None
        task = min(able, key=lambda each: each.number)
        if self._is_late(task):
            return None
        wave = self._wave(task)
        if task in wave.waiting:
            wave.waiting.remove(task)
        else:
            wave.reached = task.number
        return task

    def _has_room(self, task: _Task, idle: frozenset[str]) -> bool:
        """Return whether enough nodes are idle for a round; a round that needs more nodes than exist fails when it is run."""
        return task.nodes <= len(idle) or task.nodes > self._place.size()

    def _is_late(self, task: _Task) -> bool:
        if task.number > task.group.protocol.rounds_min and time.monotonic() > self._deadline_s:
            self._late = True
            self._session.screen.say(
                f"The time limit of {minutes_of(self._session):g} minutes is reached. For more rounds, use "
                f"steelyard run --resume {paths.named(self._session.folder)}; --minutes 0 removes the limit."
            )
        return self._late

    def _plan(self, wave: _Wave) -> None:
        """Plan the rounds of a group up to the next decision."""
        group = wave.group
        for number in range(wave.reached + 1, group.protocol.rounds_max + 1):
            decides = group.protocol.sequential and number >= group.protocol.drops_from
            if decides and wave.waiting:
                return
            wave.reached = number
            variants = _variants_to_run(self._standings[group.name], group, number, self._results)
            if task := self._missing(group, number, variants):
                wave.waiting.append(task)
                if decides:
                    return

    def _missing(self, group: Group, number: int, variants: list[Variant]) -> _Task | None:
        """Return the missing part of a round, for the node that measured the rest; the whole round if that node has left."""
        missing = [each for each in variants if not self._results.has(each.case.id, number)]
        if not missing:
            return None
        rest = {self._results.latest[each.case.id][number].job.node for each in variants if each not in missing}
        if not rest:
            return _Task(group, number, tuple(missing))
        (node,) = rest if len(rest) == 1 else (None,)
        if node is not None and self._place.has(node):
            return _Task(group, number, tuple(missing), node)
        return _Task(group, number, tuple(variants))

    def _movable(self, task: _Task) -> _Task:
        """Return the task; if the node that measured the rest of its round has left, the whole round on any node."""
        if task.node is None or self._place.has(task.node):
            return task
        known = [
            each
            for each in task.group.variants
            if each in task.variants or self._results.has(each.case.id, task.number)
        ]
        return replace(task, variants=tuple(known), node=None)

    def _one_more(self, wave: _Wave) -> _Task | None:
        """Return a further round of an undecided group for a node that has nothing to do; None where it is hardly needed."""
        group, standing, number = wave.group, self._standings[wave.group.name], wave.reached + 1
        if not wave.running or number > group.protocol.rounds_max or wave.running >= rounds_needed(standing.ranking):
            return None
        variants = _variants_to_run(standing, group, number, self._results)
        return self._missing(group, number, variants) if variants else None

    def _wave(self, task: _Task) -> _Wave:
        return next(wave for wave in self._waves if wave.group.name == task.group.name)

    def _start(self, task: _Task, idle: frozenset[str]) -> None:
        failed = self._results.failed
        variants = [each for each in task.variants if each.case.id not in failed]
        if not variants:
            return
        number = _next_attempt(self._session.folder, task.number, variants)
        ratios = _noise_ratios(self._session, task.group, self._results)
        cases = tuple(each.case.id for each in variants)
        self._running[task.group.name, task.number] = task
        self._wave(task).running += 1
        attempt = Attempt(task.group.name, task.number, number, cases, ratios, task.nodes)
        self._place.start(attempt, task.node or min(idle))

    def _end(self, outcome: Outcome) -> None:
        """Note an attempt that has ended. If it was unusually disturbed, all of it is repeated: never a single variant."""
        attempt = outcome.attempt
        task = self._running.pop((attempt.group, attempt.round))
        wave = self._wave(task)
        wave.running -= 1
        again = bool(outcome.lost) or self._is_repeated(task, outcome)
        reasons = [outcome.lost] if outcome.lost else list(outcome.reasons)
        self._session.note_round(
            group=attempt.group,
            round=attempt.round,
            attempt=attempt.attempt,
            kept=not again,
            reasons=reasons,
            severity=outcome.severity,
            host_noise=outcome.host_noise,
            node=outcome.node,
            beside=list(outcome.beside),
        )
        if again:
            because = reasons[0] if outcome.lost else f"the machine was disturbed: {'; '.join(reasons)}"
            self._session.screen.say(f"Round {attempt.round} of {attempt.group} is repeated because {because}.")
            wave.waiting.insert(0, replace(task, tries=task.tries + (not outcome.lost)))
            return
        added = [self._results.add(trial) for trial in outcome.trials]
        left_out = [
            counted for trial, counted in zip(outcome.trials, added, strict=True) if trial.done and counted.error
        ]
        for counted in [*left_out, *self._results.compare_courses()]:
            name = self._session.plan.by_id[counted.job.case.id].key
            self._session.screen.say(f"{name} is left out: {counted.error[1] if counted.error else ''}")
        standing = self._standings[attempt.group] = rank(self._session, task.group, self._results)
        titles = {key: in_text(title) for key, title in task.group.titles.items()}
        self._session.screen.ranking(attempt.group, standing.ranking, titles)

    def _is_repeated(self, task: _Task, outcome: Outcome) -> bool:
        """Return whether a round was disturbed more than is usual on its node, and may be repeated; never because of times."""
        earlier = [each["severity"] for each in self._session.noted_rounds() if each.get("node", "") == outcome.node]
        return (
            self._session.plan.options.guard
            and task.tries + 1 < MOST_ATTEMPTS
            and all(trial.done for trial in outcome.trials)
            and not task.group.protocol.searches_batch  # a disturbance changes no memory, and a search has many processes
            and is_unusual(outcome.severity, earlier)
        )


def _discard_incomplete(session: Session, results: RoundResults) -> None:
    repeated = {(note["group"], note["round"], note["attempt"]) for note in session.noted_rounds() if not note["kept"]}
    group_of = {case_id: variant.group for case_id, variant in session.plan.by_id.items()}

    def is_incomplete(trial: Trial) -> bool:
        job = trial.job
        return not trial.done or (group_of.get(job.case.id, ""), job.round, job.attempt) in repeated

    results.discard(is_incomplete)


def _variants_to_run(standing: Standing, group: Group, number: int, results: RoundResults) -> list[Variant]:
    """Return the variants of a round: all of them in the first rounds, later those that are not decided yet."""
    failed = results.failed
    able = [variant for variant in group.variants if variant.case.id not in failed]
    protocol = group.protocol
    alone = len(able) == 1
    if not protocol.sequential or number < protocol.drops_from or (alone and number <= protocol.rounds_min):
        return able
    ids = frozenset() if alone else standing.wanted
    return [variant for variant in able if variant.case.id in ids]


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
