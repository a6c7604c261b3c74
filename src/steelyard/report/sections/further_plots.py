"""Plots that belong to no other section: times of steps, rounds, losses, latencies, links, stale gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.blocks import Plots
from steelyard.report.plots import latency, link_speed, losses, series, stability, staleness

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.report.blocks import Block
    from steelyard.report.figures import Figure
    from steelyard.report.sections.subject import Subject


def blocks(subject: Subject) -> Sequence[Block]:
    """Return the section."""
    return [Plots(lambda: _plots(subject))]


def _plots(subject: Subject) -> list[Figure]:
    comparison, styles = subject.comparison, subject.styles
    made = [
        *(series.step_times(comparison, source, styles) for source in comparison.rankings),
        *(stability.rounds(comparison, source, styles) for source in comparison.rankings),
        losses.figure(comparison, styles),
        latency.figure(comparison, styles),
        link_speed.figure(comparison),
        staleness.figure(comparison, styles),
    ]
    return [figure for figure in made if figure]
