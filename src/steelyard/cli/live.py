"""The live view of a run on a terminal: stage, progress, running process, and the comparisons so far."""

import time
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column, Table
from rich.text import Text

from steelyard.cli.time_left import TimeLeft
from steelyard.console import Screen
from steelyard.plan.run_plan import RunPlan, Variant
from steelyard.results.trials import Trial
from steelyard.statistics.answer import is_wide
from steelyard.statistics.decision import Ranking
from steelyard.statistics.sentences import NOT_ENOUGH
from steelyard.wording.task_words import fill
from steelyard_worker.case import TRAINING

# A low rate, so that the view does not disturb the measurement. The running time shows that the program is alive.
REDRAWS_PER_SECOND = 1


class LiveScreen(Screen):
    """Updates the last lines of the terminal; messages scroll above them. `plan`: that of a run with rounds."""

    def __init__(self, plan: RunPlan | None = None, console: Console | None = None) -> None:
        super().__init__()
        self._console = console or Console(stderr=True, highlight=False)
        self._plan = plan
        self._time_left = TimeLeft(plan) if plan else None
        self._live: Live | None = None
        self._stage_progress: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._trial_label, self._task, self._round = Text(""), TRAINING, 0
        self._running = Text("")
        self._on_nodes: dict[str, Text] = {}  # replaced, never modified, because another thread draws the view
        self._standings: dict[str, Table] = {}
        self._started_s = self._stage_started_s = time.monotonic()

    def say(self, sentence: str) -> None:
        self._console.print(escape(sentence))

    def stage(self, title: str) -> None:
        """Remove the output of the previous stage and start a new one."""
        self.close()
        self._stage_started_s = time.monotonic()
        elapsed = self._stage_started_s - self._started_s
        self._console.print(f"[bold]{escape(title)}[/] [dim]{elapsed:.0f} s[/]")
        self._running, self._tasks = Text(""), {}
        self._stage_progress = Progress(
            TextColumn("  {task.description}", table_column=_whole()),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[count]}", table_column=_whole()),
            TimeElapsedColumn(),
            console=self._console,
        )
        self._live = Live(
            get_renderable=self._body, console=self._console, refresh_per_second=REDRAWS_PER_SECOND, transient=True
        )
        self._live.start()

    def progress(self, label: str, done: float, total: float, note: str = "") -> None:
        """Show one bar per label."""
        if self._stage_progress is None:
            return
        if label not in self._tasks:
            self._tasks[label] = self._stage_progress.add_task(escape(label), total=total or None, count="")
        count = escape(note) if note else f"{done:,.0f} of {total:,.0f}" if total else ""
        self._stage_progress.update(self._tasks[label], completed=done, total=total or None, count=count)

    def planned(self, plan: RunPlan) -> None:
        self._plan, self._time_left = plan, TimeLeft(plan)

    def trial(self, number: int, variant: Variant, node: str = "") -> None:
        if self._time_left:
            self._time_left.started(variant, node)
        self._round = number
        self._label(variant)
        if node:
            self._on_nodes = {**self._on_nodes, node: Text(f"  {node}:").append_text(self._trial_label)}
        else:
            self._show("starting")

    def turn(self, variant: Variant) -> None:
        if self._time_left:
            self._time_left.goes_on(variant)
        self._label(variant)

    def event(self, event: dict[str, Any]) -> None:
        if event["event"] == "samples":
            step_ms = event["elapsed_ns"] / event["steps"] / 1e6
            self._show(fill(f"{event['input']}, {event['phase']}, {step_ms:.2f} ms per {{step}}", self._task))
        elif event["event"] == "phase":
            self._show(f"{event['name']} {event['elapsed_ns'] / 1e9:.1f} s")

    def finished(self, trial: Trial) -> None:
        node = trial.job.node
        if self._time_left:
            self._time_left.ended(node, trial.job.case.id)
        self._on_nodes = {name: each for name, each in self._on_nodes.items() if name != node}
        if trial.error:
            self.say(f"{trial.job.case.framework} on {trial.job.case.workload}: {trial.error[1]}")

    def ranking(self, group: str, ranking: Ranking, titles: dict[str, str]) -> None:
        if self._time_left:
            self._time_left.ranked(group, ranking)
        title = Text(f"{group}, {ranking.rounds_run} {'round' if ranking.rounds_run == 1 else 'rounds'}")
        table = Table(box=None, pad_edge=False, show_header=False, title=title, title_justify="left")
        table.add_column(overflow="fold")
        for key in ranking.order:
            undecided = "undecided" if key in ranking.still_undecided else ""
            table.add_row(Text(f"  {titles[key]}"), Text(_standing(ranking, key)), Text(undecided, "yellow"))
        self._standings[group] = table

    def close(self) -> None:
        if self._live:
            self._live.stop()
            self._live = None

    def _label(self, variant: Variant) -> None:
        label = Text(f"  round {self._round}{self._of_rounds(variant)}, {variant.group}: ")
        self._trial_label = label.append(variant.title, "bold")
        self._task = variant.case.task

    def _of_rounds(self, variant: Variant) -> str:
        """Return the number of rounds as text: ` of 5`, or ` of at most 12` if rounds end when everything is decided."""
        if not self._plan:
            return ""
        protocol = self._plan.group(variant.group).protocol
        return f" of {'at most ' if protocol.sequential else ''}{protocol.rounds_max}"

    def _show(self, phase: str) -> None:
        """Show the running process and its phase."""
        self._running = self._trial_label.copy().append(f" {phase}", "dim")

    def _body(self) -> Group:
        """Return the current contents. It is called for every redraw, so that the time advances even if nothing is reported."""
        parts: list[Any] = [self._stage_progress] if self._stage_progress and self._tasks else []
        left_s = None
        running = [each for _, each in sorted(self._on_nodes.items())] or [self._running]
        if any(each.plain for each in running):
            parts += [*running, *list(self._standings.values())]
            left_s = self._time_left.seconds() if self._time_left else None
        clock = f"  {in_words(time.monotonic() - self._stage_started_s)}"
        return Group(*parts, Text(clock + (f", about {in_words(left_s)} left" if left_s is not None else ""), "dim"))


def in_words(seconds: float) -> str:
    """Return `40 s`, or `2 min 05 s`."""
    return f"{seconds:.0f} s" if seconds < 59.5 else f"{round(seconds) // 60} min {round(seconds) % 60:02} s"


def _whole() -> Column:
    """Return a column that wraps long texts instead of cutting them."""
    return Column(overflow="fold")


def _standing(ranking: Ranking, key: str) -> str:
    if key == ranking.leader:
        return "fastest so far"
    verdict = ranking.between(key, ranking.leader) if ranking.leader else None
    if not verdict:
        return "not measured yet"
    if verdict.rounds < 2:
        return f"{verdict.ratio:.2f}x"
    span = NOT_ENOUGH if is_wide(verdict.low, verdict.high) else f"[{verdict.low:.2f}, {verdict.high:.2f}]"
    return f"{verdict.ratio:.2f}x {span}"
