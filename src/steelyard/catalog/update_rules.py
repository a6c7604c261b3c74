"""Read the optimizers of a workload. A constant that its rule does not use is refused: it would change nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from steelyard.catalog import schedules, tensor_groups
from steelyard.errors import UserError, nearest
from steelyard.files import settings_files
from steelyard.files.ranges import Range
from steelyard_worker.case import Optimizer
from steelyard_worker.network import KINDS

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard_worker.network import Network

# A learning rate of 0 would train nothing, and a negative one would climb.
RATE = Range(above=0)
# A momentum or beta of 1 never forgets.
MEMORY = Range(0, below=1)
# Of an update rule's constants. They are not in the worker's `Optimizer`, because a change of its file renews all certificates.
RANGES = {
    "learning_rate": RATE,
    "momentum": MEMORY,
    "beta1": MEMORY,
    "beta2": MEMORY,
    "epsilon": Range(0),
    "weight_decay": Range(0),
    "clip": Range(0),
}
# The constants that some update rules use and others do not. A rule of a framework of one's own may use all of them.
MOMENTS = ("beta1", "beta2", "epsilon")
CONSTANTS = {"sgd": ("momentum", "nesterov"), "adam": MOMENTS, "adamw": MOMENTS, "lamb": MOMENTS}


def read(path: Path, where: str, table: Any) -> Optimizer:
    """Read the table [where] of a specification. UserError: a key is unknown, out of range, or has no effect."""
    rule: Optimizer = settings_files.build(path, table, where, Optimizer, RANGES)
    for kind in rule.decay:
        if kind not in KINDS:
            known = nearest(kind, list(KINDS))
            raise settings_files.wrong(path, "decay", where, f"'decay' lists kinds of tensors, not '{kind}'.{known}")
    for key in table:
        if reason := _without_effect(rule, key):
            raise settings_files.wrong(path, key, where, f"'{key}' has no effect in [{where}]: {reason}")
    groups = tensor_groups.read(path, f"{where}.groups", rule.groups, bool(rule.weight_decay))
    return replace(rule, schedule=schedules.read(path, f"{where}.schedule", table.get("schedule", {})), groups=groups)


def of_tensors(rule: Optimizer, network: Network, cell: str) -> Optimizer:
    """Return the rule with names of trained tensors: those whose kinds `decay` lists, and those that patterns of groups match.

    `cell`: what to call the network. Presets of a workload may differ in their kinds of tensors, so some of these may be missing.
    UserError: nothing decays, or a group is wrong.
    """
    named = _decaying(rule, network, cell) if rule.decay else rule
    return tensor_groups.of_tensors(named, network, cell)


def _decaying(rule: Optimizer, network: Network, cell: str) -> Optimizer:
    listed = [parameter for parameter in network.parameters if parameter.kind in rule.decay]
    trained = tuple(parameter.name for parameter in listed if parameter.trainable)
    if not trained:
        kinds = {parameter.kind for parameter in network.parameters if parameter.trainable}
        why = "all its tensors of these kinds are frozen" if listed else "it has no tensor of these kinds"
        have = ", ".join(kind for kind in KINDS if kind in kinds)
        named = ", ".join(rule.decay)
        raise UserError(
            f"The weight decay ({named}) has no effect on {cell}: {why}. It trains tensors of the kinds {have}."
        )
    return replace(rule, decay=trained)


def _without_effect(rule: Optimizer, key: str) -> str:
    """Return why a key of a table changes nothing; empty if it does."""
    used = CONSTANTS.get(rule.name)
    if used is not None and key not in used and any(key in constants for constants in CONSTANTS.values()):
        return f"{rule.name} does not use it. Remove it."
    if key == "nesterov" and rule.nesterov and not rule.momentum:
        return "there is no momentum. Set 'momentum', or remove it."
    if key == "weight_decay" and rule.weight_decay and not rule.decay:
        return 'nothing decays. Set \'decay\' to kinds of tensors, such as ["conv", "dense"].'
    if key == "decay" and rule.decay and not rule.weight_decay:
        return "there is no weight decay. Set 'weight_decay', or remove it."
    return ""
