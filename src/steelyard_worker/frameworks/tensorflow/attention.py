"""Multi-head self-attention over (N * T, width), so that every projection is one plain matrix product."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from steelyard_worker.frameworks.tensorflow.layers import Dense

if TYPE_CHECKING:
    from steelyard_worker.frameworks.tensorflow.layers import Variables

MASKED = -1e9


class SelfAttention:
    """(N * T, width) and masked scores (N, 1, 1, T) -> (N * T, width), without the output projection."""

    def __init__(self, variables: Variables, name: str, width: int, heads: int) -> None:
        self._query, self._key, self._value = (
            Dense(variables, f"{name}.{part}", width, width) for part in ("query", "key", "value")
        )
        self._heads, self._scale = heads, (width // heads) ** -0.5

    def __call__(self, x: tf.Tensor, masked: tf.Tensor) -> tf.Tensor:
        batch, length = masked.shape[0], masked.shape[3]

        def split(projected: tf.Tensor) -> tf.Tensor:
            return tf.transpose(tf.reshape(projected, (batch, length, self._heads, -1)), (0, 2, 1, 3))

        query, key, value = self._query(x) * self._scale, self._key(x), self._value(x)
        with tf.name_scope("attention"):
            scores = tf.matmul(split(query), split(key), transpose_b=True) + masked
            context = tf.matmul(tf.nn.softmax(scores), split(value))
            return tf.reshape(tf.transpose(context, (0, 2, 1, 3)), x.shape)


def masked_scores(mask: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Return (N, 1, 1, T): 0 where the mask int (N, T) is 1, else -1e9, to be added.

    Scores are less than half a unit in the last place of -1e9, so adding -1e9 equals replacing the score by it, to rounding.
    Adding takes one pass, a `tf.where` two.
    """
    return tf.cast(1 - mask, dtype)[:, None, None, :] * MASKED
