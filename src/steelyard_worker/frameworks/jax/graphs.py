"""What a training step's program consists of: StableHLO as JAX traced it, and the instructions that XLA made of it."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from steelyard_worker.graphs import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

_OPERATION = re.compile(r"^\s*(?:%\S+ = )?(?:\"?(?:stablehlo|chlo)\.([a-z_]+)|(?:func\.)?(call) @)", re.MULTILINE)
_COMPUTATION = re.compile(r"^(ENTRY )?%(\S+) \(")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%\S+ = (?:\([^=]*\)|\S+) ([\w-]+)\((.*)$")
# Computations whose instructions run one by one; those that fusions, sums and the like name are parts of one instruction.
_RUN = re.compile(
    r"(?:body|condition|true_computation|false_computation|branch_computations|to_apply|calls)=(?:\{([^}]*)\}|(%[\w.-]+))"
)
_RUNNING = ("while", "conditional", "call")


def stages(lowered: Any) -> Iterator[Stage]:
    """Yield the program of a lowered function, and that compiled."""
    yield Stage("traced", "StableHLO operations", operations(lowered.as_text()))
    yield Stage("optimised", "HLO instructions", instructions(lowered.compile().as_text()))


def operations(text: str) -> dict[str, int]:
    """Count the operations of a StableHLO module; a function that is called several times counts once."""
    found = Counter(operation or call for operation, call in _OPERATION.findall(text))
    del found["return"]
    return dict(sorted(found.items()))


def instructions(text: str) -> dict[str, int]:
    """Count the instructions of an HLO program that are run one by one; what a fusion joins counts as one."""
    computations, current, entry = dict[str, list[tuple[str, str]]](), list[tuple[str, str]](), ""
    for line in text.splitlines():
        if head := _COMPUTATION.match(line):
            current = computations.setdefault(head[2], [])
            entry = head[2] if head[1] else entry
        elif found := _INSTRUCTION.match(line):
            current.append((found[1], found[2]))
    kinds, seen, waiting = Counter[str](), {entry}, [entry]
    while waiting:
        for kind, rest in computations.get(waiting.pop(), []):
            kinds[kind] += 1
            if kind in _RUNNING:
                names = {name.strip(" %") for found in _RUN.findall(rest) for name in "".join(found).split(",")}
                waiting += sorted(names - seen)
                seen |= names
    return dict(sorted(kinds.items()))
