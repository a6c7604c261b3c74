"""Trade-offs of two goals: the contenders that no other beats in both."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any

from steelyard.analysis import goals
from steelyard.analysis.goals import NONE
from steelyard.statistics import choice
from steelyard.statistics.decision import decide
from steelyard.statistics.sentences import listed

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard.analysis.model import Comparison, Contender

START = "time to start"


@dataclass(frozen=True)
class Side:
    """One of the two quantities: its name in running text, its unit, and its values by case id and round."""

    thing: str
    unit: str
    values: dict[str, dict[int, float]]

    def mean(self, key: str) -> float:
        """Return the geometric mean of a case over its rounds."""
        return geometric_mean(self.values[key].values())


@dataclass(frozen=True)
class TradeOff:
    """Two goals, the first of which is `across` and the second `up` in a plot.

    `able`: the contenders that have both quantities; `best`: those that no other is shown to beat, sorted by the first goal;
    `sentence` names them.
    """

    goals: tuple[str, str]
    across: Side
    up: Side
    able: list[Contender]
    best: list[Contender]
    sentence: str


def trade_offs(comparison: Comparison, able: list[Contender]) -> list[TradeOff]:
    """Return speed against memory, start and energy. Empty after a single round; unrecorded quantities are left out.

    `able`: the contenders that may be in a verdict.
    """
    if comparison.rankings[comparison.primary].rounds_run < 2:
        return []
    speed, memory, energy = (goals.costs(goal, comparison, able, NONE) for goal in ("speed", "memory", "energy"))
    step = Side(speed.thing, "ns", speed.values)
    against = {
        "memory": Side(memory.thing, "bytes", memory.values),
        "start": Side(START, "ns", goals.starts(able)),
        "energy": Side(energy.thing, "J", energy.values),
    }
    made = [_trade_off(comparison, able, ("speed", name), step, side) for name, side in against.items()]
    return [each for each in made if each]


def _trade_off(
    comparison: Comparison, able: list[Contender], names: tuple[str, str], across: Side, up: Side
) -> TradeOff | None:
    """Return one trade-off; None with fewer than two contenders that have both quantities."""
    shown = [each for each in able if across.values.get(each.case.id) and up.values.get(each.case.id)]
    if len(shown) < 2:
        return None
    by_id, plan = {each.case.id: each for each in shown}, comparison.rankings[comparison.primary].plan
    one, other = (decide({key: side.values[key] for key in by_id}, plan) for side in (across, up))
    left = sorted(choice.undominated(list(by_id), one, other), key=lambda key: (across.mean(key), up.mean(key)))
    best = [by_id[key] for key in left]
    sentence = _sentence([each.name for each in best], len(shown), across.thing, up.thing)
    return TradeOff(names, across, up, shown, best, sentence)


def as_dict(found: TradeOff, name: Callable[[Contender], str]) -> dict[str, Any]:
    """Return a trade-off for scripts: what its plot shows. `name` is that of a contender."""
    best = {contender.case.id for contender in found.best}
    sides = dict(zip(found.goals, (found.across, found.up), strict=True))
    return {
        "goals": list(found.goals),
        "best": [name(contender) for contender in found.best],
        "sentence": found.sentence,
        "units": {goal: side.unit for goal, side in sides.items()},
        "contenders": [
            {
                "case": name(contender),
                "beaten": contender.case.id not in best,
                "values": {goal: side.mean(contender.case.id) for goal, side in sides.items()},
            }
            for contender in found.able
        ],
    }


def _sentence(names: list[str], shown: int, first: str, second: str) -> str:
    both = f"in {first} and {second}"
    if len(names) == 1:
        return f"{names[0]} is at least as good as every other {both}, and better in one of them."
    if len(names) == shown:
        return f"No contender is shown to beat another {both}: each is a trade-off, or not told apart."
    return f"No other contender is shown to beat {listed(names, 'or')} {both}; each of the rest is beaten."
