"""LSTM layers over time-major sequences (T, N, width), with one bias each (so P-21 does not apply)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from steelyard_worker.frameworks.tensorflow.shapes import extent

if TYPE_CHECKING:
    from steelyard_worker.frameworks.tensorflow.layers import Variables
    from steelyard_worker.frameworks.tensorflow.recurrence import Affine, Tensors


def lstm_cell(gates: tf.Tensor, c: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Gates (N, 4H) and cell state (N, H) -> (hidden state, cell state)."""
    i, f, g, o = tf.split(gates, 4, axis=1)
    c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
    return tf.sigmoid(o) * tf.tanh(c), c


class Lstm:
    """One direction of one layer with zero initial state: (T, N, width) -> (T, N, hidden).

    It is a loop of our own, or a Keras layer if `variables.lstm` says so.
    """

    def __init__(self, variables: Variables, name: str, width: int, hidden: int) -> None:
        self._keras = None if variables.lstm == "loop" else _keras_layer(variables, name, width, hidden)
        if self._keras:
            return
        self._w_ih = variables.new(f"{name}.w_ih", width, 4 * hidden)
        self._w_hh = variables.new(f"{name}.w_hh", hidden, 4 * hidden)
        self._b = variables.new(f"{name}.b", 4 * hidden)
        self._hidden, self._recurrence = hidden, variables.recurrence

    def last(self, x: tf.Tensor) -> tf.Tensor:
        """Return the hidden state after the last step, (N, hidden)."""
        if self._keras:
            return self.every(x, backward=False)[-1]
        with tf.name_scope("recurrent"):
            (h, _), _ = self._run(x, backward=False, keep=False)
        return h

    def every(self, x: tf.Tensor, backward: bool) -> tf.Tensor:
        """Return the hidden states of all steps in the order of the input; `backward` starts at the end."""
        with tf.name_scope("recurrent"):
            if self._keras:
                x = tf.reverse(x, (0,)) if backward else x
                states = tf.transpose(self._keras(tf.transpose(x, (1, 0, 2))), (1, 0, 2))
                return tf.reverse(states, (0,)) if backward else states
            _, (states,) = self._run(x, backward, keep=True)
        return states

    def _run(self, x: tf.Tensor, backward: bool, keep: bool) -> tuple[Tensors, list[tf.Tensor]]:
        length, (samples, width) = extent(x, 0), x.shape[1:]
        recurrence = self._recurrence.resolved(self._hidden, samples)
        w_ih, w_hh, b = self._w_ih.value(), self._w_hh.value(), self._b.value()
        early = recurrence.formulation != "loop"

        def step(affine: Affine, w_ih: tf.Tensor, state: Tensors, given: tf.Tensor | None) -> tuple[Tensors, Tensors]:
            h, c = state
            z = affine("gates", h)
            h, c = lstm_cell(z if early else tf.matmul(given, w_ih) + z, c)
            return (h, c), (h,) if keep else ()

        if early:
            b = tf.reshape(tf.matmul(tf.reshape(x, (-1, width)), w_ih) + b, (length, samples, 4 * self._hidden))
        zero = tf.zeros((samples, self._hidden), x.dtype)
        x, shared, widths = None if early else x, () if early else w_ih, (self._hidden,) if keep else ()
        return recurrence.loop(step, {"gates": w_hh}, {"gates": b}, x, shared, (zero, zero), widths, backward)


def _keras_layer(variables: Variables, name: str, width: int, hidden: int) -> Any:
    """Return `keras.layers.LSTM`, whose weights are loaded later: "cell" is its loop over `LSTMCell`, "fused" cuDNN's kernel."""
    import keras  # takes two seconds

    layer = keras.layers.LSTM(
        hidden,
        return_sequences=True,
        use_cudnn=variables.lstm == "fused",
        kernel_initializer="zeros",
        recurrent_initializer="zeros",
        unit_forget_bias=False,
        dtype=variables.dtype.name,
    )
    layer.build((None, None, width))
    cell = layer.cell
    for kind, variable in (("w_ih", cell.kernel), ("w_hh", cell.recurrent_kernel), ("b", cell.bias)):
        variables.named[f"{name}.{kind}"] = variable.value
    return layer


class Bidirectional:
    """Both directions over the valid steps: (T, N, width), lengths (N,) -> two of (T, N, hidden), 0 after the lengths (P-25).

    Sequences are reversed before and after the backward loop, and masked after both loops, so a step of a loop does no
    additional work.
    """

    def __init__(self, variables: Variables, name: str, width: int, hidden: int) -> None:
        self._onward = Lstm(variables, f"{name}.forward", width, hidden)
        self._back = Lstm(variables, f"{name}.backward", width, hidden)

    def __call__(self, x: tf.Tensor, lengths: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        inside = tf.transpose(tf.sequence_mask(lengths, extent(x, 0), x.dtype))[..., None]
        back = _reversed(self._back.every(_reversed(x, lengths), backward=False), lengths)
        return self._onward.every(x, backward=False) * inside, back * inside


def _reversed(x: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    return tf.reverse_sequence(x, lengths, seq_axis=0, batch_axis=1)
