"""The training batches through `tf.data`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from steelyard_worker.frameworks.tensorflow import layouts

if TYPE_CHECKING:
    from steelyard_worker.batches import Source
    from steelyard_worker.frameworks.tensorflow.trainer import Trainer


def dataset(trainer: Trainer, source: Source, workers: int) -> tf.data.Dataset:
    """Element i is the batch of step i, as `Trainer.put` would place it; endless."""
    example = trainer.put(source.batch(0))
    names, dtypes = list(example), [tensor.dtype for tensor in example.values()]

    def take(step: np.int64) -> list[Any]:
        batch = source.batch(int(step))
        return [
            layouts.native("image", batch[name]).astype(dtype.as_numpy_dtype, copy=False)
            if batch[name].ndim == 4
            else batch[name].astype(dtype.as_numpy_dtype, copy=False)
            for name, dtype in zip(names, dtypes, strict=True)
        ]

    def decode(step: tf.Tensor) -> dict[str, tf.Tensor]:
        tensors = tf.numpy_function(take, [step], dtypes)
        return {name: tf.ensure_shape(t, example[name].shape) for name, t in zip(names, tensors, strict=True)}

    steps = tf.data.Dataset.range(len(source.order)).repeat()
    return steps.map(decode, num_parallel_calls=workers or None, deterministic=True if workers else None).prefetch(tf.data.AUTOTUNE)
