"""The time of a run by stage, in seconds; kept in run.json and shown at the end."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

ENVIRONMENTS = "environments"
"""The time in which everything else waited for environments, which are made while inputs are prepared and certificates run."""
INPUTS = "data and weights"
CERTIFICATES = "certificates"
ROUNDS = "rounds"
PROCESSES = "processes"
"""The part of the rounds during which a process ran."""
PEAK = "peak check"
COMMUNICATION = "communication"
PROFILES = "profiles"
GRAPHS = "graphs"
SEARCH = "search"
TOTAL = "total"
"""The whole time. Its stages follow each other; the processes are a part of the rounds."""
STAGES = (ENVIRONMENTS, INPUTS, SEARCH, CERTIFICATES, ROUNDS, PEAK, COMMUNICATION, PROFILES, GRAPHS)


@dataclass
class Durations:
    """Elapsed seconds by stage; a stage may be entered more than once."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def of(self, stage: str) -> Iterator[None]:
        """Add the time of the block to a stage, even if the block raises an error."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.monotonic() - began

    def move(self, seconds: float, source: str, target: str) -> None:
        """Move a part of the time of one stage to another."""
        for stage, more in ((source, -seconds), (target, seconds)):
            self.seconds[stage] = self.seconds.get(stage, 0.0) + more

    def added_to(self, earlier: Mapping[str, float]) -> dict[str, float]:
        """Return the seconds of these and of earlier parts of a run."""
        return {stage: earlier.get(stage, 0.0) + self.seconds.get(stage, 0.0) for stage in {**earlier, **self.seconds}}


def sentence(seconds: Mapping[str, float]) -> str:
    """Return the stages with their times, such as `Time: 3 min 5 s (environments 4 s, rounds 3 min, 2 s of it idle).`"""
    parts = []
    for stage in STAGES:
        if stage in seconds:
            # On a cluster the processes run elsewhere, several at a time.
            idle = seconds[stage] - seconds[PROCESSES] if stage == ROUNDS and PROCESSES in seconds else 0.0
            parts.append(
                f"{stage} {in_words(seconds[stage])}" + (f", {in_words(idle)} of it idle" if idle >= 1 else "")
            )
    return f"Time: {in_words(seconds.get(TOTAL, 0.0))} ({', '.join(parts)})." if parts else ""


def in_words(seconds: float) -> str:
    """Return `40 s`, or `2 min 5 s`."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min" + (f" {rest} s" if rest else "") if minutes else f"{rest} s"
