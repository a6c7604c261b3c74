"""How a certificate is judged: unit roundoffs, size of the noise and limits, with the reasons for each.

An implementation of finite precision cannot equal its float64 reference exactly; rounding keeps it some distance away. To
measure that distance, the reference runs again with seeded relative noise on all weights and inputs. The change of a tensor,
scaled down to one rounding, is that tensor's *rounding level*: the effect of a single rounding of every input on it. Errors are
measured in units of this level. A tensor in which rounding is amplified (a gradient through twenty batch norms, a parameter
after five chaotic steps) gets the tolerance that it needs, and no other tensor does.
"""

import math
from dataclasses import dataclass

from steelyard.errors import UserError, nearest
from steelyard_worker.case import NO_OPTIMIZER, Optimizer
from steelyard_worker.network import STATISTICS, Network

# Raised with every change that can alter the result of a certificate; part of every certificate's key.
#   1  rounding levels from two noisy runs, one limit for every tensor
#   2  a candidate without float64 that exceeds the limit is also compared on the noisy runs' weights and inputs
#   3  it is compared on random draws a thousandth away instead: a value within one rounding of a tie is still within the sixteen
#      roundings of the noisy runs
#   4  two references may also differ by a thousandth of a float32 rounding level, which cannot change any result
#   5  the longest sum also counts the columns and rows of parameters: matrix products, and softmax over a vocabulary. Without
#      float64, a loss that is a likelihood of whole sequences is allowed the error of that likelihood in the candidate's
#      precision. Where more than rounding is allowed, sign changes of updates are counted over all tensors
#   6  references may be compiled without optimisation; the losses of the implementation are recorded, to compare
#      those of trials with
#   7  a candidate whose errors long sums may explain must also be within rounding on a small batch without long sums; a third
#      reference decides between two that disagree
#   8  one step with the network's adversarial weights, batch and update rule is compared, too
#   9  where the gradients of a large batch could hide a lower precision, the candidate must also be within rounding on a
#      small batch; the adversarial step is judged on the small batch, too; where the learning rate changes, so do those of a
#      certificate's steps, and only losses whose rates are those of training are compared with those of trials
#  10  tensors that are not trained and stay as they are in the reference must stay bit for bit
#  11  one more step where a network has weights that isolate a layer from the rounding of those before it
#  12  where training is chaotic, results in float64 are compared up to the step in which it has become so
#  13  the error of a likelihood below one nat is measured in nats
#  14  without float64, sign changes of an adaptive optimizer's updates are allowed where nothing before the first update differs
#      and the candidate matches on a small batch
#  15  precision is judged on a few samples that fill the timed batch, against a reference with the candidate's batch statistics
#      where these flip ReLUs; sums over that batch may lose one rounding a term. The update rule is checked by itself. A lower
#      precision in oneDNN's log, a setting that was changed, and a replaced clock or check reject. Imported files decide, too.
#      Without data, batches take turns. Outputs in inference before training are compared with weights that make variances small
VERSION = 15

# Half a unit in the last place, relative: the size of one rounding (IEEE 754-2019, table 3.6; bfloat16 has 8 bits of precision).
UNIT_ROUNDOFFS = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}

# Size of the noise in roundings; its effect is divided by the same number. In a smooth network this changes nothing. It matters
# where a network has kinks: a ReLU that flips changes gradients by a finite amount (1e-4 to 1e-3 relative on small images).
# Noise of one rounding rarely flips a ReLU. A real implementation rounds at every operation and flips one several times as often,
# so a correct implementation would be rejected by chance. Noise of 16 roundings flips at least as many as an implementation does.
# Measured on resnet18 digits, float32, two noisy runs: with noise of 1 rounding, correct implementations reached 18,806 units,
# with noise of 16 roundings 22.
NOISE_ROUNDINGS = 16.0

# Runs of the first reference, numbered by perturbation: 0 is unperturbed, the others have noise with that seed.
PERTURBATIONS = (0, 1, 2)

# Random draws of weights and inputs for a second comparison of a candidate without float64: the numbers of their perturbations,
# and their relative distance from the original values. It is large enough that a ReLU at its kink moves away from it, and small
# enough that the rounding levels remain valid.
RANDOM_DRAWS = (4, 5, 6)
RANDOM_DRAW_NOISE = 2.0**-10

# Optimizer steps of a certificate. States are compared after steps 1, 2 and 5: the memory of an optimizer (momentum, bias
# correction) first shows in step 2, where training has not yet amplified rounding.
STEPS = 5

# A full-size network is certified with one step of a small batch, and this many elements of each large tensor (`Scope`).
FULL_SAMPLE = 2**17
FULL_BATCH = 4

