"""Two runs of the same comparison, before and after a change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis import compare as two_runs
from steelyard.library.runs import Run, load
from steelyard.results.quantities import STEP_TIME

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.analysis.compare import Finding


def compare(
    before: Run | str | Path, after: Run | str | Path, quantity: str = STEP_TIME.name, anyway: bool = False
) -> list[Finding]:
    """Compare every contender that two runs have in common; one finding for each and each input.

    A finding has `ratio`, after over before, with `low` and `high`, and a `sentence`. UserError: the runs have no contender in
    common, or differ in what decides a number; with `anyway`, values are returned without a verdict then.
    """
    views = [(run if isinstance(run, Run) else load(run)).view(quantity) for run in (before, after)]
    earlier, later = views
    return two_runs.runs(earlier, later, anyway)
