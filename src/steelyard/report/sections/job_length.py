"""Which contender is done first by the length of a job: a sentence, a table of break-evens, and the plot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis.headlines import SHORT_INPUTS
from steelyard.analysis.job_length import job_length
from steelyard.report.blocks import Panel, Plots, aside, finding, line, plain_table
from steelyard.report.plots import job_times
from steelyard.wording.task_words import fill

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.analysis.job_length import JobLength
    from steelyard.analysis.model import Comparison
    from steelyard.report.blocks import Block
    from steelyard.report.sections.subject import Subject

HEADING = "By length of the job"
PAID = "When a slow start has paid"
CAPTION = (
    "A job's time: importing the framework, {building}, the first {steps} with compilation, and then as many {steps} as it has, "
    "on the {input}. Means and intervals are over the rounds that all of these contenders finished."
)
TABLE = (
    " The table compares contenders that take the lead from each other as jobs get longer, and each mode or setting of a "
    "framework with the one that starts soonest."
)
HEADINGS = ("starts later", "starts sooner", "the later one overtakes after")


def blocks(subject: Subject) -> Sequence[Block]:
    """Return the section; nothing with fewer than two certified contenders that have job times."""
    known = job_length(subject.comparison)
    return [Panel(HEADING, list(_on_page(known, subject))), line(known.sentence)] if known else []


def _on_page(known: JobLength, subject: Subject) -> Iterator[Block]:
    comparison = subject.comparison
    yield finding(known.sentence, terms=True)
    yield aside(_caption(known, comparison), terms=True)
    if known.pairs:
        rows = [(pair.later.title, pair.sooner.title, pair.after) for pair in known.pairs]
        yield plain_table(comparison.title, PAID, HEADINGS, rows)
    yield Plots(lambda: [job_times.figure(comparison, known, subject.styles)])


def _caption(known: JobLength, comparison: Comparison) -> str:
    text = CAPTION.replace("{input}", SHORT_INPUTS[comparison.primary]) + (TABLE if known.pairs else "")
    return fill(text, comparison.task)