# The largest error of a correct implementation, in rounding levels of its tensor. It is the geometric mean of 48, the worst
# correct implementation measured, and 884, the smallest of the 46 bugs used to set it: 4 times above the one and 4 times below
# the other. tests/certificates/README.md has the figures.
LIMIT = 200.0

# Two float64 references must agree to this, relative to the tensor (states: relative to their change since the start).
AGREEMENT = 1e-9

# Or to this share of a float32 rounding level. An adaptive optimizer divides a gradient by its own size. Where the gradient of an
# element is zero except for rounding (the shift of a batch norm whose channel no ReLU clips), the step of that element differs
# between any two libraries, and the rounding level shows it.
AGREEMENT_SHARE = 1e-3

# Training is chaotic from the step on in which the noise of a reference's runs has changed the median trained tensor by this
# share of its whole change since the start. Noise cannot grow much beyond that, so it no longer shows how much float64's own
# rounding, which is far smaller, will still grow, and two results in float64 need not agree later. Inception v3 at a batch of
# four: the noise changes states by 0.08 after one step, 0.66 after two and 1.09 after five. PyTorch, TensorFlow and JAX agree to
# 2e-10 after two steps and differ by 0.17 after five. The limits of float32 do not change: LIMIT roundings of such a tensor are
# at least three times its change.
CHAOTIC = 0.25

# Errors of a likelihood are relative to at least this many nats. It is a difference of logarithms, which have about that size, as
# have their roundings. Inception v3 at its published size memorises a single image: its loss is 6.9, 0.23, 3e-5, 8e-9
# and 6e-12, of which float32 computes the last two as 0. The third was off by up to 52 %, and three references in float64
# differed in the last one.
SMALLEST_LIKELIHOOD = 1.0

# The samples on which the precision of a candidate is judged, where it is beyond LIMIT and its float64 run is not, or its
# gradients are coarse: four, two of large images, and one step. They fill the whole batch again and again, so that a library
# chooses the kernels that it is timed with; a mean over copies is that of the samples, and no more ReLUs are near a tie.
# Only sums over the batch are allowed more than LIMIT (`roundings_of_a_sum`).
SMALL_BATCH = (2, 4)
# In a network with more batch norms than this, the few samples are a batch by themselves. Batch statistics of many terms flip
# ReLUs on every draw, and whether a reference with the candidate's statistics has all of these flips was measured for up to 58:
# GoogLeNet tiny at a batch of 64 in PyTorch is at 95,000 levels without it and at 22 with it. Inception v3 has 95.
MOST_NORMS = 64
SMALL_BATCH_TERMS = 2**14
SMALL_STEPS = 1

# Gradients are coarse where an error of this size passes. Rounding one operand of a product to TensorFloat-32, whose unit
# roundoff is 2^-11, causes a root mean square error of 2^-11 / sqrt(3), 1.15 times this. In ResNet-18 tiny, errors of up to 9e-2
# pass at a batch of 64, because some ReLUs flip in every run, and of 2e-4 at a batch of four.
COARSE_GRADIENTS = 2.0**-12

# A tensor that was rounded to float32 once differs by about this much or more: an eighth of a unit roundoff. Two references
# that differ by more than this and by no more than float32 rounding look as if one of them computes in float32.
LEAST_FLOAT32_ERROR = UNIT_ROUNDOFFS["float32"] / 8

# Kinds of parameters (`network.KINDS`) whose gradient is a sum over samples and positions.
SUMMED = ("bias", "beta", "gamma", "lstm_b")

# One tensor in this many may have more sign changes of updates than are allowed, by chance.
SIGN_CHANGE_ODDS = 1e5


@dataclass(frozen=True)
class Scope:
    """How much of a training a certificate covers: optimizer steps, and compared elements of each tensor (0: all)."""

    steps: int = STEPS
    sample: int = 0


FULL_SIZE = Scope(1, FULL_SAMPLE)


@dataclass(frozen=True)
class Method:
    """All constants for one precision. `allowance` is a relative error that is always allowed, whatever the rounding level."""

    precision: str
    unit_roundoff: float
    limit: float = LIMIT
    allowance: float = 0.0
    version: int = VERSION

    @property
    def noise(self) -> float:
        """Relative standard deviation of the reference's perturbations; far larger than float64's own rounding."""
        return NOISE_ROUNDINGS * max(self.unit_roundoff, UNIT_ROUNDOFFS["float32"])


