"""Start a run from a program, exactly as the command line does."""

from __future__ import annotations

import math
from contextlib import closing
from typing import TYPE_CHECKING, Any

from steelyard.cli import keywords
from steelyard.cli.commands import selection
from steelyard.library.runs import Run

if TYPE_CHECKING:
    from pathlib import Path


def run(study: str = "", *, runs: str | Path | None = None, wait_minutes: float | None = None, **options: Any) -> Run:
    """Measure, and return the run. The frameworks compute in processes of their own, as with `steelyard run`.

    `options`: the fields of `steelyard.plan.options.Options`, such as `frameworks=["pytorch", "jax"]`, `workloads`, `minutes`,
    `seeds`; a single value stands for a list of one. `port="shop"` checks and times both models of a port instead. `runs`: the
    folder that holds the runs. `wait_minutes`: how long to wait for other commands on this machine (default: until it is free).
    Progress appears on standard error.

    UserError: an option does not exist or cannot have this value, or nothing can be measured. KeyboardInterrupt: the finished
    processes stay, and `steelyard run --resume` continues the run.
    """
    from steelyard import feasibility, stages

    given = {"study": study} if study else {}
    argv, asked = keywords.read("run", given | options)
    asked.plain, asked.runs = False, str(runs) if runs else None
    chosen, checked = selection.options_of(asked), None
    if asked.port:
        chosen, checked = selection.of_port(asked, chosen)
    plan, _ = feasibility.planned(chosen)
    selection.check_cache()
    limit_s = math.inf if wait_minutes is None else 60 * wait_minutes
    with (
        selection.begun(plan, selection.runs_of(asked), plan.study.name, argv) as folder,
        closing(selection.screen_of(asked, plan)) as screen,
    ):
        selection.keep(checked, folder)
        stages.run(plan, folder, screen, limit_s=limit_s)
    return Run(folder)
