"""Warnings as they are shown: the same one for many contenders is said once, with its advice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steelyard.report.warnings import Caution


@dataclass(frozen=True)
class Finding:
    """One sentence and everybody it is said of."""

    sentence: str
    subjects: tuple[str, ...]


@dataclass(frozen=True)
class Notice:
    """All warnings of one kind, in the order in which they came."""

    name: str
    severity: str
    advice: str
    findings: tuple[Finding, ...]


def gather(warnings: Iterable[Caution]) -> list[Notice]:
    """Group warnings by kind and advice, and within a kind by sentence."""
    kinds: dict[tuple[str, str, str], dict[str, list[str]]] = {}
    for warning in warnings:
        said = kinds.setdefault((warning.name, warning.severity, warning.advice), {})
        said.setdefault(warning.sentence, []).append(warning.subject)
    return [
        Notice(*kind, tuple(Finding(sentence, tuple(subjects)) for sentence, subjects in said.items()))
        for kind, said in kinds.items()
    ]
