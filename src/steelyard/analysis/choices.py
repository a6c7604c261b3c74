"""What to choose: the best contender for one or several goals and its probability, or a refusal if the run does not decide."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from steelyard.analysis import conditions, goals
from steelyard.analysis.advice import advice
from steelyard.analysis.goals import NONE
from steelyard.analysis.trainings import same_but_seed
from steelyard.results.quantities import STEP_TIME
from steelyard.statistics import choice
from steelyard.statistics.answer import answer
from steelyard.statistics.bounded import decide_bounded
from steelyard.statistics.decision import DecisionPlan, decide
from steelyard.statistics.intervals import Ratio
from steelyard.statistics.scores import LEAST_SEEDS
from steelyard.statistics.sentences import percent, together
from steelyard.wording import formatted
from steelyard.wording.task_words import fill

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analysis.goals import Costs, Wishes
    from steelyard.analysis.model import Comparison, Contender
    from steelyard.statistics.decision import Ranking


MORE_TRAININGS = (
    "Times are known to the interval between two evaluations, one for each epoch; networks that need more epochs, or more seeds "
    "(`--seed 1,2,3,4,5,6`), tell more."
)
PROBABLE = 0.9
"""From this probability on, the most likely contender is called "probably the best". This is no verdict."""


@dataclass(frozen=True)
class Choice:
    """The answer for one goal, or for several with weights.

    `thing`: the compared quantity, in running text. `ranking` has the eligible contenders, with the verdicts of all;
    `probabilities`: by case id. `candidates`: the contenders that may be the best, best first; more than one means a refusal.
    `ratios`: goal -> case id -> mean cost over that of the best in this goal. `trainings`: whether the replicates are seeds
    and not rounds; costs are known to intervals then, which give no probabilities.
    """

    goals: tuple[str, ...]
    thing: str
    ranking: Ranking
    probabilities: dict[str, float]
    candidates: tuple[str, ...]
    ratios: dict[str, dict[str, float]]
    trainings: bool = False


@dataclass(frozen=True)
class Answers:
    """All answers of a comparison. `choices`: with their sentences. `conditions`: which contenders meet them, as a sentence.

    `aside`: contenders that are left out of all answers or of one, with the reason. `missing`: goals for which the run has
    no data, with the reason and the command that would get it. `able`: the contenders that may be in a verdict; `names`: their
    names by case id.
    """

    choices: list[tuple[Choice, str]]
    conditions: list[tuple[str, str]]
    aside: list[tuple[str, str]]
    missing: list[tuple[str, str]]
    able: list[Contender]

    @property
    def names(self) -> dict[str, str]:
        """Case id -> name, with a mark if the framework is retired."""
        return {each.case.id: each.in_text for each in self.able}


def answers(comparison: Comparison, among: Sequence[Comparison], wishes: Wishes = NONE) -> Answers | None:
    """Return all answers; None for a comparison without a time per step, or without a contender that may be in a verdict.

    `among`: all comparisons of the run, because another one may show that a network can be exported.
    """
    able = eligible(comparison)
    if not able:
        return None
    asked = tuple(wishes.weights) or goals.measured(comparison)
    checked = {name: conditions.met(name, able, among) for name in wishes.checked}
    kept = {each.case.id for each in able} - {key for name in wishes.required for key in checked[name].unmet}
    same = same_but_seed(comparison, among)
    found = {goal: goals.costs(goal, comparison, able, wishes, same) for goal in asked}
    missing = [(goal, each.reason) for goal, each in found.items() if each.reason]
    known = {goal: each for goal, each in found.items() if not each.reason}
    aside = [(f"{goal}: {who.name}", why) for goal, each in known.items() for who, why in each.lacking]
    groups = [tuple(known)] if wishes.weights else [(goal,) for goal in known]
    if wishes.weights and any(each.by_seed for each in known.values()):
        known = {
            goal: each if each.by_seed else goals.over_seeds(goal, comparison, each, wishes, same)
            for goal, each in known.items()
        }
    made = [_choice(comparison, group, known, wishes, kept) for group in groups if group]
    choices = [each for each in made if each]
    titles = {each.case.id: each.in_text for each in able}
    sentences = [(each, _sentence(comparison, each, choices, titles, len(kept) < len(able))) for each in choices]
    if known and not kept:
        missing.append(("every goal", _nobody(able, wishes)))
    return Answers(sentences, [(name, each.sentence) for name, each in checked.items()], aside, missing, able)


def eligible(comparison: Comparison) -> list[Contender]:
    """Return the contenders that may be chosen: those that may be in a verdict; none in a comparison without a time per step."""
    if comparison.quantity.name != STEP_TIME.name or comparison.primary not in comparison.rankings:
        return []
    return [each for each in comparison.contenders if _is_able(each)]


def why_none(comparison: Comparison) -> str:
    """Return why nothing can be chosen in a comparison for which `answers` returns None."""
    if comparison.quantity.name != STEP_TIME.name or comparison.primary not in comparison.rankings:
        return fill("No time per {step} was compared here, so there is nothing to choose by.", comparison.task)
    reasons = [f"{each.in_text} {_obstacle(each)}" for each in comparison.contenders]
    uncertified = all(each.proof.state == "none" for each in comparison.contenders)
    advice = " Measure with certificates: start the run again without --no-certify." if uncertified else ""
    return f"Nothing can be chosen, because no result may be in a verdict: {'; '.join(reasons)}.{advice}"


def _obstacle(contender: Contender) -> str:
    """Return why a contender may not be chosen, as the end of a sentence about it."""
    if contender.proof.on_purpose:
        return f"computes something else on purpose ({contender.proof.on_purpose})"
    if contender.failure:
        return f"failed ({contender.failure.rstrip('.')})"
    if contender.above_peak:
        return "is faster than the machine can be"
    if contender.proof.state == "rejected":
        return "does not compute what the reference does"
    return "has no certificate" if contender.proof.state != "certified" else "has no finished process"


def _nobody(able: list[Contender], wishes: Wishes) -> str:
    """Return the sentence that no contender meets the conditions, and how to choose anyway."""
    if wishes.only_maintained and "maintained" not in wishes.conditions and len(wishes.required) == 1:
        names = _listed([each.in_text for each in able], "and")
        return f"No framework of this run is still maintained: {names}. To choose among them: `steelyard advise --any`"
    return f"No contender meets the conditions ({', '.join(wishes.required)}), so none is named."


def _is_able(contender: Contender) -> bool:
    proof = contender.proof
    return (
        bool(contender.trials)
        and proof.state == "certified"
        and not (proof.on_purpose or contender.failure or contender.above_peak)
    )


def _choice(
    comparison: Comparison, group: tuple[str, ...], known: dict[str, Costs], wishes: Wishes, kept: set[str]
) -> Choice | None:
    """Return the choice by one or several goals; None if no contender has a value for all of them."""
    weights = {goal: wishes.weights.get(goal, 1.0) for goal in group}
    ids = [key for key in known[group[0]].values if all(key in known[goal].values for goal in group)]
    costs = {key: choice.combined({goal: known[goal].values[key] for goal in group}, weights) for key in ids}
    costs = {key: rounds for key, rounds in costs.items() if rounds}
    by_seed = any(known[goal].by_seed for goal in group)
    plan = _plan(comparison, costs, by_seed)
    # The error is divided over all contenders, also those left out: otherwise conditions could decide more than the run does.
    if by_seed:
        bounds = {
            key: choice.combined_bounds({goal: known[goal].bounds_of(key) for goal in group}, weights) for key in costs
        }
        everyone = decide_bounded(costs, bounds, plan)
    else:
        everyone = decide(costs, plan)
    ranking = choice.only(everyone, kept)
    if not ranking.leader:
        return None
    left = {key: costs[key] for key in ranking.order}
    sure = choice.probabilities(left, ranking.leader) if len(left) > 1 and not by_seed else {}
    thing = known[group[0]].thing if len(group) == 1 else "combined cost"
    ratios = {goal: _ratios({key: known[goal].values[key] for key in left}, plan) for goal in group}
    best = answer(ranking).candidates or ranking.order[:1]
    return Choice(group, thing, ranking, sure, best, ratios, trainings=by_seed)


def _plan(comparison: Comparison, costs: dict[str, dict[int, float]], by_seed: bool) -> DecisionPlan:
    """Return how to decide: as the run does, or, over trainings, once after all of them."""
    plan = comparison.rankings[comparison.primary].plan
    if not by_seed:
        return plan
    seeds = len({seed for values in costs.values() for seed in values})
    once = DecisionPlan.single_look(max(LEAST_SEEDS, seeds), plan.delta)
    return replace(once, planned=plan.planned, retired=plan.retired)


def _ratios(values: dict[str, dict[int, float]], plan: DecisionPlan) -> dict[str, float]:
    """Return the ratio of every contender's cost to the best one's: the geometric mean over their common rounds."""
    ranking = decide(values, plan)
    against = {key: ranking.between(key, ranking.leader or key) for key in ranking.order[1:]}
    return {ranking.order[0]: 1.0} | {key: each.ratio for key, each in against.items() if each}


def _sentence(
    comparison: Comparison, found: Choice, others: list[Choice], titles: dict[str, str], is_restricted: bool
) -> str:
    """Return the sentence that names the choice, or that says why there is none and what would decide."""
    ranking = found.ranking
    names = [titles[key] for key in found.candidates]
    if len(ranking.order) == 1:
        return f"Only {names[0]} is left, so there is nothing to choose from."
    if found.trainings and ranking.rounds_run < LEAST_SEEDS:
        return _too_few_seeds(ranking.rounds_run)
    if ranking.rounds_run < 2:
        return f"One process of each shows no scatter, so none is named. {comparison.further.once_more(5)}"
    if not ranking.verdicts:
        return "The contenders have no round in common, so none is named."
    if len(names) == 1:
        return _chosen(found, titles) + _maintained(comparison, found, titles)
    pairs = [ranking.between(found.candidates[0], key) for key in found.candidates[1:]]
    equal = all(pair and pair.kind == "equal" for pair in pairs)
    if equal:
        within = percent(ranking.delta_used)
        alike = together(ranking.beyond_plan)
        text = f"{_listed(names, 'and')} are {alike} (within {within}): choose by something else."
    else:
        text = _open(found, titles)
    text += _otherwise(found, others, titles)
    return text if equal else f"{text} {_further(comparison, found, titles, is_restricted)}".rstrip()


def _too_few_seeds(seeds: int) -> str:
    """Return that these trainings do not show how much others would differ."""
    known = (
        "All trainings have one seed, so they are one training"
        if seeds == 1
        else f"There are trainings of {seeds} seeds only"
    )
    more = f"Train with {LEAST_SEEDS} seeds or more: `--seed 1,2,3,4,5,6`"
    return f"{known}: how much another would differ is not known, so none is named. {more}"


def _open(found: Choice, titles: dict[str, str]) -> str:
    """Return the sentence that no contender is shown to be the best, with the probabilities of the table."""

    def likely(key: str) -> str:
        value = found.probabilities.get(key)
        return titles[key] if value is None else f"{titles[key]} ({formatted.probability(value)})"

    most, *others = sorted(found.candidates, key=lambda key: -found.probabilities.get(key, 0.0))
    if found.probabilities.get(most, 0.0) < PROBABLE:
        names = _listed([likely(key) for key in (most, *others)], "or")
        return f"The best is {names}: the verdicts of this run do not tell them apart."
    return (
        f"Probably {likely(most)}, but that is not certain enough for a verdict, so none is named. Not ruled out: "
        f"{_listed([likely(key) for key in others], 'and')}."
    )


def _chosen(found: Choice, titles: dict[str, str]) -> str:
    """Return the sentence for a clear choice and the next best. Every other one is shown to be worse than some contender."""
    first = found.candidates[0]
    pairs = {key: found.ranking.between(key, first) for key in found.ranking.order if key != first}
    key, pair = min(((key, pair) for key, pair in pairs.items() if pair), key=lambda each: each[1].ratio)
    follows = formatted.of_ratio(Ratio(pair.ratio, pair.low, pair.high, pair.rounds))
    return f"Choose {titles[first]}. Next comes {titles[key]}, with {follows} the {found.thing} of {titles[first]}."


def _listed(names: list[str], last: str) -> str:
    """Return names as a list, separated by semicolons where names contain commas."""
    mark = ";" if any("," in name for name in names) else ","
    before = mark if mark == ";" and len(names) > 2 else ""
    return f"{f'{mark} '.join(names[:-1])}{before} {last} {names[-1]}" if names[1:] else names[0]


def _otherwise(found: Choice, others: list[Choice], titles: dict[str, str]) -> str:
    """Return which of the candidates another goal names, if one does."""
    for other in others:
        if other.goals != found.goals and set(found.candidates) <= set(other.ranking.order):
            best = answer(other.ranking, found.candidates).candidates
            if len(best) == 1:
                return f" Of these, {titles[best[0]]} has the least {other.thing}."
    return ""


def _maintained(comparison: Comparison, found: Choice, titles: dict[str, str]) -> str:
    """Return the best maintained alternative if the framework of the choice is retired."""
    maintained = {each.case.id for each in comparison.contenders if each.maintained}
    if found.candidates[0] in maintained:
        return ""
    best = answer(found.ranking, maintained).candidates
    if not best:
        return ""
    either = "either of " if len(best) > 1 else ""
    return f" Of the maintained ones, {either}{_listed([titles[key] for key in best], 'or')}."


def _further(comparison: Comparison, found: Choice, titles: dict[str, str], is_restricted: bool) -> str:
    """Say how many more rounds or trainings would decide, or that no number would."""
    if found.trainings:
        return MORE_TRAININGS
    if found.goals == ("speed",) and not is_restricted:
        return comparison.advice[comparison.primary]
    return advice(found.ranking, titles, comparison.protocol, comparison.further, extends=False)
