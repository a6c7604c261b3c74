"""A table [[published]] of a study: an entry of a document to compare with, and the variants that its words refer to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from steelyard.errors import UserError
from steelyard_worker.strategy import name_of

WORKERS = "workers"
"""The key of the number of loader workers in the settings of a side."""
STRATEGY, DEVICES = "strategy", "devices"
"""The keys of the strategy, and of its number of ranks or devices, in the settings of a side."""
LINK = "link"
"""The key of the link between the hosts of a strategy, in the settings of a side: `1gbit` or `2nodes`; empty on one host."""


@dataclass(frozen=True)
class StudyTable:
    """One table [[published]] of a study file.

    entry: `document:entry`, such as "S0:table-2-ratios".
    quantity: the measured quantity that is compared with it, such as "step time".
    task: the task of the groups that are compared with it.
    where: only values with these coordinates, such as { device = "V100" }; a list allows each of its values. Of a value for
        several cells, only those that are named.
    sides: a word of the document for a framework, mode or strategy -> the variant that it means here, written as in tables:
        "pytorch/eager", "lstm=fused", "/graph,workers=2", "strategy=ddp". A framework's own name needs none.
    differs: a variant that stands for a side although it is not the document's, written as in `sides` -> how it differs.
        Its ratio is shown without a judgement.
    levels: single values, such as shares, are compared with the measured ones, and not ratios of two sides.
    compare: for a table of times or rates, the two words that are compared; the first is over the second. Where a framework and a
        strategy differ, both are named: "tensorflow mirrored".
    """

    entry: str
    quantity: str = "step time"
    task: str = "training"
    where: dict[str, Any] = field(default_factory=dict)
    sides: dict[str, str] = field(default_factory=dict)
    differs: dict[str, str] = field(default_factory=dict)
    compare: tuple[str, ...] = ()
    levels: bool = False

    @property
    def unlike(self) -> tuple[Side, ...]:
        """The variants of `differs`, each with what it differs in as its words."""
        return tuple(replace(read_side(text, text), words=why) for text, why in self.differs.items())


@dataclass(frozen=True)
class Side:
    """One side of a published comparison: the variants that it refers to. Empty fields match any.

    `words` are the document's own. `settings`: knob -> value as text, "workers" for the number of loader workers, "strategy"
    for the name of a strategy, "devices" for its number of parts, and "link" for what is between its hosts.
    """

    words: str
    framework: str = ""
    mode: str = ""
    settings: dict[str, str] = field(default_factory=dict)

    def joined(self, other: Side) -> Side:
        """Return this side with the fields of another one added or replaced."""
        return Side(
            " ".join(filter(None, (self.words, other.words))),
            other.framework or self.framework,
            other.mode or self.mode,
            {**self.settings, **other.settings},
        )


def read_side(word: str, text: str) -> Side:
    """Read a variant such as `pytorch/eager,layout=channels-first`, `lstm=fused` or `/graph`. UserError: it is malformed."""
    framework = mode = ""
    settings: dict[str, str] = {}
    for place, part in enumerate(text.split(",")):
        name, equals, value = part.strip().partition("=")
        if equals and name and value:
            settings |= _settings(name, value)
        elif place == 0 and name and not equals:
            framework, _, mode = name.partition("/")
        else:
            hint = "Write FRAMEWORK/MODE,NAME=VALUE, of which each part may be missing."
            raise UserError(f"'{word}' stands for '{text}', which is not a variant. {hint}")
    return Side(word, framework, mode, settings)


def _settings(name: str, value: str) -> dict[str, str]:
    """Return one setting; a strategy with a number of parts, such as `ddp:2`, is two."""
    if name != STRATEGY or ":" not in value:
        return {name: value}
    return {STRATEGY: name_of(value), DEVICES: value.partition(":")[2]}
