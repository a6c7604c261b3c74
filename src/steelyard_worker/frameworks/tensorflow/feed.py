"""The training batches through `tf.data`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

if TYPE_CHECKING:
    import numpy as np

    from steelyard_worker.batches import Source
    from steelyard_worker.frameworks.tensorflow.predictor import Predictor


def dataset(trainer: Predictor, source: Source, workers: int) -> tf.data.Dataset:
    """Return an endless data set of batches in order, as `put` places them; `workers` are decoded at a time (0: one)."""
    example = trainer.native(source.batch(0))

    def take(step: np.int64) -> list[np.ndarray]:
        return list(trainer.native(source.batch(int(step))).values())

    def decode(step: tf.Tensor) -> dict[str, tf.Tensor]:
        tensors = tf.numpy_function(take, [step], [array.dtype for array in example.values()])
        pairs = zip(example.items(), tensors, strict=True)
        return {name: tf.ensure_shape(tensor, array.shape) for (name, array), tensor in pairs}

    steps = tf.data.Dataset.range(len(source.order)).repeat()
    parallel = {"num_parallel_calls": workers, "deterministic": True} if workers else {}
    return steps.map(decode, **parallel).prefetch(tf.data.AUTOTUNE)
