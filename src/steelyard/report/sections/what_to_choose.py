"""What to choose: the answers for goals and conditions, the table of probabilities, and trade-offs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis.recommendation import recommendation
from steelyard.report.blocks import ON_TERMINAL, Panel, Paragraph, Plots, Reasons, Role, aside, plain_table
from steelyard.report.plots import trade_offs
from steelyard.wording.formatted import NO_VALUE, probability

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.analysis.choices import Answers, Choice
    from steelyard.analysis.goals import Wishes
    from steelyard.analysis.recommendation import Recommendation
    from steelyard.report.blocks import Block
    from steelyard.report.sections.subject import Subject

HEADING = "What to choose"
BEST = "Probability of being the best"
CAPTION = (
    "How likely each contender is the best for a goal, by the scatter between rounds. A choice is named only where the verdicts "
    "single one out; their error of 5 % is shared over all pairs and looks, so they ask for more than a high probability. To "
    "weigh several goals against each other: `steelyard advise --for speed=2 --for memory`"
)


def blocks(subject: Subject) -> Sequence[Block]:
    """Return the section; nothing where there is nothing to choose from."""
    known = recommendation(subject.comparison, subject.among)
    return [Panel(HEADING, list(_on_page(known, subject)))] if known else []


def _on_page(known: Recommendation, subject: Subject) -> Iterator[Block]:
    comparison = subject.comparison
    yield Reasons(list(_pairs(known)), terms=True)
    headings, rows = _overview(known.answers)
    if rows:
        yield aside(CAPTION, terms=True)
        yield plain_table(comparison.title, BEST, headings, rows)
    for each in known.trade_offs:
        yield Paragraph((each.sentence,), Role.FINDING)
    if known.trade_offs:
        yield Plots(lambda: trade_offs.figures_of(comparison, known.trade_offs, subject.styles))


def advice(known: Recommendation) -> list[Block]:
    """Return the answers as a terminal shows them where somebody asks for advice."""
    return [Reasons(list(_pairs(known)), media=ON_TERMINAL)]


def probabilities(known: Recommendation) -> list[Block]:
    """Return the table for a terminal: of probabilities, or of costs where goals have weights; nothing without any row."""
    weighed = bool(known.wishes.weights) and bool(known.answers.choices)
    headings, rows = _weighed(known.answers.choices[0][0], known.answers) if weighed else _overview(known.answers)
    return [plain_table("", BEST, headings, rows, media=ON_TERMINAL)] if rows else []


def _pairs(known: Recommendation) -> Iterator[tuple[str, str]]:
    """Yield (goal or condition, sentence) pairs."""
    answers = known.answers
    if known.in_short and len(answers.choices) > 1:
        yield "in short", known.in_short
    for choice, sentence in answers.choices:
        yield _label(choice, known.wishes), sentence
    yield from answers.missing
    yield from answers.conditions
    yield from answers.aside
    for sentence in known.settings:
        yield "settings tried", sentence


def _label(choice: Choice, wishes: Wishes) -> str:
    """Return the goals, with their weights where there are several."""
    if len(choice.goals) == 1:
        return f"{choice.goals[0]} ({choice.thing})"
    return "; ".join(f"{goal}, weight {wishes.weights[goal]:g}" for goal in choice.goals)


def _overview(answers: Answers) -> tuple[list[str], list[list[str]]]:
    """Return the table of probabilities: a row for every contender, a column for every goal."""
    made = [choice for choice, _ in answers.choices if choice.probabilities]
    keys = dict.fromkeys(key for choice in made for key in choice.ranking.order)
    headings = ["probability of being the best", *(choice.goals[0] for choice in made)]
    rows = [[answers.names[key], *(probability(choice.probabilities.get(key)) for choice in made)] for key in keys]
    return headings, rows


def _weighed(choice: Choice, answers: Answers) -> tuple[list[str], list[list[str]]]:
    """Return the table of a ranking by several goals: probability, and for every goal the cost relative to the best contender."""
    rows = [
        [
            answers.names[key],
            probability(choice.probabilities.get(key)),
            *(_times(ratios.get(key)) for ratios in choice.ratios.values()),
        ]
        for key in choice.ranking.order
    ]
    return ["contender", "probability", *choice.ratios], rows


def _times(ratio: float | None) -> str:
    return NO_VALUE if ratio is None else f"{ratio:.2f}x"
