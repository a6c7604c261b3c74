"""What a document says of a ratio of two speeds, or of a share, and whether a measurement agrees with it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, log
from typing import TYPE_CHECKING, Literal

from steelyard.statistics import scores
from steelyard.statistics.answer import is_wide

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.statistics.intervals import Level, Ratio

Judgement = Literal["same size", "same order", "compatible, not precise", "other size", "opposite order", "open"]
"""Whether a measurement agrees. "compatible, not precise" and "open" say that it does not tell; each of the others is wrong at
most as often as the interval misses the true ratio, however large the noise."""

MEAN, MAXIMUM = "mean over batches", "maximum over batches"
"""Statistics that documents state of several ratios, and that are held against the same of the measured ones."""

RELATIONS = ("", "<", "<=", ">", "about", "range", "order", "equal", "ambiguous", "not given", "missing")
"""How a published value is to be read: as it stands, as a bound, roughly, as a range; "order": only who is better is said;
"equal": that neither is, which holds within `EQUAL`."""

EQUAL = 1.02
"""A bound below this ratio, such as that nothing changes, is held to it: less than 2 % is no difference in verdicts either."""

NEAR = 1.25
"""A published number is one run without an interval: a ratio is of the same size within this factor. It also has at least half
and at most twice of the difference, because 2 % faster and 20 % faster are not the same."""

NEAR_VALUE = 1.1
"""A share or count is the same within this factor."""

FOR_A_CLAIM: tuple[Judgement, ...] = ("same size", "same order", "compatible, not precise", "open")
"""Words that are not against a claim, the weakest last."""

OVERHEAD = "communication overhead"
"""What documents call the loss of speed of several devices by their exchange, in % of the speed without it."""

WEAK_SCALING = "weak scaling"
"""The quantity of the documents' formula of an overhead: 1 - multi / single, where every device has the same share of work."""


@dataclass(frozen=True)
class Claim:
    """What is said of a ratio that is above 1 where the first of two sides is better.

    Every ratio from `low` to `high` agrees with it. Without `low` only the order is said, without `high` there is no upper
    end. `ordered`: the first is said to be better; otherwise only the size of the difference is said.
    """

    low: float | None
    high: float | None
    ordered: bool

    @property
    def is_reversed(self) -> bool:
        """Whether every ratio that agrees is below 1, so that it is the second side that is said to be better."""
        return self.high is not None and self.high < 1

    @property
    def better(self) -> int:
        """Which side is said to be better: 1 the first, -1 the second, 0 neither."""
        if not self.ordered or self.low == self.high == 1:
            return 0
        return -1 if self.high is not None and self.high <= 1 else 1

    def turned(self) -> Claim:
        """Return the same claim with the two sides exchanged."""
        low, high = (1 / end if end else None for end in (self.high, self.low))
        return Claim(low, high, self.ordered)


def speed_ratio(quantity: str, value: float) -> float | None:
    """Return the ratio of speeds that a published number means; None if it means something else, such as seconds.

    A gain of speed by x % is a ratio of 1 + x/100. A saving of time by x %, a loss of speed by x % on the other side, also by
    communication, or nodes of a graph of which x % are removed, is 1 / (1 - x/100). A difference in % is faster / slower - 1.
    """
    if quantity in ("ratio", "speed"):
        return value
    if quantity in ("faster by", "difference"):
        return 1 + value / 100
    if quantity in ("less time by", "performance loss", OVERHEAD, "nodes removed") and value < 100:
        return 1 / (1 - value / 100)
    return None


