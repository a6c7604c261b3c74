"""Which of the few tensors of the check of an update rule are in its groups of tensors. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from steelyard_worker.case import Optimizer, TensorGroup


def for_tensors(rule: Optimizer, names: Sequence[str]) -> tuple[TensorGroup, ...]:
    """Return the groups of a rule with these tensors in place of the network's; they take turns, and the first is in none.

    Groups for which no tensor is left are not among them: the steps of the network itself show those.
    """
    if not rule.groups:
        return ()
    turns = len(rule.groups) + 1
    shares = [tuple(names[place::turns]) for place in range(1, turns)]
    return tuple(replace(group, tensors=own) for group, own in zip(rule.groups, shares, strict=True) if own)


def decayed(rule: Optimizer, groups: Sequence[TensorGroup], names: Sequence[str], usual: Sequence[str]) -> list[str]:
    """Return which of the tensors decay, in their order: the usual ones, and one of each group in which any tensor decays.

    So a group whose weight decay is ignored shows. `groups`: those of the few tensors; `rule`: that of the network.
    """
    if not rule.groups:
        return list(usual)
    found = set(usual)
    for group, own in zip(rule.groups, groups, strict=False):
        if not found & set(own.tensors) and set(group.tensors) & set(rule.decay):
            found.add(own.tensors[0])
    rest = [name for name in names if not any(name in own.tensors for own in groups)]
    grouped = {name for group in rule.groups for name in group.tensors}
    if not found & set(rest) and set(rule.decay) - grouped:
        found.add(rest[0])
    return [name for name in names if name in found]
