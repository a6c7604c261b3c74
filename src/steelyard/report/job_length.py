"""Which contender finishes first, by the length of a job, and after how many steps a slower start is made up for."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from steelyard.report import figures, forest
from steelyard.report.figures import Figure
from steelyard.report.formatting import SHORT_INPUTS
from steelyard.report.model import Comparison, Contender
from steelyard.report.notation import duration, significant
from steelyard.report.styles import Style
from steelyard.report.words import said
from steelyard.results.job_times import job_time
from steelyard.statistics import sentences
from steelyard.statistics.break_even import BreakEven, JobTime, break_even, mean, soonest

CAPTION = (
    "A job's time: importing the framework, {building}, the first {steps} with compilation, and then as many {steps} as it has, "
    "on the {input}. Means and intervals are over the rounds that all of these contenders finished."
)
TABLE = (
    "The table compares contenders that take the lead from each other as jobs get longer, and each mode or setting of a "
    "framework with the one that starts soonest."
)
FIGURE = (
    "The time of a whole job divided by its {steps}, by the length of the job, start included: the lowest line is done first. "
    "Means over processes."
)
NOT_DECIDED = "As with the verdict, this is not decided."
POINTS = 60
SHORTEST_AXIS, LONGEST_AXIS = 1e3, 1e7
"""The horizontal axis ends at a power of ten between these numbers of steps, beyond the last crossing."""

Times = dict[int, JobTime]
"""Round -> time of a job in that round's process."""


@dataclass(frozen=True)
class Pair:
    """Two contenders, the one with the slower start first. `found`: their break-even, None with fewer than two common rounds."""

    later: Contender
    sooner: Contender
    found: BreakEven | None
    cells: tuple[str, str, str]


@dataclass(frozen=True)
class JobLength:
    """`sentence` says which contender finishes first; `first` has (number of steps from which it is first, contender) pairs."""

    HEADINGS: ClassVar = ("starts later", "starts sooner", "the later one overtakes after")

    sentence: str
    first: list[tuple[int, Contender]]
    pairs: list[Pair]
    caption: str
    figure: Figure

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """The rows of the table, in the order of HEADINGS."""
        return [pair.cells for pair in self.pairs]


def section(comparison: Comparison, styles: dict[str, Style]) -> JobLength | None:
    """Return the section of a group; None with fewer than two certified contenders that have job times.

    It is left out where a quantity is ranked that has one value per process: it is about the time of steps.
    """
    if comparison.quantity.per_process:
        return None
    found = _in_common({each.case.id: (each, times) for each in comparison.contenders if (times := _times(each))})
    if len(found) < 2 or len({trial.batch for each, _ in found.values() for trial in each.trials}) > 1:
        return None
    means = {key: mean(times) for key, (_, times) in found.items()}
    first = [(steps, found[key][0]) for steps, key in soonest(means)]
    pairs = [
        _pair(*found[later], *found[sooner], comparison.task)
        for later, sooner in _compared([each for each, _ in found.values()], means, [each.case.id for _, each in first])
    ]
    figure = _figure(comparison, [(each, means[key]) for key, (each, _) in found.items()], pairs, styles)
    ranking = comparison.rankings.get(comparison.primary)
    sentence = _sentence(first, pairs, comparison.task)
    if ranking and ranking.still_undecided:
        sentence += f" {NOT_DECIDED}"
    source = SHORT_INPUTS[comparison.primary]
    caption = said(CAPTION.replace("{input}", source), comparison.task) + (f" {TABLE}" if pairs else "")
    return JobLength(sentence, first, pairs, caption, figure)


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
    after = _after(found, task, later.steps_per_epoch)
    return Pair(later, sooner, found, (later.title, sooner.title, after))


def _after(found: BreakEven | None, task: str, per_epoch: int) -> str:
    if found is None:
        return sentences.NOT_ENOUGH
    if math.isinf(found.low):
        return said("never: not faster per {step}", task)
    ends = f"[{_count(found.low)}, {'never' if math.isinf(found.high) else _count(found.high)}]"
    if math.isinf(found.steps):
        return f"never on average {ends}"
    epochs = f" ({significant(found.steps / per_epoch, 2)} epochs)" if per_epoch else ""
    return f"{_steps(found.steps, task)}{epochs} {ends}"


def _steps(count: float, task: str) -> str:
    return f"{_count(count)} {said('{step}' if math.ceil(count) == 1 else '{steps}', task)}"


def _count(steps: float) -> str:
    return f"{math.ceil(steps):,}" if steps < 100 else significant(steps)


def _sentence(first: list[tuple[int, Contender]], pairs: list[Pair], task: str) -> str:
    """Return the sentence on who finishes first. The first pairs are neighbours by length of the job."""
    *shorter, (_, last) = first
    if not shorter:
        return f"{sentences.in_text(last.title)} is done first on average, however long the job is."
    ends = [
        pair.cells[-1] if pair.found else _steps(after - 1, task)
        for (after, _), pair in zip(first[1:], pairs, strict=False)
    ]
    parts = [
        f"{sentences.in_text(each.title)} with jobs of up to {end}"
        for (_, each), end in zip(shorter, ends, strict=True)
    ]
    return f"Done first on average: {', '.join(parts)}, {sentences.in_text(last.title)} with longer ones."


def _figure(
    comparison: Comparison, timed: list[tuple[Contender, JobTime]], pairs: list[Pair], styles: dict[str, Style]
) -> Figure:
    crossings = [each.found.steps for each in pairs if each.found and math.isfinite(each.found.steps)]
    longest = max([10 * start.start_ns / start.step_ns for _, start in timed] + [3 * each for each in crossings])
    end = 10 ** math.ceil(math.log10(min(max(longest, SHORTEST_AXIS), LONGEST_AXIS)))
    steps = np.geomspace(1, end, POINTS)
    lines = [(each, [time.after(n) / n / 1e9 for n in steps.tolist()]) for each, time in timed]
    spans = [value for _, values in lines for value in values]
    ticks = [10**power for power in range(int(math.log10(end)) + 1)]
    across = figures.axis(
        said("{steps} of the job", comparison.task), type="log", range=[0, math.log10(end)], tickvals=ticks,
        ticktext=[f"{tick:,}" for tick in ticks],
    )  # fmt: skip
    down = forest.axis_between(
        0.8 * min(spans), 1.25 * max(spans), said("time per {step}, start included", comparison.task), "ns"
    )
    layout = figures.frame(360, figures.LEGEND, hovermode="closest", xaxis=across, yaxis=down)
    data = [_line(each, steps.tolist(), values, styles[each.variant]) for each, values in lines]
    return Figure(
        f"job length/{comparison.group}", "Time by length of the job", said(FIGURE, comparison.task), data, layout
    )


def _line(contender: Contender, steps: list[float], values: list[float], style: Style) -> dict[str, Any]:
    title = figures.plain(contender.title)
    return {
        "x": figures.rounded(steps), "y": figures.rounded(values), "mode": "lines", "name": title,
        "line": {"color": style.colour, "width": 1.5, "dash": style.dash},
        "text": [duration(value * 1e9) for value in values], "hovertemplate": f"{title}<br>%{{x:,.0f}}: %{{text}}<extra></extra>",
    }  # fmt: skip
