"""Whether the figures in README and docs are those that the code gives now.

A cheap claim is computed, as the whole sentence. An expensive one (`Dear`) names the command that computes it, which takes
minutes or hours; here only the presence of the sentence and of the command is checked. `python -m benchmarks claims` prints each.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import claimed_figures as figures
from benchmarks.rows import Row

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[1]
METHODS, INDEX, README = "docs/methods.md", "docs/index.md", "README.md"
ORDINALS = {5: "fifth", 7: "seventh"}
NAMED = 60
"""Characters of a sentence that name it in the table."""


@dataclass(frozen=True)
class Cheap:
    """A sentence with the figures as they are computed now."""

    file: str
    sentence: Callable[[], str]


@dataclass(frozen=True)
class Dear:
    """A sentence, and the command that computes its figures."""

    file: str
    sentence: str
    command: str


def text_of(file: str) -> str:
    """Return the text of a file with single spaces."""
    return " ".join((ROOT / file).read_text(encoding="utf-8").split())


def measure() -> list[Row]:
    """Return a row for each claim: 0 where the text agrees, 1 where it does not."""
    return [*map(_cheap_row, CHEAP), *map(_dear_row, DEAR)]


def agrees(claim: Cheap | Dear, text: str) -> bool:
    """Return whether a text has the sentence of a claim; an expensive one also needs its command."""
    if isinstance(claim, Cheap):
        return claim.sentence() in text
    return claim.sentence in text and exists(claim.command)


def exists(command: str) -> bool:
    """Return whether a command is a benchmark, or a test of this repository."""
    name = command.split()[-1]
    if command.startswith("pytest "):
        return (ROOT / name).is_file()
    words = command.removeprefix("python -m benchmarks").lstrip(".").split()
    return (ROOT / "benchmarks" / f"{words[0]}.py").is_file()


def _cheap_row(claim: Cheap) -> Row:
    sentence, agree = claim.sentence(), agrees(claim, text_of(claim.file))
    detail = "computed now: the same" if agree else f"the text does not say, as computed now: {sentence}"
    return Row(f"{claim.file}: {_named(sentence)}", float(not agree), 0.0, "at most", detail)


def _dear_row(claim: Dear) -> Row:
    agree = agrees(claim, text_of(claim.file))
    detail = f"{'not computed here' if agree else 'the sentence or its command is gone'}: {claim.command}"
    return Row(f"{claim.file}: {_named(claim.sentence)}", float(not agree), 0.0, "at most", detail)


def _named(sentence: str) -> str:
    return sentence if len(sentence) <= NAMED else f"{sentence[:NAMED]} ..."


def _of_percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f} %"


def _by_steps() -> str:
    half, one = (_of_percent(figures.differs_by_steps(spread)) for spread in (0.005, 0.01))
    return f"between two *equal* frameworks in {half} of cases; with a spread of 1 % between processes, in {one}."


def _looks() -> str:
    return f"miss the truth at some look in {_of_percent(figures.missed_by_looks())} of simulated comparisons of two."


def _variances() -> str:
    first, last = ("{}/{}".format(*figures.least_variance(rounds)) for rounds in (3, 12))
    return f"`s^2` is at least {first} of `s_own^2` at round 3, and {last} at round 12."


def _planned() -> str:
    narrower, wider = figures.widths_of_planned()
    return (
        f"intervals of planned pairs are {narrower:.1f} times narrower on the logarithmic scale than if all pairs had the same "
        f"part, and those of the others {wider:.2f} times wider"
    )


def _found() -> str:
    five, two = figures.found(5, 3), figures.found(2, 4)
    return (
        f"A true difference of 5 % at a scatter of 0.8 % is found within three rounds in {_of_percent(five)} of comparisons of "
        f"five contenders, and within four rounds in {_of_percent(two)} of comparisons of two."
    )


def _equal() -> str:
    two, five = figures.rounds_of_equal(2), figures.rounds_of_equal(5)
    return f"Equal contenders are called equal after {two:.1f} rounds on average (two) or {five:.1f} (five)."


def _recorded(place: int, of: str) -> Callable[[], str]:
    return lambda: f"{of}, ratios scatter by {_of_percent(figures.recorded_scatters()[place])}, labels permuted"


def _chance() -> str:
    three, four = figures.agree_by_chance(3), figures.agree_by_chance(4)
    return f"For two contenders and three or four rounds that is {100 * three:.0f} or {_of_percent(four, 1)}."


def _own_scatter() -> str:
    five, twelve = (ORDINALS[figures.own_scatter_from(contenders)] for contenders in (5, 12))
    return f"the {five} for five contenders, the {twelve} for twelve."


def _noise_ratio() -> str:
    return f"(`benchmarks/recorded_blocks.json`) the ratio was {figures.noise_ratio():.1f}"


def _luck() -> str:
    return f"the fastest of a single try looks {_of_percent(figures.luck_of_the_best())} faster than it is"


def _memory() -> str:
    return f"10 % more time are made good by {_of_percent(figures.less_memory_for(0.1))} less memory"


def _waiting() -> str:
    found = figures.pooled_waits(text_of(METHODS))
    return f"Pooled they are {found.ratio:.3f} ± {found.error:.3f}"


CHEAP = (
    Cheap(METHODS, _by_steps),
    Cheap(METHODS, _looks),
    Cheap(METHODS, _variances),
    Cheap(METHODS, _planned),
    Cheap(METHODS, _found),
    Cheap(METHODS, _equal),
    Cheap(METHODS, _recorded(0, "recorded on a shared machine (Intel Xeon)")),
    Cheap(METHODS, _recorded(1, "recorded on another (AMD EPYC)")),
    Cheap(METHODS, _recorded(2, "recorded there beside a program that computes in bursts")),
    Cheap(METHODS, _chance),
    Cheap(METHODS, _own_scatter),
    Cheap(METHODS, _noise_ratio),
    Cheap(METHODS, _luck),
    Cheap(METHODS, _memory),
    Cheap(METHODS, _waiting),
)

SIMULATED, BENCHMARKS = "python -m benchmarks.decisions --families 10000", "python -m benchmarks "
DEAR = (
    Dear(
        INDEX,
        "Ratios of identical processes scattered by 4.4 % from round to round, and by 12.8 %",
        f"{BENCHMARKS}turns",
    ),
    Dear(README, "The first run takes up to ten minutes on two idle cores.", f"{BENCHMARKS}first_look"),
    Dear(INDEX, "Simulated, any difference of a table is wrong in at most 3.6 %", SIMULATED),
    Dear(METHODS, "| normal, scatter of ratios 0.24 to 8 % | 2.7 % | 2.0 % |", SIMULATED),
    Dear(METHODS, "| noise | wrongly different | wrongly equal | any wrong word |", "python -m benchmarks.scopes"),
    Dear(
        METHODS,
        "| machine | stalls in | rule | bias of the ratio | rounds repeated |",
        "python -m benchmarks.standstill",
    ),
    Dear(METHODS, "None of the conditions reduces the scatter by a factor of 1.5", "python -m benchmarks.processes"),
    Dear(METHODS, "| `resnet18:digits` | 0.951 ± 0.020 |", f"{BENCHMARKS}waits"),
    Dear(METHODS, "of five rounds they miss the truth in 5 % of cases", "pytest tests/statistics/test_break_even.py"),
    Dear("docs/published.md", "Simulated with 12 rounds, `python -m benchmarks.words`", "python -m benchmarks.words"),
    Dear("docs/nightly.md", "| a creep of 0.5 % a week found after 12 weeks | 92 % |", f"{BENCHMARKS}histories"),
    Dear("docs/cluster.md", "Three nodes took 1.01 times a third of the time on one machine", f"{BENCHMARKS}cluster"),
    Dear(
        "docs/cluster.md",
        "a step of PyTorch for ResNet-18 took 1.0145 [1.0075, 1.0215] times as long",
        f"{BENCHMARKS}daemons",
    ),
)
