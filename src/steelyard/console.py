"""What a person sees while a run goes on: one interface, and its plainest form, one line per happening."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from steelyard.plan.run_plan import Variant
    from steelyard.results.trials import Trial
    from steelyard.statistics.decision import Ranking


class Screen(Protocol):
    """Happenings of a run, in order."""

    def say(self, sentence: str) -> None:
        """Tell one sentence."""

    def stage(self, title: str) -> None:
        """Begin a stage: environments, data, certificates, calibration, rounds, report."""

    def progress(self, label: str, done: float, total: float, note: str = "") -> None:
        """Show how far one thing of the stage has come; total 0: unknown. `note` says what it is at. Any thread."""

    def trial(self, number: int, variant: Variant) -> None:
        """A process starts."""

    def event(self, event: dict[str, Any]) -> None:
        """An event of the running process."""

    def finished(self, trial: Trial) -> None:
        """A process ended."""

    def ranking(self, group: str, ranking: Ranking, titles: dict[str, str]) -> None:
        """The state of a comparison after a round."""

    def close(self) -> None:
        """Leave the terminal as it was."""


class PlainScreen:
    """Lines on standard error, for logs and pipes."""

    def __init__(self) -> None:
        self._last: dict[str, str] = {}

    def say(self, sentence: str) -> None:
        """Print it."""
        print(sentence, file=sys.stderr, flush=True)

    def stage(self, title: str) -> None:
        """Print a heading."""
        self.say(f"== {title}")

    def progress(self, label: str, done: float, total: float, note: str = "") -> None:
        """Print a label when it is new, when its note changes, and when it ends."""
        state = note or ("done" if total and done >= total else "")
        if self._last.get(label) != state:
            self._last[label] = state
            self.say(f"   {label}{': ' if state else ''}{state}")

    def trial(self, number: int, variant: Variant) -> None:
        """Print which process starts."""
        self.say(f"   round {number}: {variant.group}, {variant.title}")

    def event(self, event: dict[str, Any]) -> None:
        """Too many to print."""

    def finished(self, trial: Trial) -> None:
        """Print what became of it, if it failed."""
        if trial.error:
            self.say(f"   failed ({trial.error[0]}): {trial.error[1]}")

    def ranking(self, group: str, ranking: Ranking, titles: dict[str, str]) -> None:
        """Print the comparison as it stands."""
        from steelyard.statistics.sentences import ranking_sentence

        self.say(f"   {group} after {ranking.rounds_run} rounds: {ranking_sentence(ranking, titles)}")

    def close(self) -> None:
        """Nothing to put back."""
