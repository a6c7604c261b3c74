"""What to choose, with all that belongs to it: the answers, the settings that were tried, and trade-offs of two goals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steelyard.analysis import choices, trade_offs, tried
from steelyard.analysis.goals import NONE
from steelyard.statistics.sentences import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from steelyard.analysis.choices import Answers, Choice
    from steelyard.analysis.goals import Wishes
    from steelyard.analysis.model import Comparison, Contender
    from steelyard.analysis.trade_offs import TradeOff


@dataclass(frozen=True)
class Recommendation:
    """What to choose in a comparison, for these wishes.

    `in_short` names the choice for each goal; empty if no goal has one. `settings`: a sentence on those that were tried, for each
    framework that has any.
    """

    wishes: Wishes
    answers: Answers
    in_short: str
    settings: list[str]
    trade_offs: list[TradeOff]


def recommendation(comparison: Comparison, among: Sequence[Comparison], wishes: Wishes = NONE) -> Recommendation | None:
    """Return what to choose; None where there is nothing to choose from. `among`: all comparisons of the run."""
    answers = choices.answers(comparison, among, wishes)
    if answers is None:
        return None
    return Recommendation(
        wishes,
        answers,
        in_short(answers),
        tried.sentences(comparison, answers.able),
        trade_offs.trade_offs(comparison, answers.able),
    )


def trade_offs_of(comparison: Comparison) -> list[TradeOff]:
    """Return the trade-offs of a comparison; empty where there is nothing to choose from."""
    able = choices.eligible(comparison)
    return trade_offs.trade_offs(comparison, able) if able else []


def in_short(answers: Answers) -> str:
    """Return one sentence that names the choice for each goal; empty if no goal has one."""
    goals_of: dict[str, list[str]] = {}
    open_goals = []
    for choice, _ in answers.choices:
        goal = " and ".join(choice.goals).replace("-", " ")
        if _is_made(choice):
            goals_of.setdefault(answers.names[choice.candidates[0]], []).append(goal)
        else:
            open_goals.append(goal)
    if not goals_of:
        return ""
    parts = [f"{who} for {listed(goals)}" for who, goals in goals_of.items()]
    rest = f"; for {listed(open_goals)}, this run does not single one out" if open_goals else ""
    return f"Choose {', '.join(parts)}{rest}."


def _is_made(choice: Choice) -> bool:
    """Return whether a choice names one contender."""
    return len(choice.candidates) == 1 and (len(choice.ranking.order) == 1 or bool(choice.ranking.verdicts))


def as_dict(comparison: Comparison, known: Recommendation, case_name: Callable[[Contender], str]) -> dict[str, Any]:
    """Return the values for scripts."""
    names = {each.case.id: case_name(each) for each in comparison.contenders}
    answers = known.answers
    return {
        "in_short": known.in_short,
        "choices": [_choice(choice, sentence, names) for choice, sentence in answers.choices],
        "conditions": dict(answers.conditions),
        "set_aside": [{"contender": who, "reason": reason} for who, reason in answers.aside],
        "missing": [{"goal": goal, "reason": reason} for goal, reason in answers.missing],
        "trade_offs": [trade_offs.as_dict(each, case_name) for each in known.trade_offs],
    }


def _choice(choice: Choice, sentence: str, names: dict[str, str]) -> dict[str, Any]:
    """Return a choice as plain values. `names`: of cases, by case id."""
    return {
        "goals": list(choice.goals),
        "thing": choice.thing,
        "sentence": sentence,
        "candidates": [names[key] for key in choice.candidates],
        "contenders": [
            {
                "case": names[key],
                "probability": choice.probabilities.get(key),
                "ratios": {goal: ratios.get(key) for goal, ratios in choice.ratios.items()},
            }
            for key in choice.ranking.order
        ],
    }
