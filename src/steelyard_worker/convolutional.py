"""Follow an image through the layers of a convolutional network, as data: its extent, the tensors met, the cost so far.

Every `network.py` of blocks "convolution without bias, batch norm, ReLU" may use it; a convolution is `<name>.conv.weight`,
its batch norm `<name>.bn`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from steelyard_worker.network import Parameter, batch_norm

if TYPE_CHECKING:
    from collections.abc import Iterable

Pair = tuple[int, int]
# What is kept of a convolution, a batch norm and a ReLU for the backward pass: each one's output.
KEPT = 3


@dataclass(frozen=True)
class Extent:
    """What one sample looks like between two layers."""

    channels: int
    height: int
    width: int


@dataclass(frozen=True)
class Step:
    """Convolution, batch norm, ReLU: `out` channels; kernel, stride and padding as (vertical, horizontal) or one number."""

    out: int
    kernel: int | Pair = 1
    stride: int = 1
    padding: int | Pair = 0


class Layers:
    """Collects `parameters` in network order, `macs`, the multiply-accumulates of one sample's forward pass, and `activations`.

    `initial` is the distribution of kernels. Shifts of batch norms start at zero, or along a ramp up to `beta` over the channels.
    """

    def __init__(self, initial: str, beta: float = 0.0) -> None:
        self.parameters: list[Parameter] = []
        self.macs = self.activations = 0
        self._initial, self._beta = initial, beta

    def block(self, name: str, x: Extent, step: Step, initial: str = "") -> Extent:
        """Convolution, batch norm, ReLU -> the extent after it; `initial` replaces the network's distribution."""
        rows, columns = pair(step.kernel)
        shape = (step.out, x.channels, rows, columns)
        self.parameters.append(Parameter(f"{name}.conv.weight", shape, "conv", initial or self._initial))
        shift = f"ramp:{self._beta:g}" if self._beta else "constant:0"
        self.parameters += [
            replace(each, initial=shift) if each.kind == "beta" else each for each in batch_norm(f"{name}.bn", step.out)
        ]
        seen = window(x, step.kernel, step.stride, step.padding)
        self.macs += step.out * x.channels * rows * columns * seen.height * seen.width
        self.activations += KEPT * step.out * seen.height * seen.width
        return replace(seen, channels=step.out)

    def branch(self, name: str, x: Extent, *steps: Step) -> Extent:
        """Blocks one after the other, `<name>.step1` and so on."""
        for number, step in enumerate(steps, 1):
            x = self.block(f"{name}.step{number}", x, step)
        return x

    def dense(self, name: str, features: int, out: int, initial: str) -> None:
        """Dense layer with a bias that starts at zero."""
        self.parameters.append(Parameter(f"{name}.weight", (out, features), "dense", initial))
        self.parameters.append(Parameter(f"{name}.bias", (out,), "bias", "constant:0"))
        self.macs += out * features


def window(x: Extent, kernel: int | Pair, stride: int, padding: int | Pair = 0, ceil: bool = False) -> Extent:
    """Where a sliding window leads, rounded down unless `ceil`; channels stay. A window that fits nowhere is a ValueError."""
    (rows, columns), (above, beside) = pair(kernel), pair(padding)
    spare = stride - 1 if ceil else 0
    height = (x.height + 2 * above - rows + spare) // stride + 1
    width = (x.width + 2 * beside - columns + spare) // stride + 1
    if min(height, width) < 1:
        message = f"a window of {rows}x{columns} does not fit an image that is {x.height}x{x.width} by then"
        raise ValueError(message)
    return Extent(x.channels, height, width)


def concatenated(branches: Iterable[Extent]) -> Extent:
    """Branches of one block side by side in channels; extents that differ are a ValueError."""
    first, *others = branches
    if any((other.height, other.width) != (first.height, first.width) for other in others):
        message = "branches of different extents cannot be concatenated"
        raise ValueError(message)
    return replace(first, channels=first.channels + sum(other.channels for other in others))


def pair(number: int | Pair) -> Pair:
    """(vertical, horizontal) of one number or of two."""
    return (number, number) if isinstance(number, int) else number
