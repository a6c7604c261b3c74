"""Networks that one framework exported and another ran."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steelyard.analysis.model import Comparison, Contender
    from steelyard.results.events import Exchanged


def exported(comparison: Comparison) -> list[tuple[Contender, Exchanged]]:
    """Return the contenders that ran an exported network, each with what its first process recorded of the file."""
    recorded = ((contender, _of(contender)) for contender in comparison.contenders)
    return [(contender, network) for contender, network in recorded if network]


def _of(contender: Contender) -> Exchanged | None:
    return next((trial.exchanged for trial in contender.trials if trial.exchanged), None)
