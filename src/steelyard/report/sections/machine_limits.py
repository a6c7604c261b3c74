"""How close contenders come to the limits of the machine: a sentence, a table of shares, and the roofline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis.headlines import SHORT_INPUTS
from steelyard.analysis.machine_limits import machine_limits
from steelyard.report.blocks import Panel, Plots, aside, finding, helps, line, plain_table
from steelyard.report.plots import roofline
from steelyard.statistics.sentences import percent
from steelyard.wording.formatted import NO_VALUE, share_text
from steelyard.wording.notation import significant
from steelyard.wording.task_words import fill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from steelyard.analysis.machine_limits import MachineLimits
    from steelyard.analysis.model import Comparison, Speed
    from steelyard.report.blocks import Block
    from steelyard.report.sections.subject import Subject

HEADING = "How close to the machine's limits"


def blocks(subject: Subject) -> Sequence[Block]:
    """Return the section; nothing where no steps were measured, or another quantity than their time is ranked."""
    known = machine_limits(subject.comparison)
    if not known:
        return []
    shown: list[Block] = [Panel(HEADING, list(_on_page(known, subject)))]
    return [*shown, line(known.headline)] if known.headline else shown


def _on_page(known: MachineLimits, subject: Subject) -> Iterator[Block]:
    comparison = subject.comparison
    if known.headline:
        yield finding(known.headline, terms=True)
    yield from map(aside, known.sentences)
    explained = [(heading, fill(text, comparison.task)) for heading, _, text in _columns(known)]
    yield aside(_caption(known, comparison), *helps(explained, end=""))
    yield plain_table(comparison.title, HEADING, *table(known))
    if known.points:
        yield Plots(lambda: [roofline.figure(comparison, known.points, subject.styles)])


def table(known: MachineLimits) -> tuple[list[str], list[list[str]]]:
    """Return the headings and the rows of the table: a row for each contender, without columns in which none has a value."""
    columns = _columns(known)
    rows = [[contender.name, *(cell(speed) for _, cell, _ in columns)] for contender, speed in known.speeds]
    return ["contender", *(heading for heading, _, _ in columns)], rows


def _caption(known: MachineLimits, comparison: Comparison) -> str:
    steps = fill("{steps}", comparison.task)
    return f"Of the counted {steps} on the {SHORT_INPUTS[known.source]}, the mean over processes."


def _busy_cores(speed: Speed) -> str:
    share = f" ({share_text(speed.share_of_cores)})" if speed.share_of_cores else ""
    return NO_VALUE if speed.busy_cores is None else f"{speed.busy_cores:.2f}{share}"


def _bandwidth(speed: Speed) -> str:
    share = speed.share_of_bandwidth
    return NO_VALUE if share is None else f"at least {percent(share)}"


def _energy(speed: Speed) -> str:
    joules = sum(speed.joules.values())
    return f"{significant(joules)} J ({significant(joules / speed.location.value_ns * 1e9)} W)" if joules else NO_VALUE


def _share(share: float | None) -> str:
    return NO_VALUE if share is None else share_text(share)


Column = tuple[str, "Callable[[Speed], str]", str]
"""The heading of a column, the text of a cell, and how it is read."""

COLUMNS: tuple[Column, ...] = (
    (
        "busy cores",
        _busy_cores,
        "CPU time over elapsed time, and its share of the cores that a process is given. Waiting in a loop counts as busy.",
    ),
    (
        "share of peak",
        lambda x: _share(x.share_of_peak),
        "arithmetic of {a_step} as a share of the fastest matrix product.",
    ),
    (
        "share of bandwidth",
        _bandwidth,
        "what {a_step} must move between memory and processor as a share of the bandwidth; most frameworks move more.",
    ),
    (
        "GPU use",
        lambda x: _share(x.gpu_share),
        "share of the time in which a kernel ran, by the counter of the driver.",
    ),
    ("energy", _energy, "of {a_step} by the meters of the machine, which count all programs, and the mean power."),
)


def _columns(known: MachineLimits) -> list[Column]:
    """Return the columns in which any contender has a value."""
    return [column for column in COLUMNS if any(column[1](speed) != NO_VALUE for _, speed in known.speeds)]
