"""The classes of operations that all frameworks share, and the tables that assign operations to them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from steelyard_worker import records

FORWARD, TO_DATA, TO_WEIGHTS = (
    "convolution, forward",
    "convolution, backward to data",
    "convolution, backward to weights",
)
BACKWARD = "convolution, backward"
"""One operation that computes both gradients. Its time is divided according to oneDNN's log, if there is one."""
CONVOLUTION = "convolution"
"""A convolution whose direction the profile does not show."""
DISPATCH, INPUT, GAP, UNATTRIBUTED = "dispatch", "input pipeline", "host gap", "unattributed"
COPIES = "copies and layout"
EXCHANGE = "exchange between ranks"
NO_OPERATION = (DISPATCH, INPUT, GAP)
"""The classes of time without computing or copying operations."""
OPERATIONS = (
    FORWARD,
    TO_DATA,
    TO_WEIGHTS,
    BACKWARD,
    CONVOLUTION,
    "matrix product",
    "recurrent",
    "attention",
    "normalisation",
    "elementwise",
    "pooling",
    "gather and scatter",
    "reduction and loss",
    "optimizer",
    COPIES,
    EXCHANGE,
    "fused",
)
CLASSES = (*OPERATIONS, DISPATCH, INPUT, GAP, UNATTRIBUTED)
"""All classes in the order in which they are shown."""
HELP = {
    DISPATCH: "the framework's own bookkeeping between operations: its executor, views of tensors, allocation",
    INPUT: "waiting for the next batch while no operation runs",
    GAP: "neither an operation nor a wait for data: Python, and what no profiler records; on a GPU, time in which no kernel runs",
    UNATTRIBUTED: "operations whose names belong to no class",
    CONVOLUTION: "convolutions whose direction the profile does not tell",
    "attention": "scores, softmax and weighted sums; where a framework has no name for these, every softmax outside the loss and "
    "every batched product",
    EXCHANGE: "sending, receiving and adding up what other ranks have, with the time that a rank waits for them in it",
    "fused": "operations that a compiler has joined, and whose parts are not known",
}


@dataclass(frozen=True)
class Table:
    """Rules in order: (class, regular expressions that are searched for in the name); the first that matches counts."""

    rules: tuple[tuple[str, tuple[str, ...]], ...]

    @cached_property
    def _patterns(self) -> list[tuple[str, re.Pattern[str]]]:
        return [(name, re.compile("|".join(f"(?:{each})" for each in names))) for name, names in self.rules]

    def class_of(self, operation: str) -> str:
        """Return the class of an operation's name; empty if no rule matches."""
        return self.class_of_any((operation,))

    def class_of_any(self, names: Iterable[str]) -> str:
        """Return the first class of which a rule matches any of these names; empty if none does."""
        known = tuple(names)
        return next((name for name, pattern in self._patterns if any(map(pattern.search, known))), "")


def unrecorded(sentences: Any) -> dict[str, str]:
    """Return the table `[unrecorded]`: class -> a sentence. Raises ValueError for an unknown class or what is no text."""
    found: dict[str, str] = records.convert(dict[str, str], sentences, "unrecorded")
    for name in found:
        if name not in CLASSES:
            message = f"there is no class '{name}'"
            raise ValueError(message)
    return found


def table(rules: Iterable[Mapping[str, Any]]) -> Table:
    """Return the table of rules with the keys `class` and `names`. Raises ValueError for an unknown class or a bad pattern."""
    found = Table(tuple((str(rule["class"]), tuple(rule["names"])) for rule in rules))
    for name, names in found.rules:
        if name not in CLASSES:
            message = f"there is no class '{name}'"
            raise ValueError(message)
        for each in names:
            try:
                re.compile(each)
            except re.error as error:
                message = f"'{each}' is no regular expression ({error})"
                raise ValueError(message) from None
    return found
