"""The training batches through `tf.data`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

if TYPE_CHECKING:
    from steelyard_worker.batches import Source
    from steelyard_worker.frameworks.tensorflow.predictor import Predictor


def dataset(trainer: Predictor, source: Source, workers: int) -> tf.data.Dataset:
    """Return an endless data set of batches in order, as `put` places them; `workers` are decoded at a time (0: one)."""
    example = trainer.native(source.batch(0))
    shapes = _shapes(trainer, source)

    def take(step: np.int64) -> list[np.ndarray]:
        return list(trainer.native(source.batch(int(step))).values())

    def decode(step: tf.Tensor) -> dict[str, tf.Tensor]:
        tensors = tf.numpy_function(take, [step], [array.dtype for array in example.values()])
        pairs = zip(shapes.items(), tensors, strict=True)
        return {name: tf.ensure_shape(tensor, shape) for (name, shape), tensor in pairs}

    steps = tf.data.Dataset.range(len(source.order)).repeat()
    parallel = {"num_parallel_calls": workers, "deterministic": True} if workers else {}
    return steps.map(decode, **parallel).prefetch(tf.data.AUTOTUNE)


def _shapes(trainer: Predictor, source: Source) -> dict[str, list[int | None]]:
    """Return the shape of each tensor of a batch; None for an axis along which batches are cut."""
    batch = source.batch(0)
    longer = dict(batch)
    for name, axes in source.split.cut.items():
        for axis, _ in axes:
            longer[name] = np.repeat(longer[name], 2, axis + 1)
    native, other = trainer.native(batch), trainer.native(longer)
    return {
        name: [size if size == another else None for size, another in zip(array.shape, other[name].shape, strict=True)]
        for name, array in native.items()
    }


def in_shares(batches: tf.data.Dataset, count: int) -> tf.data.Dataset:
    """Return the shares of each batch, one after the other: consecutive samples, as many in each."""

    def divided(batch: dict[str, tf.Tensor]) -> tf.data.Dataset:
        pieces = {
            name: tf.reshape(tensor, tf.concat(([count, -1], tf.shape(tensor)[1:]), 0))
            for name, tensor in batch.items()
        }
        shaped = {
            name: tf.ensure_shape(piece, [count, batch[name].shape[0] // count, *batch[name].shape[1:]])
            for name, piece in pieces.items()
        }
        return tf.data.Dataset.from_tensor_slices(shaped)

    return batches.flat_map(divided).prefetch(tf.data.AUTOTUNE)
