"""The least data that a step must move between memory and processor, from the network's description alone."""

import math
from dataclasses import dataclass

from steelyard_worker.case import NO_OPTIMIZER, Optimizer
from steelyard_worker.network import Network
from steelyard_worker.records import Count

SIZES = {"float16": 2, "bfloat16": 2, "float64": 8}
"""Bytes of a scalar in the precisions that do not have 4."""
INPUT_BYTES = 4
MOMENTS = {"adam": 2, "adamw": 2, "lamb": 2}
# Of the scalars that a description counts as stored for the backward pass, at least these come out of a convolution or a matrix
# product: one of three of convolution, batch norm and ReLU, one of four where a mask follows, and more of an LSTM or attention.
# What follows from them element by element may be computed again while they are read, as fused implementations do.
KEPT = 1 / 4


@dataclass(frozen=True)
class Traffic:
    """Bytes of a step that do not depend on the batch (`fixed`), and bytes of each sample.

    `fixed` and `sample` count every transfer; `held_fixed` and `held_sample` count the same data once, as it fills a cache.
    """

    fixed: Count = 0
    sample: Count = 0
    held_fixed: Count = 0
    held_sample: Count = 0

    def moved(self, batch: int) -> int:
        """Return the least bytes that a step of this batch moves."""
        return self.fixed + batch * self.sample

    def held(self, batch: int) -> int:
        """Return the least bytes of the data that a step of this batch uses."""
        return self.held_fixed + batch * self.held_sample


def traffic(network: Network, rule: Optimizer, precision: str) -> Traffic:
    """Return the least traffic of a step, or of a forward pass where nothing is trained.

    Weights are read once; trained weights and the moments of the optimizer are written once as well, and moments read. Gradients
    may be used as soon as they are computed, unless all of them must be known before the first update, as for clipping. Of an
    embedding, only rows that occur need to be read, so it counts only where the rule updates all rows. Stored activations are
    written once and read once.
    """
    infers, size = rule == NO_OPTIMIZER, SIZES.get(precision, 4)
    moments = 0 if infers else MOMENTS.get(rule.name, 1 if rule.momentum else 0)
    moved = held = 0
    for each in network.parameters:
        trained = each.trainable and not infers
        if each.kind == "embedding" and not (trained and (moments or rule.decay_of(each.name))):
            continue
        gradient = 1 if trained and rule.clip else 0
        moved += each.count * (1 + (1 + 2 * moments + 2 * gradient if trained else 0))
        held += each.count * (1 + (moments + gradient if trained else 0))
    kept = 0 if infers else math.floor(KEPT * network.activations) * size
    given = INPUT_BYTES * sum(math.prod(each.shape) for each in network.inputs)
    return Traffic(size * moved, 2 * kept + given, size * held, kept + given)
