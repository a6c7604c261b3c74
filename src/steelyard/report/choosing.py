"""The section "What to choose" of a comparison: sentences, the table of probabilities, and the plots of trade-offs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steelyard.report import choices, trade_offs, tried
from steelyard.report.formatting import NO_VALUE, probability
from steelyard.report.goals import NONE
from steelyard.statistics.sentences import listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.report.choices import Answers, Choice
    from steelyard.report.goals import Wishes
    from steelyard.report.model import Comparison
    from steelyard.report.styles import Style
    from steelyard.report.trade_offs import TradeOff

CAPTION = (
    "How likely each contender is the best for a goal, by the scatter between rounds. A choice is named only where the verdicts "
    "single one out; their error of 5 % is shared over all pairs and looks, so they ask for more than a high probability. To "
    "weigh several goals against each other: `steelyard advise --for speed=2 --for memory`"
)
WEIGHED = (
    "Costs are combined as their geometric mean, each with the weight of its goal. The probability is that of the least combined "
    "cost, by the scatter between rounds. The other columns show each cost over that of the best contender."
)


@dataclass(frozen=True)
class Section:
    """The contents: (goal or condition, sentence) pairs, the table, and the trade-offs. `found` has the values."""

    found: Answers
    answers: list[tuple[str, str]]
    headings: list[str]
    rows: list[list[str]]
    caption: str
    trade_offs: list[TradeOff]


def section(
    comparison: Comparison, among: Sequence[Comparison], styles: Mapping[str, Style], wishes: Wishes = NONE
) -> Section | None:
    """Return the section of a comparison; None where there is nothing to choose from. `among`: all comparisons of the run."""
    found = choices.answers(comparison, among, wishes)
    if found is None:
        return None
    answers = in_short(found) if len(found.choices) > 1 else []
    answers += [(_label(each, wishes), sentence) for each, sentence in found.choices]
    answers += found.missing + found.conditions + found.aside
    answers += [("settings tried", sentence) for sentence in tried.sentences(comparison, found.able)]
    weighed = bool(wishes.weights) and bool(found.choices)
    headings, rows = _weighed(found.choices[0][0], found) if weighed else _overview(found)
    against = trade_offs.trade_offs(comparison, found.able, styles)
    return Section(found, answers, headings, rows, WEIGHED if weighed else CAPTION, against)


def in_short(found: Answers) -> list[tuple[str, str]]:
    """Return one sentence that names the choice for each goal, as ("in short", sentence); empty if no goal has one."""
    goals_of: dict[str, list[str]] = {}
    open_goals = []
    for each, _ in found.choices:
        goal = " and ".join(each.goals).replace("-", " ")
        if len(each.candidates) == 1 and (len(each.ranking.order) == 1 or each.ranking.verdicts):
            goals_of.setdefault(found.names[each.candidates[0]], []).append(goal)
        else:
            open_goals.append(goal)
    if not goals_of:
        return []
    parts = [f"{who} for {listed(goals)}" for who, goals in goals_of.items()]
    rest = f"; for {listed(open_goals)}, this run does not single one out" if open_goals else ""
    return [("in short", f"Choose {', '.join(parts)}{rest}.")]


def as_dict(shown: Section, case_names: Mapping[str, str]) -> dict[str, Any]:
    """Return the values for scripts; `case_names` are by case id."""
    return {
        "in_short": next((sentence for _, sentence in in_short(shown.found)), ""),
        "choices": [
            {
                "goals": list(each.goals), "thing": each.thing, "sentence": sentence,
                "candidates": [case_names[key] for key in each.candidates],
                "contenders": [
                    {
                        "case": case_names[key], "probability": each.probabilities.get(key),
                        "ratios": {goal: ratios.get(key) for goal, ratios in each.ratios.items()},
                    }
                    for key in each.ranking.order
                ],
            }
            for each, sentence in shown.found.choices
        ],
        "conditions": dict(shown.found.conditions),
        "set_aside": [{"contender": who, "reason": reason} for who, reason in shown.found.aside],
        "missing": [{"goal": goal, "reason": reason} for goal, reason in shown.found.missing],
        "trade_offs": [
            {"goals": list(each.goals), "best": [case_names[who.case.id] for who in each.best], "sentence": each.sentence}
            for each in shown.trade_offs
        ],
    }  # fmt: skip


def _label(found: Choice, wishes: Wishes) -> str:
    """Return the goals, with their weights where there are several."""
    if len(found.goals) == 1:
        return f"{found.goals[0]} ({found.thing})"
    return "; ".join(f"{goal}, weight {wishes.weights[goal]:g}" for goal in found.goals)


def _overview(found: Answers) -> tuple[list[str], list[list[str]]]:
    """Return the table of probabilities: a row for every contender, a column for every goal."""
    made = [each for each, _ in found.choices if each.probabilities]
    keys = dict.fromkeys(key for each in made for key in each.ranking.order)
    headings = ["probability of being the best", *(each.goals[0] for each in made)]
    return headings, [[found.names[key], *(probability(each.probabilities.get(key)) for each in made)] for key in keys]


def _weighed(made: Choice, found: Answers) -> tuple[list[str], list[list[str]]]:
    """Return the table of a ranking by several goals: probability, and for every goal the cost relative to the best contender."""
    rows = [
        [
            found.names[key],
            probability(made.probabilities.get(key)),
            *(_times(each.get(key)) for each in made.ratios.values()),
        ]
        for key in made.ranking.order
    ]
    return ["contender", "probability", *made.ratios], rows


def _times(ratio: float | None) -> str:
    return NO_VALUE if ratio is None else f"{ratio:.2f}x"
