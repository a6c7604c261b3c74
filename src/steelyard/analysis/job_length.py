"""Which contender finishes first, by the length of a job, and after how many steps a slower start is made up for."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from steelyard.results.job_times import job_time
from steelyard.statistics import sentences
from steelyard.statistics.break_even import BreakEven, JobTime, break_even, mean, soonest
from steelyard.wording.notation import significant
from steelyard.wording.task_words import fill

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from steelyard.analysis.model import Comparison, Contender

NOT_DECIDED = "As with the verdict, this is not decided."

Times = dict[int, JobTime]
"""Round -> time of a job in that round's process."""


@dataclass(frozen=True)
class Pair:
    """Two contenders, the one with the slower start first. `after`: when the later one has overtaken the sooner one, as text.

    `found`: their break-even, None with fewer than two common rounds.
    """

    later: Contender
    sooner: Contender
    found: BreakEven | None
    after: str


@dataclass(frozen=True)
class JobLength:
    """Which contender finishes first, by the length of a job.

    `sentence` says so; `first` has (number of steps from which it is first, contender) pairs. `pairs`: neighbours by length of
    the job, then pairs within frameworks. `times`: (contender, mean time of its jobs) pairs.
    """

    sentence: str
    first: list[tuple[int, Contender]]
    pairs: list[Pair]
    times: list[tuple[Contender, JobTime]]


def job_length(comparison: Comparison) -> JobLength | None:
    """Return who finishes first; None with fewer than two certified contenders that have job times.

    None also where a quantity is ranked that has one value per process: this is about the time of steps.
    """
    if comparison.quantity.per_process:
        return None
    known = _in_common({each.case.id: (each, times) for each in comparison.contenders if (times := _times(each))})
    if len(known) < 2 or len({trial.batch for each, _ in known.values() for trial in each.trials}) > 1:
        return None
    means = {key: mean(times) for key, (_, times) in known.items()}
    first = [(steps, known[key][0]) for steps, key in soonest(means)]
    pairs = [
        _pair(*known[later], *known[sooner], comparison.task)
        for later, sooner in _compared([each for each, _ in known.values()], means, [each.case.id for _, each in first])
    ]
    ranking = comparison.rankings.get(comparison.primary)
    sentence = _sentence(first, pairs, comparison.task)
    if ranking and ranking.still_undecided:
        sentence += f" {NOT_DECIDED}"
    return JobLength(sentence, first, pairs, [(each, means[key]) for key, (each, _) in known.items()])


def as_dict(comparison: Comparison, case_name: Callable[[Contender], str]) -> dict[str, Any] | None:
    """Return which contender finishes first from which number of steps on, and the break-even points; None if unknown."""
    known = job_length(comparison)
    if not known:
        return None
    return {
        "sentence": known.sentence,
        "first": [{"from_steps": steps, "case": case_name(each)} for steps, each in known.first],
        "pairs": [
            {
                "later": case_name(pair.later),
                "sooner": case_name(pair.sooner),
                "break_even": asdict(pair.found) if pair.found else None,
            }
            for pair in known.pairs
        ],
    }


def _in_common(found: dict[str, tuple[Contender, Times]]) -> dict[str, tuple[Contender, Times]]:
    """Keep the rounds that all contenders finished. One that is decided early is missing in later rounds, which may differ."""
    common = set.intersection(*(set(times) for _, times in found.values())) if found else set()
    return {key: (each, {number: times[number] for number in common}) for key, (each, times) in found.items() if common}


def _times(contender: Contender) -> Times:
    """Return the job times of a contender's rounds; empty if the contender may not be in a verdict."""
    if contender.proof.state != "certified" or contender.proof.on_purpose or contender.failure or contender.above_peak:
        return {}
    found = {trial.job.round: job_time(trial) for trial in contender.trials}
    return {number: each for number, each in found.items() if each}


def _compared(contenders: Sequence[Contender], means: dict[str, JobTime], first: list[str]) -> list[tuple[str, str]]:
    """Return the pairs of the table, the slower start first: neighbours by length of the job, then pairs within frameworks."""
    found = [(later, sooner) for sooner, later in pairwise(first)]
    by_framework: dict[str, list[str]] = {}
    for each in contenders:
        by_framework.setdefault(each.case.framework, []).append(each.case.id)
    for keys in by_framework.values():
        sooner, *others = sorted(keys, key=lambda key: means[key].start_ns)
        found += [(later, sooner) for later in others]
    return list(dict.fromkeys(found))


def _pair(later: Contender, times: Times, sooner: Contender, others: Times, task: str) -> Pair:
    found = break_even(times, others)
    return Pair(later, sooner, found, _after(found, task, later.steps_per_epoch))


def _after(found: BreakEven | None, task: str, per_epoch: int) -> str:
    if found is None:
        return sentences.NOT_ENOUGH
    if math.isinf(found.low):
        return fill("never: not faster per {step}", task)
    ends = f"[{_count(found.low)}, {'never' if math.isinf(found.high) else _count(found.high)}]"
    if math.isinf(found.steps):
        return f"never on average {ends}"
    epochs = f" ({significant(found.steps / per_epoch, 2)} epochs)" if per_epoch else ""
    return f"{_steps(found.steps, task)}{epochs} {ends}"


def _steps(count: float, task: str) -> str:
    return f"{_count(count)} {fill('{step}' if math.ceil(count) == 1 else '{steps}', task)}"


def _count(steps: float) -> str:
    return f"{math.ceil(steps):,}" if steps < 100 else significant(steps)


def _sentence(first: list[tuple[int, Contender]], pairs: list[Pair], task: str) -> str:
    """Return the sentence on who finishes first. The first pairs are neighbours by length of the job."""
    *shorter, (_, last) = first
    if not shorter:
        return f"{sentences.in_text(last.title)} is done first on average, however long the job is."
    ends = [
        pair.after if pair.found else _steps(after - 1, task)
        for (after, _), pair in zip(first[1:], pairs, strict=False)
    ]
    parts = [
        f"{sentences.in_text(each.title)} with jobs of up to {end}"
        for (_, each), end in zip(shorter, ends, strict=True)
    ]
    return f"Done first on average: {', '.join(parts)}, {sentences.in_text(last.title)} with longer ones."
