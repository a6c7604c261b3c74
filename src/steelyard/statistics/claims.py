"""Published claims about a ratio of two speeds, or about a share, and whether a measurement agrees. Pure functions."""

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
"""The possible judgements. "compatible, not precise" and "open" mean that the measurement does not decide; the others are wrong
at most as often as the interval misses the true ratio, however large the noise."""

MEAN, MAXIMUM = "mean over batches", "maximum over batches"
"""Statistics over several ratios in documents, which are compared with the same statistics of the measured ratios."""

RELATIONS = ("", "<", "<=", ">", "about", "range", "order", "equal", "ambiguous", "not given", "missing")
"""How to read a published value: as an exact value, a bound, an approximation or a range; "order": only which side is better;
"equal": neither side is better, which holds within `EQUAL`."""

EQUAL = 1.02
"""A bound below this ratio, such as "nothing changes", is raised to it: verdicts ignore differences below 2 %, too."""

NEAR = 1.25
"""A published number is one run without an interval: a ratio is of the same size within this factor. It also has at least half
and at most twice of the difference, because 2 % faster and 20 % faster are not the same."""

NEAR_VALUE = 1.1
"""A share or count is of the same size within this factor."""

FOR_A_CLAIM: tuple[Judgement, ...] = ("same size", "same order", "compatible, not precise", "open")
"""The judgements that do not contradict a claim, the weakest last."""

OVERHEAD = "communication overhead"
"""The name in documents for the loss of speed by the exchange between devices, in % of the speed without it."""

WEAK_SCALING = "weak scaling"
"""The quantity of the documents' formula of an overhead: 1 - multi / single, where every device has the same share of work."""


@dataclass(frozen=True)
class Claim:
    """A claim about a ratio, which is above 1 if the first of two sides is better.

    Every ratio from `low` to `high` agrees with it. Without `low` only the order is claimed, without `high` there is no upper
    end. `ordered`: the first side is claimed to be better; otherwise only the size of the difference is claimed.
    """

    low: float | None
    high: float | None
    ordered: bool

    @property
    def is_reversed(self) -> bool:
        """Whether all ratios that agree are below 1, so that the second side is claimed to be better."""
        return self.high is not None and self.high < 1

    @property
    def better(self) -> int:
        """The side that is claimed to be better: 1 the first, -1 the second, 0 neither."""
        if not self.ordered or self.low == self.high == 1:
            return 0
        return -1 if self.high is not None and self.high <= 1 else 1

    def turned(self) -> Claim:
        """Return the claim with its sides exchanged."""
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
    """Return the claim of a published value about a ratio; None if it makes none that a ratio can be compared with.

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
    """Return the claim of a published value about the same value here, in its unit; None if it makes none."""
    if relation == "range":
        return Claim(low, high, ordered=False) if low is not None and high is not None else None
    if value is None or relation not in ("", "about", "<", "<=", ">"):
        return None
    return Claim(0.0 if relation.startswith("<") else value, None if relation == ">" else value, ordered=False)


def of_claim(words: Sequence[Judgement]) -> Judgement | None:
    """Return the judgement of a claim with several rows, such as one for every batch; None if its rows contradict each other.

    It is the weakest of their words: a claim that names no batch holds at all of them. Judgements for and against a claim
    contradict each other, and so do judgements against it and undecided ones.
    """
    found = set(words)
    if len(found) == 1 or found <= set(FOR_A_CLAIM):
        return max(found, key=FOR_A_CLAIM.index) if len(found) > 1 else found.pop()
    return "other size" if found <= {"other size", "opposite order"} else None


def judge_level(said: Claim, measured: Level) -> Judgement:
    """Return whether a measured value with its interval agrees with the published one (`NEAR_VALUE`). A bound has no margin."""
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
