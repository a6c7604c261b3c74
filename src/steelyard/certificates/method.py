"""How a certificate is judged: unit roundoffs, the probe noise and the limit in rounding units, with their reasons.

An implementation of finite precision cannot equal its float64 reference; it can only be as far away as rounding makes
it. The reference is therefore run again with all weights and inputs changed by seeded relative noise, and the change
of every tensor, scaled to one rounding, is that tensor's *rounding level*: what a single rounding of every input does
to it. Errors are judged in units of that level, so that a tensor in which rounding is amplified (a gradient through
twenty batch norms, a parameter after five chaotic steps) is given what it needs, and no other tensor is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.errors import UserError, nearest

if TYPE_CHECKING:
    from steelyard_worker.case import Optimizer
    from steelyard_worker.network import Network

# Raised by every change that can turn a certificate; part of every certificate's key.
#   1  rounding levels from two noisy runs, one limit for every tensor
#   2  a candidate without float64 that is beyond the limit is judged on the draws of the noisy runs as well
#   3  it is judged on draws a thousandth away instead: what lies within a rounding of a tie lies within sixteen of it
#   4  two references may also differ by a thousandth of a float32 rounding level, which no verdict can turn on
#   5  the longest sum counts the columns and rows of parameters too: matrix products, and softmax over a vocabulary; without
#      float64, a loss that is a likelihood of whole sequences is granted what the candidate's precision loses of it; where more
#      than rounding is granted, elements whose update turns round are counted over all tensors
VERSION = 5

# Half a unit in the last place, relative: the size of one rounding (IEEE 754-2019, table 3.6; bfloat16 keeps 8 bits).
UNIT_ROUNDOFFS = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}

# The noise is this many roundings large, and what it causes is divided by as much. In the smooth case this changes
# nothing. It matters where a network has kinks: a ReLU that flips changes gradients by a finite amount (1e-4 to 1e-3
# relative on small images), so noise of one rounding sees a flip seldom, a real implementation, which rounds at every
# operation, sees one several times as often, and a right one would be rejected by chance. Noise of 16 roundings sees
# flips at least as often as an implementation does. Measured on resnet18 digits, float32, two noisy runs: with noise of 1
# right implementations stood at up to 18,806 units, with noise of 16 at up to 22.
PROBE = 16.0

# Perturbed runs of the reference: variants of a certify task; 0 is the unperturbed one.
VARIANTS = (0, 1, 2)

# Draws of weights and inputs on which a candidate without float64 is judged again: variants, and their relative distance. It
# is far enough that a ReLU at its kink is there no more, and near enough that the rounding levels hold.
DRAWS = (4, 5, 6)
DRAW_DISTANCE = 2.0**-10

# Optimizer steps of a certificate. States are compared after steps 1, 2 and 5: rules with memory (momentum, bias
# correction) first show in step 2, where rounding has not yet been amplified by training.
STEPS = 5

# A full-size network is certified by one step, and its large tensors at this many places each (`Scope`).
FULL_SAMPLE = 2**17
FULL_BATCH = 4

# The largest error of a right implementation, in rounding levels of its tensor: the geometric mean of 48, the worst right one
# measured, and 884, the weakest of the 46 mistakes it was set by; 4 times above the one, 4 times below the other. The figures
# are in tests/certificates/README.md.
LIMIT = 200.0

# Two float64 references must agree to this, relative to the tensor (states: relative to their change since the start).
AGREEMENT = 1e-9

# Or to this share of a float32 rounding level. An adaptive rule divides a gradient by its own size: where an element's is zero
# but for rounding, as of a batch norm's shift whose channel no ReLU clips, the step it takes differs between any two libraries,
# and the rounding level says so.
AGREEMENT_SHARE = 1e-3


# How many tensors may hold more elements whose update turned round than noise turns, before one does by chance.
TURNED_CHANCE = 1e5


@dataclass(frozen=True)
class Scope:
    """How much of a training a certificate covers: optimizer steps, and elements looked at of each tensor (0: all)."""

    steps: int = STEPS
    sample: int = 0


FULL_SIZE = Scope(1, FULL_SAMPLE)


@dataclass(frozen=True)
class Method:
    """Everything that decides for one precision. `allowance` is an error that is always granted, whatever the level."""

    precision: str
    unit_roundoff: float
    limit: float = LIMIT
    allowance: float = 0.0
    version: int = VERSION

    @property
    def noise(self) -> float:
        """Relative standard deviation of the reference's perturbations; well above float64's own rounding."""
        return PROBE * max(self.unit_roundoff, UNIT_ROUNDOFFS["float32"])


def longest_sum(network: Network, batch: int) -> int:
    """Return how many terms the longest sum of a training step has.

    Batch statistics and the gradients of biases are sums over samples times positions of the largest input; a matrix product
    sums over a parameter's columns, a softmax over the rows of what makes its logits. Added one after the other, n terms lose
    up to n roundings of their absolute sum (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 4.2), and do
    lose many of them where the terms are alike: over the background of handwritten digits the batch-norm means of three
    frameworks are off by 700 to 6,000 rounding levels, and MXNet's log-softmax over 32,320 alike words by 8e-6. An
    implementation beyond LIMIT is therefore run in float64, where definitions show and sums do not: there it must be within the
    same limits, and in its own precision within what noise of n roundings does to the reference.
    """
    positions = (each.shape[1:] if len(each.shape) == 3 else each.shape for each in network.inputs)
    summed = (each.shape for each in network.parameters if each.kind != "embedding")  # rows are looked up there
    extents = (max(shape[0], math.prod(shape[1:])) for shape in summed)
    return max(batch * max(math.prod(shape) for shape in positions), *extents)


def likelihood_roundings(network: Network, loss: float) -> float:
    """Return how many roundings the recursion over a log-likelihood loses, as noise: `loss` is its mean, in nats.

    Every step rounds a number that grows to `loss`, by up to loss / sqrt(3) roundings in the root mean square, and the errors of
    T steps add up as a random walk does: loss * sqrt(T) / 3. What is an absolute error of a logarithm is a relative one of its
    exponential, and the gradients are exponentials here. Deep Speech 2 at its published size: 1,268 nats, 635 frames, 6.3e-4 in
    float32; its gradients are off by 7.1e-4 in TensorFlow, 4.9e-4 in MindSpore and 3.5e-4 in MXNet (medians).
    """
    return abs(loss) * math.sqrt(network.recursion) / 3


def correction_roundings(rule: Optimizer, step: int) -> float:
    """Return what computing 1 - beta^t in float32 costs an update, in roundings, as the mean over steps 1 to `step`.

    One rounding of beta^t is 1 / (1 - beta^t) roundings of the difference, half of that under the square root: 510 for the
    first step of Adam with its usual constants. Rules that compute in float64 cost nothing.
    """
    if rule.name == "sgd" or rule.correction == "float64":
        return 0.0
    each = [1 / (1 - rule.beta1**t) + 0.5 / (1 - rule.beta2**t) for t in range(1, step + 1)]
    return sum(each) / max(1, step)


def method(precision: str) -> Method:
    """Return how implementations of this precision are judged.

    float32 is calibrated. float64 is what the two references are held to: AGREEMENT, or the limit in float64 units
    where training amplifies one float64 rounding beyond that. float16 and bfloat16 follow from their unit roundoff
    alone; no implementation has been measured in them yet.
    """
    if precision not in UNIT_ROUNDOFFS:
        known = list(UNIT_ROUNDOFFS)
        raise UserError(f"No certificate is defined for the precision '{precision}'.{nearest(precision, known)}")
    allowance = AGREEMENT if precision == "float64" else 0.0
    return Method(precision, UNIT_ROUNDOFFS[precision], allowance=allowance)
