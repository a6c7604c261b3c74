"""The columns of a verdict table, shared by page and terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.report import formatting
from steelyard.report.formatting import Formatted

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.report.model import Comparison, Contender

    Format = Callable[[Comparison, Contender, str], Formatted]

NARROW = 80


@dataclass(frozen=True)
class Column:
    """`width`: the smallest terminal width in characters that shows the column; 0: only the page shows it."""

    heading: str
    format: Format
    width: int
    help: str


COLUMNS = (
    Column(
        "mean step",
        lambda _, x, s: formatting.location(x, s),
        NARROW,
        "Counted time divided by counted steps, averaged over processes. Lower is better.",
    ),
    Column(
        "ratio to fastest",
        formatting.ratio,
        NARROW,
        "Time per step divided by that of the fastest certified contender, from the rounds that both finished.",
    ),
    Column(
        "median step",
        lambda _, x, s: Formatted(formatting.median(x, s)),
        120,
        "Half of the counted steps took less time; the median over processes.",
    ),
    Column(
        "throughput",
        lambda c, x, s: formatting.throughput(x, s, c.unit),
        108,
        "Batch size divided by mean step. Higher is better.",
    ),
    Column(
        "first step",
        lambda _, x, _s: Formatted(formatting.seconds(x.first_step_ns)),
        NARROW,
        "Includes compilation, tracing and memory allocation.",
    ),
    Column(
        "time to first step",
        lambda _, x, _s: Formatted(formatting.seconds(x.to_first_step_ns)),
        0,
        "From the start of the process to the end of its first step, including imports.",
    ),
    Column(
        "peak memory",
        lambda _, x, _s: Formatted(formatting.memory(x)),
        94,
        "On the device if the framework reports it, otherwise of the whole process.",
    ),
    Column(
        "test metric",
        lambda _, x, _s: formatting.test_metric(x),
        120,
        "The workload's metric on the test split, after the same number of training steps for every contender.",
    ),
    Column(
        "share of peak",
        lambda _, x, s: Formatted(formatting.share(x, s)),
        0,
        "Arithmetic of a training step as a share of the fastest matrix product measured on this machine.",
    ),
    Column(
        "certified",
        lambda _, x, _s: Formatted(formatting.CERTIFICATES[x.proof.state]),
        NARROW,
        "Whether the contender was proved to compute the same as the reference.",
    ),
)


def shown(columns: int) -> list[Column]:
    """Return the columns that fit a terminal of this width in characters; some, such as the certificate, always appear."""
    return [column for column in COLUMNS if column.width and (columns >= column.width or column.width == NARROW)]
