"""Protocols: how many processes, warm-up steps and counted steps. One is sequential; the others are from publications."""

import re
from dataclasses import dataclass, replace

from steelyard.errors import UserError, nearest
from steelyard.statistics.decision import DecisionPlan
from steelyard_worker.protocol import Length, Schedule


@dataclass(frozen=True)
class Protocol:
    """How a run measures: `rounds_min` to `rounds_max` processes per framework, each following `schedule`.

    A sequential protocol stops when every pair of frameworks is decided; from round `drops_from` on, decided frameworks do not
    run any more. `aggregate` describes the reported time.
    """

    name: str
    summary: str
    schedule: Schedule
    rounds_min: int
    rounds_max: int
    sequential: bool
    aggregate: str = "mean step time of the counted blocks"
    drops_from: int = 0

    @property
    def times_training(self) -> bool:
        """Whether it reports the time of a whole training."""
        return self.name.startswith("total:")

    @property
    def searches_batch(self) -> bool:
        """Whether it looks for the largest batch that trains, and measures with that."""
        return self.name.startswith("largest-batch:")

    @property
    def text(self) -> str:
        """The summary with the rounds of this run. The recorded one stays as it was, so that earlier rounds can be reused."""
        return self.summary.replace(USUAL_ROUNDS, _in_words(self.rounds_min, self.rounds_max))

    def decision(self, delta: float) -> DecisionPlan:
        """Return the decision rule: one look after a fixed number of rounds (at least two), or a look after every round."""
        if not self.sequential:
            return DecisionPlan.single_look(max(2, self.rounds_max), delta)
        least = max(2, self.drops_from - 1)
        return DecisionPlan(delta=delta, least_rounds=least, most_rounds=max(least, self.rounds_max))


# The error of the sequential decision is divided over the looks up to this round; see DecisionPlan.
MOST_ROUNDS = 12
# Blocks of a process between which other contenders compute. Ratios of identical processes scattered by 4.4 % from round to round
# with eight, by 5.3 % with four, by 6.5 % with two, and by 13 % one process after the other. Six are between these.
TURNS = 6

USUAL_ROUNDS = "2 to 12 rounds"
KNOWN = {
    "sequential": "Interleaved rounds of new processes until the best one is told apart from every other "
    f"({USUAL_ROUNDS})",
    "sequential:pipeline": "The same on the framework's own input pipeline alone, without the cached batch",
    "fixed:WARMUP+COUNTED": "A fixed number of steps on a cached synthetic batch, e.g. fixed:10+200 (Dai et al. 2022)",
    "fixed:WARMUP+COUNTED:pipeline": "The same with the framework's own input pipeline, on real data",
    "second-epoch": "The second pass over the training data, for inputs of varying length (Dai et al. 2022)",
    "epochs:N-first": "N epochs without the first, e.g. epochs:20-first (Borealis AI 2018) or epochs:200-first (Tian)",
    "epochs:N": "N epochs with the first, e.g. epochs:10 (a student group's comparison on one and two devices)",
    "total:N": "A whole training of N epochs from the first step on, compilation included, e.g. total:20 (Xia and Zhou 2022)",
    "largest-batch:N": "The largest batch that trains N steps within the memory, found by bisection, e.g. largest-batch:3",
}
# The times that epochs:N, epochs:N-first and total:N report.
EPOCHS = {"epochs": "mean of epochs {first} to {last}", "total": "the whole training of {last} epochs"}


def protocol(name: str, rounds: str = "") -> Protocol:
    """Return a protocol by name; `rounds`, such as `5` or `3-8`, replaces its own. UserError: unknown name, impossible rounds."""
    found = _by_name(name)
    match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", rounds)
    if rounds and not match:
        raise UserError(f"--rounds must be a number or a range such as 3-8, not '{rounds}'.")
    low, high = (int(match[1]), int(match[2] or match[1])) if match else (found.rounds_min, found.rounds_max)
    if low < 1 or high < low:
        raise UserError(f"--rounds {low}-{high}: the first number must be at least 1 and no larger than the second.")
    if found.sequential and high > MOST_ROUNDS:
        raise UserError(
            f"--rounds: the sequential protocol allows at most {MOST_ROUNDS} rounds, not {high}, because its error is "
            "divided over the rounds up to there."
        )
    return replace(found, rounds_min=low, rounds_max=high, drops_from=low + 1 if rounds else found.drops_from)


def _in_words(low: int, high: int) -> str:
    """Return `1 round`, `5 rounds` or `3 to 12 rounds`."""
    return f"{low} {'round' if low == 1 else 'rounds'}" if low == high else f"{low} to {high} rounds"


def _by_name(name: str) -> Protocol:
    if name == "sequential":
        return Protocol(name, KNOWN[name], Schedule(turns=TURNS), 3, 12, sequential=True, drops_from=3)
    if name == "sequential:pipeline":
        summary = f"{KNOWN['sequential']}, on the framework's own input pipeline alone"
        return Protocol(name, summary, Schedule(("pipeline",), turns=TURNS), 3, 12, sequential=True, drops_from=3)
    if (match := re.fullmatch(r"fixed:(\d{1,9})\+(\d{1,9})(:pipeline)?", name)) and int(match[2]):
        warmup, counted = map(int, match.groups()[:2])
        source = "pipeline" if match[3] else "cached"
        schedule = Schedule((source,), Length("steps", warmup), Length("steps", counted))
        return Protocol(name, KNOWN[f"fixed:WARMUP+COUNTED{match[3] or ''}"], schedule, 1, 1, sequential=False)
    if (match := re.fullmatch(r"largest-batch:(\d{1,9})", name)) and int(match[1]):
        schedule = Schedule(("cached",), Length("steps", 0), Length("steps", int(match[1])))
        aggregate = "mean step time at the largest batch"
        return Protocol(name, KNOWN["largest-batch:N"], schedule, 1, 1, sequential=False, aggregate=aggregate)
    if name == "second-epoch":
        schedule = Schedule(("pipeline",), Length("epochs", 1), Length("epochs", 1))
        return Protocol(name, KNOWN[name], schedule, 1, 1, sequential=False, aggregate="the second epoch")
    if match := re.fullmatch(r"(epochs:([2-9]|[1-9]\d{1,5})-first|(epochs|total):([1-9]\d{0,5}))", name):
        return _epochs(name, match[3] or "epochs", int(match[2] or match[4]), warmup=1 if match[2] else 0)
    raise UserError(f"There is no protocol '{name}'.{nearest(name, list(KNOWN))}")


def _epochs(name: str, kind: str, epochs: int, warmup: int) -> Protocol:
    """Return a protocol of whole epochs, each followed by an evaluation that is not part of its time."""
    lengths = Length("epochs", warmup), Length("epochs", epochs - warmup)
    schedule = Schedule(("pipeline",), *lengths, evaluate_epochs=True)
    summary = KNOWN[f"{kind}:N-first" if warmup else f"{kind}:N"]
    aggregate = EPOCHS[kind].format(first=warmup + 1, last=epochs)
    return Protocol(name, summary, schedule, 1, 1, sequential=False, aggregate=aggregate)
