"""Canonical names for `mindspore.nn` cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mindspore import Parameter, nn

BATCH_NORM = {"moving_mean": "running_mean", "moving_variance": "running_var"}


def named_by_cell(network: nn.Cell) -> dict[str, Parameter]:
    """Map canonical names to parameters where cells carry the canonical dotted names; batch-norm statistics are renamed."""
    found: dict[str, Parameter] = {}
    for path, parameter in network.parameters_and_names():
        cell, _, name = path.rpartition(".")
        found[f"{cell}.{BATCH_NORM.get(name, name)}"] = parameter
    return found
