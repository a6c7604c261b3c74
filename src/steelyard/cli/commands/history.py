"""`steelyard history [STUDY]`: results over time, their changes, and a check for a nightly job."""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from steelyard.analysis.history import ERROR, History, Line, history, slower
from steelyard.cli.commands import selection
from steelyard.errors import UserError, notice
from steelyard.results import addresses, merging, run_folders
from steelyard.results.indexing import FEW
from steelyard.results.points import Point, RunFacts
from steelyard.results.shared import Shared
from steelyard.results.store import Store
from steelyard.statistics.intervals import Ratio
from steelyard.statistics.shifts import LOOKS


def execute(arguments: argparse.Namespace) -> int:
    """Print lines and changes; the path of the page is the last line. The exit code is 1 if a line became too slow."""
    root = selection.runs_of(arguments)
    found = History((), {})
    if stored := _stored(root, arguments.store):
        found = history(*stored, arguments.study, arguments.since, arguments.accept)
    if not found.lines:
        raise UserError(
            f"No run in {_where(root, arguments.store)} has a result for a history. Start with: steelyard run"
        )
    slow = [] if arguments.fail_if_slower is None else slower(found, arguments.fail_if_slower)
    if arguments.json:
        selection.print_json([_as_dict(line, len(found.tested)) for line in found.lines])
    else:
        _show(found)
    for sentence in slow:
        notice(sentence)
    if not arguments.json:
        print(_written(found, root, arguments))
    return 1 if slow else 0


def _stored(root: Path, url: str | None) -> tuple[list[RunFacts], list[Point]] | None:
    """Return the runs of a shared store or of a folder; None if there are none."""
    if url:
        with Shared(url) as shared:
            return shared.history()
    if not run_folders.names(root):
        return None
    with _progress() as progress, closing(Store(root, progress=progress)) as store:
        return store.history()


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None] | None]:
    """Yield a function that shows on a terminal how many runs have been read; None where messages do not go to one."""
    if not sys.stderr.isatty():
        yield None
        return
    from steelyard.cli.live import LiveScreen

    with closing(LiveScreen()) as screen:

        def show(done: int, total: int) -> None:
            if total > FEW:
                if not done:
                    screen.stage(f"Reading {total:,} runs")
                screen.progress("runs", done, total)

        yield show


def _where(root: Path, url: str | None) -> str:
    return addresses.shown(url) if url else str(root)


def _show(found: History) -> None:
    from steelyard.report.sections import histories

    selection.print_blocks(histories.lines(found))


def _written(found: History, root: Path, arguments: argparse.Namespace) -> Path:
    from steelyard.report import small_page
    from steelyard.report.sections import histories

    page = histories.page(found)
    if arguments.output:
        return small_page.write(page, Path(arguments.output).expanduser().absolute())
    merging.make(root)  # with a shared store there may be no run here yet
    return small_page.write(page, root / (f"history-{found.study}.html" if found.study else "history.html"))


def _as_dict(line: Line, tested: int) -> dict[str, Any]:
    newest, known, creep = line.newest, line.reference, line.creep
    return {
        "group": newest.group,
        "contender": newest.variant,
        "input": newest.input,
        "machine": line.runs[-1].machine,
        "method": line.runs[-1].method,
        "framework": newest.framework,
        "runs": [
            {
                "run": run.name,
                "created": run.created,
                "version": point.version,
                "step_ns": point.step_ns,
                "processes_ns": point.processes_ns,
            }
            for run, point in zip(line.runs, line.points, strict=True)
        ],
        "changes": [
            {
                "before": each.before.name,
                "after": each.after.name,
                **_ratio(each.ratio),
                "moved": each.moved,
                "sentence": each.sentence,
            }
            for each in line.changes
        ],
        "creep": {
            "since": creep.since.name,
            "weekly": _ratio(creep.weekly),
            "total": _ratio(creep.total),
            "moved": creep.moved,
            "sentence": creep.sentence,
        }
        if creep
        else None,
        "newest_over_reference": {
            **_ratio(known.ratio),
            "first": known.first.name,
            "last": known.last.name,
            "runs": known.runs,
        }
        if known
        else None,
        "false_alarms": {"at_most": ERROR, "looks": LOOKS, "lines": tested},
    }


def _ratio(found: Ratio) -> dict[str, float]:
    return {"ratio": found.value, "low": found.low, "high": found.high}
