"""What a certificate says about its update rule by itself."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from steelyard_worker import rules

if TYPE_CHECKING:
    from steelyard.certificates.rule_judgement import Difference
    from steelyard_worker.case import Optimizer

TITLES = {"sgd": "SGD", "adam": "Adam", "adamw": "AdamW", "lamb": "LAMB"}
# An error below this part of a change is written as a power of ten.
PERCENT = 1e-3


def checked(steps: int, is_spread: bool) -> str:
    """Return what is added to a certificate whose rule was checked over some steps; `is_spread`: the case has a strategy."""
    where = ", in one process, whose trainer has the same rule" if is_spread else ""
    return f" Its update rule by itself: {steps} steps with given gradients match the formula{where}."


def not_checked(reason: str) -> str:
    """Return what is added to a certificate whose rule was not checked by itself."""
    return f" Update rule not checked by itself: {reason}."


def failed(message: str) -> str:
    """Return the sentence for a check whose process failed."""
    return f"The update rule could not be checked by itself, because the process failed: {message}"


def unusable(rule: Optimizer, tensor: str) -> str:
    """Return the sentence for a tensor that was not saved, or does not begin with the given weights."""
    return (
        f"{title(rule)} could not be checked by itself: '{tensor}' of the small network for that is missing, or does not start "
        "with the weights that it was given."
    )


def different(rule: Optimizer, first: Difference) -> str:
    """Return the sentence for a rule that is not its formula: from which step on, by how much, and the likely cause."""
    constants = (
        f", with a learning rate of {rules.STRONG_RATE:g}"
        + (f" and a weight decay of {rules.STRONG_DECAY:g}" if rule.weight_decay else "")
        if first.part == rules.STRONG
        else ""
    )
    agreed = {1: "", 2: "; step 1 agrees"}.get(first.step, f"; steps 1 to {first.step - 1} agree")
    return (
        f"{title(rule)} by itself, with given gradients{constants}, differs from its formula from step {first.step} on "
        f"('{first.tensor}': {_size(first.share)}){agreed}. Likely cause: {_cause(rule, first)}."
    )


def title(rule: Optimizer) -> str:
    """Return the name of an update rule as it is written in a sentence."""
    return TITLES.get(rule.name, rule.name)


def _size(share: float) -> str:
    if not math.isfinite(share):
        return "it should not change there, or has undefined (NaN) values"
    return f"{100 * share:.2g} % of its change" if share >= PERCENT else f"{share:.0e} of its change"


def _cause(rule: Optimizer, first: Difference) -> str:
    if not first.trained:
        return "an optimizer that also updates or decays tensors that are not trained"
    if first.clipped:
        return "the clipping of gradients, which begins in this step"
    if first.step == 1:
        decay = "the weight decay, " if rule.weight_decay else ""
        decay += "which tensors are in a group, " if rule.groups else ""
        return f"{decay}the learning rate, another constant, or the form of the rule"
    if first.step == 2:
        return "what the rule remembers of the step before (momentum or moments), the weight decay in it, or the learning rate"
    corrected = "the bias correction or " if rule.name != "sgd" else ""
    return f"{corrected}the learning rate may stop changing, or what the rule remembers, or a constant, changes there"
