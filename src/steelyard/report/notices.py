"""Warnings grouped for display: the same warning for several contenders appears once, with its advice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steelyard.report.warnings import ResultWarning


@dataclass(frozen=True)
class Finding:
    """One sentence and all its subjects."""

    sentence: str
    subjects: tuple[str, ...]


@dataclass(frozen=True)
class Notice:
    """All warnings of one kind, in their original order."""

    name: str
    severity: str
    advice: str
    findings: tuple[Finding, ...]


def gather(warnings: Iterable[ResultWarning]) -> list[Notice]:
    """Group warnings by kind and advice, and within a kind by sentence."""
    kinds: dict[tuple[str, str, str], dict[str, list[str]]] = {}
    for warning in warnings:
        by_sentence = kinds.setdefault((warning.name, warning.severity, warning.advice), {})
        by_sentence.setdefault(warning.sentence, []).append(warning.subject)
    return [
        Notice(*kind, tuple(Finding(sentence, tuple(subjects)) for sentence, subjects in by_sentence.items()))
        for kind, by_sentence in kinds.items()
    ]
