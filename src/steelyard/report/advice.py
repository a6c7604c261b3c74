"""What to choose on a terminal, or as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from steelyard.analysis import choices, energy, job_length, money
from steelyard.analysis.recommendation import as_dict, recommendation
from steelyard.report import terminal_blocks
from steelyard.report.as_json import case_name, finite
from steelyard.report.blocks import line
from steelyard.report.sections import energy as energy_section
from steelyard.report.sections import money as money_section
from steelyard.report.sections import what_to_choose
from steelyard.report.sections.subject import Subject
from steelyard.report.styles import styles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analysis.goals import Wishes
    from steelyard.analysis.model import Comparison, Contender, View
    from steelyard.analysis.recommendation import Recommendation

Advice = tuple["Comparison", "Recommendation | None"]
"""A comparison, and what to choose in it."""


def show(view: View, wishes: Wishes, as_json: bool = False) -> bool:
    """Print what to choose in every comparison of a run, or why that is impossible. Return whether any has an answer."""
    made = [(each, recommendation(each, view.comparisons, wishes)) for each in view.comparisons]
    if as_json:
        print(json.dumps(finite([_as_dict(*each) for each in made]), indent=1, allow_nan=False))
    else:
        _print(Console(highlight=False), made)
    return any(known.answers.choices for _, known in made if known)


def _print(console: Console, made: Sequence[Advice]) -> None:
    for comparison, known in made:
        title = Text(f"{comparison.title}, {comparison.group}", style="bold")
        console.rule(title, align="left", characters="─", style="dim")
        if known:
            _print_advice(console, comparison, known)
        else:
            console.print(Text(choices.why_none(comparison)))
        console.print()


def _print_advice(console: Console, comparison: Comparison, known: Recommendation) -> None:
    terminal_blocks.show(console, what_to_choose.advice(known))
    if table := what_to_choose.probabilities(known):
        console.print()
        terminal_blocks.show(console, table)
    _print_measured(console, comparison, known)
    console.print()
    length = job_length.job_length(comparison)
    sentences = [each.sentence for each in known.trade_offs] + ([length.sentence] if length else [])
    terminal_blocks.show(console, map(line, sentences))


def _print_measured(console: Console, comparison: Comparison, known: Recommendation) -> None:
    """Print the tables behind the answers that only some runs have: energy, and the cost at a price."""
    subject = Subject(comparison, (comparison,), styles([comparison]))
    if any("energy" in choice.goals for choice, _ in known.answers.choices):
        terminal_blocks.show(console, energy_section.blocks(subject))
    terminal_blocks.show(console, money_section.blocks(subject))


def _as_dict(comparison: Comparison, known: Recommendation | None) -> dict[str, Any]:
    """Return what to choose in a comparison, or why nothing can be chosen."""
    about: dict[str, Any] = {"group": comparison.group, "title": comparison.title, "task": comparison.task}
    if known is None:
        return about | {"choices": [], "reason": choices.why_none(comparison)}

    def named(contender: Contender) -> str:
        return case_name(comparison, contender)

    about |= as_dict(comparison, known, named) | {"job_length": job_length.as_dict(comparison, named)}
    if used := energy.as_dict(comparison, named):
        about["energy"] = used
    if comparison.price:
        about |= {"price": money.price_as_dict(comparison.price), "cost": money.as_dict(comparison, named)}
    return about
