"""What a document says of a ratio of two speeds, or of a share, and whether a measurement agrees with it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Literal

from steelyard.statistics.answer import is_wide

if TYPE_CHECKING:
    from steelyard.statistics.intervals import Level, Ratio

Judgement = Literal["confirmed", "same order", "different", "reversed", "open"]

RELATIONS = ("", "<", "<=", ">", "about", "range", "order", "ambiguous", "not given", "missing")
"""How a published value is to be read: as it stands, as a bound, roughly, as a range; "order": only who is better is said."""

EQUAL = 1.02
"""A bound below this ratio, such as that nothing changes, is held to it: less than 2 % is no difference in verdicts either."""

OVERHEAD = "communication overhead"
"""What documents call the loss of speed of several devices by their exchange, in % of the speed without it."""


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
    """
    if relation in ("not given", "missing") or speed_ratio(quantity, 1.0) is None:
        return None
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


def judge_level(said: Claim, measured: Level) -> Judgement:
    """Return whether a measured value with its interval agrees with a published one.

    Different: the interval has no value that the document allows. Confirmed: it has one, and is narrow enough to be of use or
    has no other. Everything else is open, such as a single process.
    """
    low, high = said.low or 0.0, inf if said.high is None else said.high
    if measured.high < low or measured.low > high:
        return "different"
    inside = low <= measured.low and measured.high <= high
    return "confirmed" if inside or not is_wide(measured.low, measured.high) else "open"


def judge(said: Claim, measured: Ratio) -> Judgement:
    """Return whether a measured ratio with its interval agrees with a claim; above 1, the first side is better.

    Confirmed: a ratio that the claim allows lies inside the interval, and the interval tells the claim from its opposite. Same
    order: only who is better agrees. Reversed: the interval lies on the other side of 1. Everything else is open, also an
    interval that is too wide to be of use.
    """
    high = inf if said.high is None else said.high
    if (
        said.low is not None
        and said.low <= measured.high
        and measured.low <= high
        and not is_wide(measured.low, measured.high)
    ):
        return "confirmed" if _tells(said.low, high, said.ordered, measured) else "open"
    if said.ordered and high > 1:
        if measured.low > 1:
            return "same order"
        if measured.high < 1:
            return "reversed"
    return "open"


def _tells(low: float, high: float, ordered: bool, measured: Ratio) -> bool:
    """Report whether an interval tells a claim from its opposite: the other side is better, or the difference is larger.

    The interval must be without 1 where the claim is. A bound allows equality. So the whole interval must be within it on both
    sides of 1, or be on one side of 1 where the document says which side is better.
    """
    without_one = measured.low > 1 or measured.high < 1
    if not low <= 1 <= high:
        return without_one
    bound = max(high, 1 / low, EQUAL)
    return (ordered and without_one) or (1 / bound <= measured.low and measured.high <= bound)
