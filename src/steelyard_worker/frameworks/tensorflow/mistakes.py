"""Losses that are wrong on purpose: mistakes of a published program, to show what they do to a training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from steelyard_worker.protocol import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard_worker.frameworks.tensorflow.predictor import Tensors

    Loss = Callable[[Tensors, Tensors], tf.Tensor]
    Objective = Callable[[Tensors, Tensors], tuple[tf.Tensor, tf.Tensor]]

RIGHT, TWICE, SUMMED, BOTH = "as-described", "softmax-twice", "summed", "softmax-twice-and-summed"
# Loss and derivative by the second logit of two samples with the logits (0, 1), both of the second class.
SHOWN = {RIGHT: (0.3133, -0.1345), SUMMED: (0.3133, -0.2689), TWICE: (0.4885, -0.0760), BOTH: (0.4885, -0.1520)}


def objective(loss: Loss, kind: str) -> Objective:
    """Return a function of outputs and batch: (the mean loss, what is differentiated), by the value of the knob `loss`.

    A sum over the batch is differentiated instead of the mean; the loss that is reported stays the mean, as in the published
    program. Where the softmax is taken twice, the probabilities take the place of the logits.
    """

    def found(outputs: Tensors, batch: Tensors) -> tuple[tf.Tensor, tf.Tensor]:
        mean = loss(_twice(outputs) if kind in (TWICE, BOTH) else outputs, batch)
        samples = next(iter(batch.values())).shape[0]
        return mean, mean * samples if kind in (SUMMED, BOTH) else mean

    return found


def _twice(outputs: Tensors) -> Tensors:
    if "logits" not in outputs:
        raise Refusal("unsupported", "This network has no output 'logits' of which a softmax could be taken twice.")
    return {**outputs, "logits": tf.nn.softmax(outputs["logits"])}


def observed(kind: str) -> str:
    """Return the value of the knob that a loss and its derivative show."""
    logits, batch = tf.constant([[0.0, 1.0], [0.0, 1.0]]), {"label": tf.constant([1, 1])}

    def loss(outputs: Tensors, batch: Tensors) -> tf.Tensor:
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(batch["label"], outputs["logits"]))

    with tf.GradientTape() as tape:
        tape.watch(logits)
        mean, differentiated = objective(loss, kind)({"logits": logits}, batch)
    found = float(mean), float(tape.gradient(differentiated, logits)[0, 1])
    return next((kind for kind, expected in SHOWN.items() if np.allclose(found, expected, atol=1e-3)), "unknown")
