"""Describe a convolutional network layer by layer: the extent of the image, the tensors, and the cost.

For networks of blocks "convolution without bias, batch norm, ReLU". The convolution of a block is `<name>.conv.weight`, its
batch norm `<name>.bn`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from steelyard_worker.network import Adversarial, Parameter, batch_norm
from steelyard_worker.sizes import require

if TYPE_CHECKING:
    from collections.abc import Iterable

Pair = tuple[int, int]
# Where batch norms normalise, their scale decides how large activations are: a standard deviation of 8 before most ReLUs.
LARGE_ACTIVATIONS = Adversarial(factors={"*.gamma": 8.0})
# Activations stored for the backward pass of a block: the outputs of convolution, batch norm and ReLU.
STORED = 3


@dataclass(frozen=True)
class Extent:
    """Shape of one sample between two layers."""

    channels: int
    height: int
    width: int


@dataclass(frozen=True)
class Step:
    """A block with `out` channels; kernel, stride and padding are (vertical, horizontal) or one number."""

    out: int
    kernel: int | Pair = 1
    stride: int = 1
    padding: int | Pair = 0


class Layers:
    """Collects `parameters` in network order, `macs`, the multiply-accumulates of one sample's forward pass, and `activations`.

    `probes`: the names of all blocks, whose outputs can be compared.
    `initial` is the distribution of kernels. Shifts of batch norms are initialised with zero, or with a ramp up to `beta` over
    the channels.
    """

    def __init__(self, initial: str, beta: float = 0.0) -> None:
        self.parameters: list[Parameter] = []
        self.probes: list[str] = []
        self.macs = self.activations = 0
        self._initial, self._beta = initial, beta

    def block(self, name: str, x: Extent, step: Step, initial: str = "") -> Extent:
        """Add a block and return the extent after it; `initial` replaces the network's distribution."""
        self.probes.append(name)
        rows, columns = pair(step.kernel)
        shape = (step.out, x.channels, rows, columns)
        self.parameters.append(Parameter(f"{name}.conv.weight", shape, "conv", initial or self._initial))
        shift = f"ramp:{self._beta:g}" if self._beta else "constant:0"
        self.parameters += [
            replace(each, initial=shift) if each.kind == "beta" else each for each in batch_norm(f"{name}.bn", step.out)
        ]
        seen = window(x, step.kernel, step.stride, step.padding)
        self.macs += step.out * x.channels * rows * columns * seen.height * seen.width
        self.activations += STORED * step.out * seen.height * seen.width
        return replace(seen, channels=step.out)

    def branch(self, name: str, x: Extent, *steps: Step) -> Extent:
        """Add blocks in sequence, `<name>.step1` and so on, and return the extent after them."""
        for number, step in enumerate(steps, 1):
            x = self.block(f"{name}.step{number}", x, step)
        return x

    def dense(self, name: str, features: int, out: int, initial: str) -> None:
        """Add a dense layer; its bias is initialised with zero."""
        self.parameters.append(Parameter(f"{name}.weight", (out, features), "dense", initial))
        self.parameters.append(Parameter(f"{name}.bias", (out,), "bias", "constant:0"))
        self.macs += out * features


def window(x: Extent, kernel: int | Pair, stride: int, padding: int | Pair = 0, ceil: bool = False) -> Extent:
    """Return the extent after a sliding window, rounded down unless `ceil`; SizesError if the window does not fit."""
    (rows, columns), (vertical, horizontal) = pair(kernel), pair(padding)
    spare = stride - 1 if ceil else 0
    height = (x.height + 2 * vertical - rows + spare) // stride + 1
    width = (x.width + 2 * horizontal - columns + spare) // stride + 1
    inside = f"an image of {x.height}x{x.width}, which is what one of its layers gets"
    require(min(height, width) >= 1, f"a window of {rows}x{columns} does not fit into {inside}")
    return Extent(x.channels, height, width)


def concatenated(branches: Iterable[Extent]) -> Extent:
    """Return the extent of branches concatenated along the channels; SizesError if their extents differ."""
    first, *others = branches
    equal = all((other.height, other.width) == (first.height, first.width) for other in others)
    require(equal, "branches of different extents cannot be concatenated")
    return replace(first, channels=first.channels + sum(other.channels for other in others))


def pair(number: int | Pair) -> Pair:
    """Return (vertical, horizontal), also for one number."""
    return (number, number) if isinstance(number, int) else number
