"""The live view of a run on a terminal: stage, progress, running process, and the comparisons so far."""

import time
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from steelyard.console import Screen
from steelyard.plan.run_plan import Variant
from steelyard.results.trials import Trial
from steelyard.statistics.decision import Ranking

# A low rate, so that the view does not disturb the measurement.
REDRAWS_PER_SECOND = 2


class LiveScreen(Screen):
    """Updates the last lines of the terminal; messages scroll above them."""

    def __init__(self) -> None:
        super().__init__()
        self._console = Console(stderr=True, highlight=False)
        self._live: Live | None = None
        self._stage_progress: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._trial_label = ""
        self._running = Text("")
        self._standings: dict[str, Table] = {}
        self._started_s = time.monotonic()

    def say(self, sentence: str) -> None:
        self._console.print(escape(sentence))

    def stage(self, title: str) -> None:
        """Remove the output of the previous stage and start a new one."""
        self.close()
        elapsed = time.monotonic() - self._started_s
        self._console.print(f"[bold]{escape(title)}[/] [dim]{elapsed:.0f} s[/]")
        self._running, self._tasks = Text(""), {}
        self._stage_progress = Progress(
            TextColumn("  {task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[count]}"), TimeElapsedColumn(),
            console=self._console,
        )  # fmt: skip
        self._live = Live(self._body(), console=self._console, refresh_per_second=REDRAWS_PER_SECOND, transient=True)
        self._live.start()

    def progress(self, label: str, done: float, total: float, note: str = "") -> None:
        """Show one bar per label."""
        if self._stage_progress is None:
            return
        if label not in self._tasks:
            self._tasks[label] = self._stage_progress.add_task(escape(label), total=total or None, count="")
        count = escape(note) if note else f"{done:,.0f} of {total:,.0f}" if total else ""
        self._stage_progress.update(self._tasks[label], completed=done, total=total or None, count=count)
        self._redraw()

    def trial(self, number: int, variant: Variant) -> None:
        self._trial_label = f"  round {number}, {variant.group}: [bold]{escape(variant.title)}[/]"
        self._show("starting")

    def event(self, event: dict[str, Any]) -> None:
        if event["event"] == "samples":
            step_ms = event["elapsed_ns"] / event["steps"] / 1e6
            self._show(f"{event['input']}, {event['phase']}, {step_ms:.2f} ms per step")
        elif event["event"] == "phase":
            self._show(f"{event['name']} {event['elapsed_ns'] / 1e9:.1f} s")

    def finished(self, trial: Trial) -> None:
        if trial.error:
            self.say(f"{trial.job.case.framework} on {trial.job.case.workload}: {trial.error[1]}")

    def ranking(self, group: str, ranking: Ranking, titles: dict[str, str]) -> None:
        title = f"{group}, {ranking.rounds_run} {'round' if ranking.rounds_run == 1 else 'rounds'}"
        table = Table(box=None, pad_edge=False, show_header=False, title=title, title_justify="left")
        for key in ranking.order:
            undecided = "[yellow]undecided[/]" if key in ranking.still_undecided else ""
            table.add_row("  " + titles[key], _standing(ranking, key), undecided)
        self._standings[group] = table
        self._redraw()

    def close(self) -> None:
        if self._live:
            self._live.stop()
            self._live = None

    def _show(self, phase: str) -> None:
        """Show the running process and its phase."""
        self._running = Text.from_markup(f"{self._trial_label} [dim]{phase}[/]")
        self._redraw()

    def _body(self) -> Group:
        parts: list[Any] = [self._stage_progress] if self._stage_progress and self._tasks else []
        if self._running.plain:
            parts += [self._running, *self._standings.values()]
        return Group(*parts)

    def _redraw(self) -> None:
        if self._live:
            self._live.update(self._body())


def _standing(ranking: Ranking, key: str) -> str:
    if key == ranking.leader:
        return "fastest so far"
    verdict = ranking.between(key, ranking.leader) if ranking.leader else None
    if not verdict:
        return "not measured yet"
    if verdict.rounds < 2:
        return f"{verdict.ratio:.2f}x"
    return f"{verdict.ratio:.2f}x [{verdict.low:.2f}, {verdict.high:.2f}]"
