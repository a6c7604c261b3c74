"""The commands that a report recommends: continue a run, or start a similar one with more rounds."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from steelyard.files import paths
from steelyard.results.record import RunRecord

# Arguments of `steelyard run` whose values a new run sets itself, or that the record holds as absolute paths.
REPLACED = {
    "--rounds",
    "--minutes",
    "--runs",
    "--store",
    "--data",
    "--weights",
    "--workloads",
    "--frameworks",
    "--env",
    "--wait",
}
# Flags that only concern the output, or whether to measure at all.
LEFT_OUT = {"--json", "--plain", "--if-changed", "--no-wait"}
PLACE = ("--on", "--nodes")
PORT = "--port"


@dataclass(frozen=True)
class Further:
    """How a run can have more rounds. `resume`: the command that continues it.

    `again`: the command that starts a similar run, without the number of rounds; empty if the original command is unknown.
    `round_s`: seconds of one more round; `full_round_s`: seconds of a round of the whole run, all contenders; None if unknown.
    """

    resume: str
    again: str
    round_s: float | None = None
    full_round_s: float | None = None

    def with_rounds(self, rounds: int) -> str:
        """Return the command of a new run with this number of rounds; empty if the original command is unknown."""
        return f"{self.again} --rounds {rounds} --minutes 0" if self.again else ""

    def once_more(self, rounds: int) -> str:
        """Return the sentence that asks for a new run with this number of rounds."""
        return f"Run again: `{self.with_rounds(rounds)}`" if self.again else f"Run again with `--rounds {rounds}`."


def resume(known: RunRecord, folder: Path) -> str:
    """Return the command that continues a run until everything is decided."""
    where = _place(_typed(known)) if known.nodes else []
    return " ".join(["steelyard run --resume", paths.named(folder), *map(shlex.quote, where), "--minutes 0"])


def again(known: RunRecord, folder: Path) -> str:
    """Return the command that started a run, without rounds and time limit; empty if `steelyard run` did not start it.

    Folders are absolute, so that the command can be typed anywhere.
    """
    words, options = _typed(known), known.plan.options
    if words[:2] != ["steelyard", "run"]:
        return ""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        name, equals, _ = word.partition("=")
        if name in REPLACED:
            if not equals:
                next(rest, None)
        elif word not in LEFT_OUT:
            kept.append(word)
    if PORT in kept:  # the rest is made from its folder
        return shlex.join([*kept, *paths.runs_option(folder)])
    folders = [("--data", options.data)] if options.data else []
    folders += [("--weights", options.weights)] if options.weights else []
    folders += [("--workloads", each) for each in options.workload_folders]
    folders += [("--frameworks", each) for each in options.framework_folders]
    folders += [("--env", f"{name}={python}") for name, python in options.external.items()]
    return shlex.join([*kept, *(word for pair in folders for word in pair), *paths.runs_option(folder)])


def full_round_s(spans: Mapping[str, list[float]], first: Mapping[str, int]) -> float | None:
    """Return the seconds of one round of the whole run, the sum over its groups; None if a group has no time.

    `spans`: group -> seconds of its counted rounds. `first`: group -> the number of first rounds with all contenders.
    """
    means = [seconds[: first[group]] for group, seconds in spans.items()]
    return sum(sum(each) / len(each) for each in means) if means and all(means) else None


def _typed(known: RunRecord) -> list[str]:
    try:
        return shlex.split(known.command)
    except ValueError:  # no command that was typed
        return []


def _place(words: list[str]) -> list[str]:
    """Return the arguments that name the cluster on which a run measures."""
    found: list[str] = []
    for number, word in enumerate(words):
        if word in PLACE:
            found += words[number : number + 2]
        elif word.startswith(tuple(f"{name}=" for name in PLACE)):
            found.append(word)
    return found or ["--on", "ray"]
