"""Canonical names for `mindspore.nn` cells, freezing, and the loss."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import TYPE_CHECKING

from mindspore import Tensor, nn, ops

from steelyard_worker import dropout as knob
from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mindspore import Parameter

BATCH_NORM = {"moving_mean": "running_mean", "moving_variance": "running_var"}


def named_by_cell(network: nn.Cell) -> dict[str, Parameter]:
    """Map canonical names to parameters of cells with canonical dotted names; batch-norm statistics are renamed."""
    found: dict[str, Parameter] = {}
    for path, parameter in network.parameters_and_names():
        cell, _, name = path.rpartition(".")
        found[f"{cell}.{BATCH_NORM.get(name, name)}"] = parameter
    return found


def dropout(rate: float) -> nn.Cell:
    """Return inverted dropout where the knob `dropout` is on: units become zero with this probability, the others grow."""
    return nn.Dropout(p=rate) if knob.is_on() else nn.Identity()


def observed_dropout(value: str) -> str:
    """Return the value of the knob `dropout` that the zeros show which a layer in training makes of ones."""
    with knob.built_as(value):
        found = dropout(0.5).set_train()(ops.ones(64)).asnumpy()
    return knob.ON if (found == 0).any() else knob.OFF


def compute_again(network: nn.Cell, names: Iterable[str]) -> None:
    """Make blocks of a network keep only their inputs for the backward pass. Refusal: it has no cell of such a name."""
    cells = dict(network.cells_and_names())
    for name in names:
        if name not in cells:
            message = f"The MindSpore implementation has no cell '{name}', which network.py lists as a block."
            raise Refusal("implementation", message)
        cells[name].recompute()
        for _, cell in cells[name].cells_and_names():
            if isinstance(cell, (nn.BatchNorm1d, nn.BatchNorm2d)):
                # Both passes move the running statistics towards the same new ones: two moves are one (P-56).
                kept = math.sqrt(1 - cell.momentum)
                cell.bn_train = ops.operations.BatchNorm(is_training=True, epsilon=cell.eps, momentum=1 - kept)


def observed_recomputation(value: str) -> str:
    """Return the value of the knob `recomputation` that MindSpore shows in the scope of a small block's cells."""
    network = nn.SequentialCell(OrderedDict(block=nn.SequentialCell(nn.ReLU())))
    if value != "none":
        compute_again(network, ["block"])
    return "blocks" if (network.block[0].get_scope() or "").startswith("recompute") else "none"


def freeze(body: nn.Cell) -> None:
    """Freeze every tensor of a cell: no gradients, and batch norms use their running statistics in training as well."""
    for parameter in body.get_parameters():
        parameter.requires_grad = False
    for _, cell in body.cells_and_names():
        if isinstance(cell, nn.BatchNorm2d):
            cell.use_batch_statistics = False


class CrossEntropy(nn.Cell):
    """Softmax cross-entropy from logits (N, K) and labels int32 (N,), mean over the batch.

    The mean is computed here. With `reduction="mean"` MindSpore uses another kernel on CPU, whose fast exponential causes a
    relative error of 3e-7 in loss and gradient, five times as much.
    """

    def __init__(self) -> None:
        super().__init__()
        self.each = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="none")

    def construct(self, logits: Tensor, label: Tensor) -> Tensor:
        return ops.mean(self.each(logits, label))
