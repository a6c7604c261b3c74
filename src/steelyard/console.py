"""Progress output of a run: the receiver of its events, here with one line for each."""

import sys
import time
from threading import Event, Thread
from typing import Any

from steelyard.plan.run_plan import RunPlan, Variant
from steelyard.results.durations import in_words
from steelyard.results.trials import Trial
from steelyard.statistics.decision import Ranking

SILENCE_S = 30.0
"""After so many seconds without a line, a line says that the run goes on."""


class Screen:
    """Receives the events of a run in order, and prints lines on standard error, for logs and pipes."""

    def __init__(self) -> None:
        self._last: dict[str, str] = {}
        self._counts: dict[
            str, tuple[float, float]
        ] = {}  # of tasks of this stage that are not done: how many parts are, of how many
        self._said_s = time.monotonic()
        self._doing = "running"
        self._closed = Event()
        self._watch: Thread | None = None

    def say(self, sentence: str) -> None:
        """Show a message."""
        self._said_s = time.monotonic()
        sys.stderr.write(f"{sentence}\n")  # one write, so that lines of two threads do not mix
        sys.stderr.flush()

    def stage(self, title: str) -> None:
        """Start a stage: environments, data, certificates, rounds, report."""
        self._doing, self._counts = "running", {}
        self.say(f"== {title}")
        if not self._watch:
            self._watch = Thread(target=self._end_silences, daemon=True)
            self._watch.start()

    def waiting(self, run: str) -> None:
        """Show that this command waits for another run on this machine, until the next stage; `run`: its name, if known."""
        self.stage(f"Waiting for {f'run {run}' if run else 'another run'}")
        self._doing = "waiting"

    def progress(self, label: str, done: float, total: float, note: str = "") -> None:
        """Show the progress of one task of the stage; total 0: unknown. `note`: its present step. Called from any thread.

        A line is printed when a label first appears, when its note changes, and when it is done.
        """
        if total and done < total:
            self._counts[label] = done, total
        else:
            self._counts.pop(label, None)
        state = note or ("done" if total and done >= total else "")
        if self._last.get(label) != state:
            self._last[label] = state
            self.say(f"   {label}{': ' if state else ''}{state}")

    def planned(self, plan: RunPlan) -> None:
        """Take note of another plan: a search has chosen what the rounds measure."""

    def trial(self, number: int, variant: Variant, node: str = "") -> None:
        """Show that a process starts; `number`: the round, `node`: where, on a cluster."""
        self.say(f"   round {number}: {variant.group}, {variant.title}{f', on {node}' if node else ''}")

    def turn(self, variant: Variant) -> None:
        """Show that a process continues that has waited for its turn. There are too many turns for lines."""

    def event(self, event: dict[str, Any]) -> None:
        """Show an event of the running process. There are too many for lines."""

    def finished(self, trial: Trial) -> None:
        """Show the error of a process that failed."""
        if trial.error:
            self.say(f"   failed ({trial.error[0]}): {trial.error[1]}")

    def ranking(self, group: str, ranking: Ranking, titles: dict[str, str]) -> None:
        """Show the state of a comparison after a round, unless every process failed.

        After the only round of a comparison, open verdicts are not mentioned, because one round gives none.
        """
        from steelyard.statistics.sentences import ranking_sentence

        if ranking.plan.most_rounds < 2:
            self.say(f"   {group}: its only round is done.")
            return
        rounds = "1 round" if ranking.rounds_run == 1 else f"{ranking.rounds_run} rounds"
        if known := ranking_sentence(ranking, titles):
            self.say(f"   {group} after {rounds}: {known}")

    def close(self) -> None:
        """End the output, and restore the terminal if it was changed."""
        self._closed.set()

    def _end_silences(self) -> None:
        """Print a line whenever there was none for long, until the screen is closed. It sleeps in between."""
        began_s = self._said_s
        while not self._closed.wait(max(0.0, self._said_s + SILENCE_S - time.monotonic())):
            if time.monotonic() >= self._said_s + SILENCE_S:
                self._said_s = time.monotonic()  # also where `say` is replaced, or this would be said without end
                counts = [
                    f"; {label}, {done:,.0f} of {total:,.0f}" for label, (done, total) in list(self._counts.items())
                ]
                since = f"{in_words(time.monotonic() - began_s)} since the start"
                self.say(f"   ... still {self._doing}, {since}{''.join(counts)}")