def claim(
    quantity: str,
    relation: str,
    ordered: bool,
    value: float | None,
    low: float | None = None,
    high: float | None = None,
) -> Claim | None:
    """Return what a published value says of a ratio; None if it says nothing that a ratio can be held against.

    `value`, or for a range `low` and `high`, are in the document's terms; `quantity` names them. A value that can be read in
    two ways keeps its order only. A difference whose direction is not said can be held against a ratio only if it is a bound.
    A score says who is better, or that neither is; a number without an interval says nothing of another training.
    """
    if quantity in scores.OF_DOCUMENTS:
        return {"order": Claim(None, None, ordered=True), "equal": Claim(1.0, 1.0, ordered=False)}.get(relation)
    if relation in ("not given", "missing") or speed_ratio(quantity, 1.0) is None:
        return None
    if relation == "equal":
        return Claim(1.0, 1.0, ordered=False)
    if relation in ("order", "ambiguous"):
        return Claim(None, None, ordered=True) if ordered else None
    if relation == "range":
        ends = [speed_ratio(quantity, each) for each in (low, high) if each is not None]
        return Claim(ends[0], ends[1], ordered) if len(ends) == 2 and None not in ends else None
    ratio = speed_ratio(quantity, value) if value is not None else None
    if ratio is None or ratio <= 0:
        return None
    if relation == ">":
        return Claim(ratio, None, ordered) if ordered else None
    if relation in ("<", "<="):
        return Claim(1.0 if ordered else 1 / ratio, ratio, ordered)
    return Claim(ratio, ratio, ordered) if ordered else None


def level(relation: str, value: float | None, low: float | None = None, high: float | None = None) -> Claim | None:
    """Return what a published value says of the same value here, in its own unit; None if it says nothing of it."""
    if relation == "range":
        return Claim(low, high, ordered=False) if low is not None and high is not None else None
    if value is None or relation not in ("", "about", "<", "<=", ">"):
        return None
    return Claim(0.0 if relation.startswith("<") else value, None if relation == ">" else value, ordered=False)


def of_claim(words: Sequence[Judgement]) -> Judgement | None:
    """Return the word for a claim that has several rows, such as one for each batch; None if their words contradict each other.

    It is the weakest of their words: a claim that names no batch holds at all of them. Words for and against it have none in
    common, and neither have words against it and those that do not tell.
    """
    found = set(words)
    if len(found) == 1 or found <= set(FOR_A_CLAIM):
        return max(found, key=FOR_A_CLAIM.index) if len(found) > 1 else found.pop()
    return "other size" if found <= {"other size", "opposite order"} else None


def judge_level(said: Claim, measured: Level) -> Judgement:
    """Return whether a measured value with its interval is the published one (`NEAR_VALUE`); a bound is taken as it stands."""
    low, high = said.low or 0.0, inf if said.high is None else said.high
    if low == high:
        low, high = low / NEAR_VALUE, high * NEAR_VALUE
    if low <= measured.low and measured.high <= high:
        return "same size"
    if measured.high < low or measured.low > high:
        return "other size"
    return "open" if is_wide(measured.low, measured.high) else "compatible, not precise"


def judge(said: Claim, measured: Ratio) -> Judgement:
    """Return whether a measured ratio with its interval agrees with a claim; above 1, the first side is better.

    Same size: every ratio in the interval counts as the published one (`near`). Same order, opposite order: the whole interval is
    on one side of 1, and the document says which side is better. Other size: no ratio in it counts as the published one.
    Compatible, not precise: some do, and some do not. Open: the interval is too wide to be of use, or only an order was said
    and both are possible.
    """
    ends, side = near(said), said.better
    if ends and ends[0] <= measured.low and measured.high <= ends[1]:
        return "same size"
    if side and (measured.low > 1 or measured.high < 1):
        return "same order" if (measured.low > 1) == (side > 0) else "opposite order"
    if not ends or is_wide(measured.low, measured.high):
        return "open"
    outside = measured.high < ends[0] or measured.low > ends[1]
    return "other size" if outside else "compatible, not precise"


def near(said: Claim) -> tuple[float, float] | None:
    """Return the smallest and the largest ratio that count as the published one; None if the claim has no size.

    A single number has a margin (`NEAR`); a range and a bound are taken as they stand. A bound allows equality, and as large a
    difference the other way if the document does not say which side is better.
    """
    if said.low is None:
        return None
    high = inf if said.high is None else said.high
    if said.low == high:
        difference = log(high)
        if abs(difference) < log(EQUAL):
            return 1 / EQUAL, EQUAL
        least, most = sorted((difference / 2, difference * 2))
        return exp(max(least, difference - log(NEAR))), exp(min(most, difference + log(NEAR)))
    if not said.low <= 1 <= high:
        return said.low, high
    if said.ordered:
        return min(said.low, 1 / EQUAL), max(high, EQUAL)
    bound = max(high, 1 / said.low, EQUAL)
    return 1 / bound, bound