def method_for(precision: str) -> Method:
    """Return how implementations of this precision are judged; UserError for an unknown precision.

    float32 is calibrated. float64 applies to the two references: AGREEMENT, or the limit in float64 units where training
    amplifies one float64 rounding beyond that. float16 and bfloat16 follow from their unit roundoff alone; no implementation has
    been measured in them yet.
    """
    if precision not in UNIT_ROUNDOFFS:
        known = list(UNIT_ROUNDOFFS)
        raise UserError(f"No certificate is defined for the precision '{precision}'.{nearest(precision, known)}")
    allowance = AGREEMENT if precision == "float64" else 0.0
    return Method(precision, UNIT_ROUNDOFFS[precision], allowance=allowance)


def longest_sum(network: Network, batch: int) -> int:
    """Return the number of terms in the longest sum of a training step.

    Batch statistics and the gradients of biases are sums over samples times positions of the largest input. A matrix product
    sums over the columns of a parameter, a softmax over the rows of the parameter that produces its logits. Adding n terms one
    after the other loses up to n roundings of their absolute sum (Higham, Accuracy and Stability of Numerical Algorithms, 2002,
    section 4.2), and many of these are really lost where the terms are equal. Over the background of handwritten digits the
    batch-norm means of three frameworks are off by 700 to 6,000 rounding levels, and MXNet's log-softmax over 32,320 equal words
    by 8e-6. An implementation beyond LIMIT therefore also runs in float64, which shows its definition without the error of its
    sums. There it must be within the same limits; in its own precision it must be within the effect of n roundings of noise on
    the reference.
    """
    summed = (
        each.shape for each in network.parameters if each.kind != "embedding"
    )  # its rows are looked up, not summed
    extents = (max(shape[0], math.prod(shape[1:])) for shape in summed)
    return max(terms_over_a_batch(network, batch), *extents)


def terms_over_a_batch(network: Network, batch: int) -> int:
    """Return the number of terms in a sum over the samples and positions of a batch: batch statistics, gradients of biases."""
    return batch * _positions(network)


def small_batch(network: Network, batch: int) -> int:
    """Return the number of samples of the small batch of a case with `batch` samples."""
    fewest, most = SMALL_BATCH
    return min(batch, max(fewest, min(most, SMALL_BATCH_TERMS // _positions(network))))


def fills_the_batch(network: Network) -> bool:
    """Return whether the few samples on which precision is judged fill the whole batch; otherwise they are one by themselves."""
    return sum(each.kind == "running_mean" for each in network.parameters) <= MOST_NORMS


def _positions(network: Network) -> int:
    """Return the positions of the largest input: pixels of an image, elements of anything else."""
    return max(math.prod(each.shape[1:] if len(each.shape) == 3 else each.shape) for each in network.inputs)


def roundings_of_a_sum(kind: str, terms: int) -> float:
    """Return how many roundings a tensor may lose that is itself a sum over a batch of random samples; 0 for other kinds.

    Of batch statistics, whose terms are random numbers here, the root of the number of terms: PyTorch, TensorFlow and MXNet add
    65,536 of them one after the other and are off by up to 155 roundings. The terms of the gradient of a bias cancel each other,
    and the error is relative to what is left: up to one rounding a term. PyTorch loses 280 roundings of 18,432 terms. No other
    tensor follows from such a gradient.
    """
    if kind in STATISTICS:
        return math.sqrt(terms)
    return float(terms) if kind in SUMMED else 0.0


def likelihood_roundings(network: Network, loss: float) -> float:
    """Return the error of the recursion over a log-likelihood, in roundings; `loss` is its mean in nats.

    Every step rounds a number that grows to `loss`, with a root mean square error of up to loss / sqrt(3) roundings. The errors
    of T steps add up like a random walk: loss * sqrt(T) / 3. An absolute error of a logarithm is a relative error of its
    exponential, and the gradients are exponentials here. Deep Speech 2 at its published size has 1,268 nats and 635 frames; this
    gives 6.3e-4 in float32. Its gradients are off by 7.1e-4 in TensorFlow, 4.9e-4 in MindSpore and 3.5e-4 in MXNet (medians).
    """
    return abs(loss) * math.sqrt(network.recursion) / 3


def is_adaptive(rule: Optimizer) -> bool:
    """Return whether an update rule divides a gradient by its own size, and so makes a full step from one near zero."""
    return rule.name not in ("sgd", NO_OPTIMIZER.name)


def correction_roundings(rule: Optimizer, step: int) -> float:
    """Return the relative error of an update from 1 - beta^t in float32, in roundings, as the mean of steps 1 to `step`.

    One rounding of beta^t is 1 / (1 - beta^t) roundings of the difference, and half of that under the square root: 510 for the
    first step of Adam with its usual constants. Rules that compute in float64 add no error.
    """
    if not is_adaptive(rule) or rule.correction == "float64":
        return 0.0
    each = [1 / (1 - rule.beta1**t) + 0.5 / (1 - rule.beta2**t) for t in range(1, step + 1)]
    return sum(each) / max(1, step)
