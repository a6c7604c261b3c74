"""The columns of a verdict table, once for page and terminal, so that both say the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.report import words
from steelyard.report.words import Told

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.report.model import Comparison, Contender

    Tell = Callable[[Comparison, Contender, str], Told]


NARROW = 80


@dataclass(frozen=True)
class Column:
    """`width`: the least number of characters a terminal must have to show it; 0: the page alone does."""

    heading: str
    tell: Tell
    width: int
    help: str


COLUMNS = (
    Column(
        "mean step",
        lambda _, x, s: words.location(x, s),
        NARROW,
        "Counted time over counted steps, averaged over processes; lower is better.",
    ),
    Column(
        "times the fastest",
        words.ratio,
        NARROW,
        "Time per step over that of the fastest certified contender, from rounds both ran.",
    ),
    Column("median step", lambda _, x, s: Told(words.median(x, s)), 120, "Half of the counted steps took less."),
    Column(
        "throughput",
        lambda c, x, s: words.throughput(x, s, c.unit),
        108,
        "Batch size over mean step; higher is better.",
    ),
    Column(
        "first step",
        lambda _, x, _s: Told(words.seconds(x.first_step_ns)),
        NARROW,
        "Compilation, tracing and allocation happen here.",
    ),
    Column(
        "to first step",
        lambda _, x, _s: Told(words.seconds(x.to_first_step_ns)),
        0,
        "From the start of the process to the end of its first step, import included.",
    ),
    Column(
        "peak memory",
        lambda _, x, _s: Told(words.memory(x)),
        94,
        "Of the device where the framework counts it, else of the whole process.",
    ),
    Column(
        "learnt",
        lambda _, x, _s: words.learnt(x),
        120,
        "The workload's own metric on the test split, after equally many training steps.",
    ),
    Column(
        "of peak",
        lambda _, x, s: Told(words.share(x, s)),
        0,
        "Arithmetic of the training step over the fastest matrix product measured on this machine.",
    ),
    Column(
        "certified",
        lambda _, x, _s: Told(words.CERTIFICATES[x.proof.state]),
        NARROW,
        "Whether it was proved to compute the same as the reference.",
    ),
)


def shown(columns: int) -> list[Column]:
    """Return the columns that a terminal of so many characters has room for; the certificate is always one."""
    return [column for column in COLUMNS if column.width and (columns >= column.width or column.width == NARROW)]
