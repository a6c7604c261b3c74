"""A bidirectional LSTM layer that heeds lengths; the layer of one direction is `layers.Lstm`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from steelyard_worker.frameworks.tensorflow.layers import Lstm

if TYPE_CHECKING:
    from steelyard_worker.frameworks.tensorflow.layers import Variables


class Bidirectional:
    """Both directions over the valid steps: (T, N, width), lengths (N,) -> two of (T, N, hidden), 0 beyond the lengths (P-25).

    Sequences are turned round before and after the backward loop, and masked behind both: nothing is added to what the loops
    do at every step.
    """

    def __init__(self, variables: Variables, name: str, width: int, hidden: int) -> None:
        self._onward = Lstm(variables, f"{name}.forward", width, hidden)
        self._back = Lstm(variables, f"{name}.backward", width, hidden)

    def __call__(self, x: tf.Tensor, lengths: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        inside = tf.transpose(tf.sequence_mask(lengths, x.shape[0], x.dtype))[..., None]
        back = _turned(self._back.every(_turned(x, lengths), backward=False), lengths)
        return self._onward.every(x, backward=False) * inside, back * inside


def _turned(x: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    return tf.reverse_sequence(x, lengths, seq_axis=0, batch_axis=1)
