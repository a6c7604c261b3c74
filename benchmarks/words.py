"""How often a measurement gets which word for a published ratio, and how often an untrue one, in simulated runs.

`python -m benchmarks.words` prints the table of docs/methods.md.
"""

from __future__ import annotations

from typing import get_args

from tests.statistics import simulated_words

from benchmarks.rows import Row
from steelyard.statistics.claims import Judgement

PUBLISHED = (1.05, 1.3, 2.0)
TRUE = (1.0, 1.05, 1.3, 2.0)
SCATTERS = (0.01, 0.05, 0.15)
ROUNDS = 12
COUNT = 2000
# The interval misses the true ratio in 5 % of all runs; twice the standard error of that share is 1 %.
LIMIT = 0.06


def measure() -> list[Row]:
    """Return the largest share of untrue words at each scatter."""
    return [_worst(scatter) for scatter in SCATTERS]


def _worst(scatter: float) -> Row:
    wrong = {(published, true): _wrong(published, true, scatter) for published in PUBLISHED for true in TRUE}
    (published, true), share = max(wrong.items(), key=lambda item: item[1])
    how = f"published {published}x, true {true}x; {COUNT:,} runs of {ROUNDS} rounds for each of {len(wrong)} pairs"
    return Row(f"untrue words at a scatter of {scatter:.0%}, share", share, LIMIT, "at most", how)


def _wrong(published: float, true: float, scatter: float) -> float:
    found = simulated_words.shares(published, true, scatter, ROUNDS, COUNT)
    return sum(share for word, share in found.items() if simulated_words.is_wrong(word, published, true))


def _print_table() -> None:
    words = get_args(Judgement)
    print("| published | true | scatter |", " | ".join(words), "| untrue |")
    print("|---:|---:|---:|", "---:|" * (len(words) + 1), sep="")
    for published in PUBLISHED:
        for true in TRUE:
            for scatter in SCATTERS:
                found = simulated_words.shares(published, true, scatter, ROUNDS, COUNT)
                cells = [f"{found.get(word, 0):.0%}" for word in words]
                print(f"| {published}x | {true}x | {scatter:.0%} |", " | ".join(cells), end=" ")
                print(f"| {_wrong(published, true, scatter):.1%} |")


if __name__ == "__main__":
    _print_table()
