"""What the processes of a contender reported: warnings of workers with their causes, and memory that libraries take."""

from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from steelyard.analysis.model import Comparison, Contender
from steelyard.results.trials import Trial
from steelyard.statistics.sentences import listed
from steelyard_worker.protocol import NOT_SCORED

COMPILED = "compiled-while-counted"
SENTENCES = {
    "no-steady-state": "The process did not reach a steady state within the limit of the warm-up.",
    "cores-shared": "Its parts have more threads together than there are cores, so they wait for each other.",
    "left-processes": "Its process left other processes behind. They were ended, so that they do not compute beside others.",
    NOT_SCORED: "The test metric could not be computed:",
    COMPILED: "The framework compiled or traced something in counted blocks.",
}
LENGTHS = (
    " Every batch is as long as its longest sample, and the framework compiles for each length that it has not seen."
)
REMEDIES = {
    "multiple": "round lengths up (--set multiple={})",
    "buckets": "draw batches of like length (--set buckets={})",
}
# Values with which fewer lengths remain than with the present ones.
LEAST = {"multiple": 32, "buckets": 4}
MOSTLY = 0.9
"""Where importing takes this share of the peak memory, a comparison shows the libraries and not the network."""


class Reported(NamedTuple):
    """A warning of a contender's workers. `advice`: empty where there is no particular one."""

    name: str
    sentence: str
    advice: str = ""


def warnings(contender: Contender) -> Iterator[Reported]:
    """Yield what the workers of a contender reported, each kind once."""
    reasons = {warning["name"]: warning.get("reason", "") for trial in contender.trials for warning in trial.warnings}
    for name, reason in sorted(reasons.items()):
        sentence = SENTENCES.get(name, f"The worker reported the warning '{name}'.") + (f" {reason}." if reason else "")
        if name == COMPILED and _by_lengths(contender):
            yield Reported(name, sentence + LENGTHS, _remedy(contender))
        else:
            yield Reported(name, sentence)


def _by_lengths(contender: Contender) -> bool:
    """Return whether batches have lengths of their own. In whole epochs, only compilations for known shapes are reported."""
    return contender.case.cuts_batches and not any(trial.job.schedule.epochs for trial in contender.trials)


def _remedy(contender: Contender) -> str:
    sizes = contender.case.sizes
    ways = [text.format(max(LEAST[name], 2 * sizes[name])) for name, text in REMEDIES.items() if name in sizes]
    return f"To have fewer lengths, {listed(ways, 'or')}." if ways else ""


def memory_of_libraries(comparison: Comparison) -> str:
    """Return a sentence on the contenders whose peak memory is nearly all there once their libraries are imported."""
    shares = {each.title: share for each in comparison.contenders if (share := _imported_share(each.trials)) >= MOSTLY}
    if not shares:
        return ""
    return (
        f"Importing the libraries takes {100 * min(shares.values()):.0f} % or more of the peak memory of "
        f"{listed(list(shares))}: that figure says little about this network."
    )


def _imported_share(trials: Sequence[Trial]) -> float:
    """Return the share of the peak memory that a process has once it has imported its framework; 0 where it is not known."""
    shares = [
        imported / trial.peak_resident_bytes
        for trial in trials
        if trial.peak_resident_bytes and trial.peak_device_bytes is None and (imported := _imported(trial))
    ]
    return median(shares) if shares else 0.0


def _imported(trial: Trial) -> int:
    """Return the peak of the resident memory until the framework was imported, bytes; 0 where it is not known."""
    return (trial.memory["import"].resident_bytes or 0) if "import" in trial.memory else 0
