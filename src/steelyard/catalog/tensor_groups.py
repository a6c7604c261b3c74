"""Groups of tensors in an optimizer of spec.toml: patterns of names, and what multiplies their learning rate and weight decay."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from steelyard.errors import UserError, nearest
from steelyard.files import settings_files
from steelyard.files.ranges import Range
from steelyard_worker.case import TensorGroup

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from steelyard_worker.case import Optimizer
    from steelyard_worker.network import Network

# A rate of 0 would freeze tensors, of which the network says `trainable=False`, so that no gradient is computed for them.
RANGES = {"rate": Range(above=0), "decay": Range(0)}


def read(path: Path, where: str, tables: Sequence[Any], decays: bool) -> tuple[TensorGroup, ...]:
    """Read the tables [[where]]; `decays`: whether the optimizer has a weight decay. UserError: one is wrong or does nothing."""
    return tuple(_read(path, f"{where}[{number}]", table, decays) for number, table in enumerate(tables))


def _read(path: Path, where: str, table: Any, decays: bool) -> TensorGroup:
    group: TensorGroup = settings_files.build(path, table, where, TensorGroup, RANGES)
    title = settings_files.title(where)
    if not group.tensors:
        raise settings_files.wrong(
            path, "tensors", where, f"'tensors' of {title} is empty. List patterns such as \"head.*\"."
        )
    if group.decay != 1 and not decays:
        sentence = f"'decay' has no effect in {title}: the optimizer has no weight decay. Remove it."
        raise settings_files.wrong(path, "decay", where, sentence)
    if group.rate == 1 and group.decay == 1:
        sentence = (
            f"{title} has no effect: its learning rate and weight decay are those of the rest. Set 'rate' or 'decay'."
        )
        raise settings_files.wrong(path, "rate", where, sentence)
    return group


def of_tensors(rule: Optimizer, network: Network, cell: str) -> Optimizer:
    """Return the rule whose groups have names of trained tensors instead of patterns; its `decay` has names already.

    UserError: a pattern matches no trained tensor, a tensor is in two groups, or the decay of a group has no effect.
    """
    taken: dict[str, str] = {}
    found = []
    for group in rule.groups:
        names = [name for pattern in group.tensors for name in _matched(pattern, network, cell, taken)]
        if group.decay != 1 and not set(names) & set(rule.decay):
            raise UserError(
                f"The weight decay of the group {_listed(group)} has no effect on {cell}: none of its tensors decays."
            )
        found.append(replace(group, tensors=tuple(each.name for each in network.parameters if each.name in names)))
    return replace(rule, groups=tuple(found))


def _matched(pattern: str, network: Network, cell: str, taken: dict[str, str]) -> list[str]:
    """Return the trained tensors that a pattern matches, and note in `taken` that they are its own."""
    matched = [each for each in network.parameters if fnmatchcase(each.name, pattern)]
    names = [each.name for each in matched if each.trainable]
    if not names:
        why = "only tensors that are not trained" if matched else "no tensor"
        known = "" if matched else nearest(pattern, [each.name for each in network.parameters])
        raise UserError(f"The pattern '{pattern}' of a group of tensors matches {why} of {cell}.{known}")
    for name in names:
        if name in taken:
            raise UserError(
                f"The patterns '{taken[name]}' and '{pattern}' of groups of tensors overlap in {cell}: both match '{name}'. "
                "A tensor is in one group."
            )
        taken[name] = pattern
    return names


def _listed(group: TensorGroup) -> str:
    return ", ".join(f"'{pattern}'" for pattern in group.tensors)
