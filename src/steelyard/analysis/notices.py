"""Warnings as they are shown: each kind once, with its subjects, its sentences and its advice."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# A number in a reason, with its percent sign. Numbers within names touch other characters and do not match.
FIGURE = re.compile(r"(?<!\S)(\d+(?:,\d{3})*(?:\.\d+)?%?)(?=\s)")
MOST_ALIKE = 3
"""More sentences of one kind that differ only in their numbers are shown as one, with the ranges of the numbers."""
IN_RANGES = ("InputBound", "NoisyMachine", "SlowFirstStep", "Unsteady")
NOTE = "note"
"""The severity of a warning that asks for nothing."""


@dataclass(frozen=True)
class ResultWarning:
    """A warning about a result. `severity`: error (the number is invalid), warning, note."""

    name: str
    severity: str
    subject: str
    sentence: str
    advice: str


@dataclass(frozen=True)
class Notice:
    """All warnings of one kind, in their original order. `findings`: every sentence with all of its subjects."""

    name: str
    severity: str
    advice: str
    findings: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def in_ranges(self) -> bool:
        """Whether one sentence may stand for many that differ only in their numbers."""
        return self.name in IN_RANGES


def gather(warnings: Iterable[ResultWarning]) -> list[Notice]:
    """Group warnings for display by kind and advice, and within a kind by sentence, so that each appears once."""
    kinds: dict[tuple[str, str, str], dict[str, list[str]]] = {}
    for warning in warnings:
        by_sentence = kinds.setdefault((warning.name, warning.severity, warning.advice), {})
        by_sentence.setdefault(warning.sentence, []).append(warning.subject)
    return [
        Notice(*kind, tuple(_shortened(found) if kind[0] in IN_RANGES else _as_they_are(found, found)))
        for kind, found in kinds.items()
    ]


def _as_they_are(sentences: Iterable[str], found: dict[str, list[str]]) -> Iterator[tuple[str, tuple[str, ...]]]:
    return ((sentence, tuple(found[sentence])) for sentence in sentences)


def _shortened(found: dict[str, list[str]]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield sentences with their subjects; many that differ only in their numbers become one."""
    for alike in by_words(found):
        if len(alike) > MOST_ALIKE:
            yield with_ranges(alike), tuple(subject for sentence in alike for subject in found[sentence])
        else:
            yield from _as_they_are(alike, found)


def by_words(sentences: Iterable[str]) -> list[list[str]]:
    """Return the sentences in groups that differ only in their numbers."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for sentence in sentences:
        groups.setdefault(tuple(FIGURE.split(sentence)[::2]), []).append(sentence)
    return list(groups.values())


def with_ranges(alike: list[str]) -> str:
    """Merge sentences that differ only in their numbers into one with the range of every number."""
    parts = zip(*(FIGURE.split(sentence) for sentence in alike), strict=True)
    return "".join(_range(found) if place % 2 else found[0] for place, found in enumerate(parts))


def _range(figures: Iterable[str]) -> str:
    found = sorted(set(figures), key=lambda each: float(each.rstrip("%").replace(",", "")))
    return f"{found[0]} to {found[-1]}" if len(found) > 1 else found[0]
