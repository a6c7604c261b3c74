"""Connectionist temporal classification (Graves et al. 2006) by TensorFlow's operator or composed of others."""

from __future__ import annotations

import tensorflow as tf
from tensorflow.python.ops.control_flow_util import GraphOrParentsInXlaContext

# Used as log 0; finite, so that sums and differences in float32 are finite.
NEVER = -1e30


def ctc(logits: tf.Tensor, lengths: tf.Tensor, labels: tf.Tensor, label_lengths: tf.Tensor) -> tf.Tensor:
    """Return the negative log-likelihoods (N,) of labels int32 (N, L), padded with 0, under logits (T, N, K); blank is 0.

    Labels that do not fit into the length have a likelihood of zero; such a sample counts as 0. The operator returns infinity
    for it, so it gets a single label instead.
    """
    # Equal labels need a blank between them.
    doubled = tf.cast((labels[:, 1:] == labels[:, :-1]) & (labels[:, 1:] > 0), label_lengths.dtype)
    fits = label_lengths + tf.reduce_sum(doubled, axis=1) <= lengths
    # XLA has no such operator, and for float64 the operator computes in float32 internally: its gradients are wrong by 1e-7.
    in_xla = not tf.executing_eagerly() and GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph())
    run = composed if in_xla or logits.dtype == tf.float64 else _operator
    each = run(logits, lengths, labels, tf.where(fits, label_lengths, 1))
    return tf.where(fits, each, 0)


def _operator(logits: tf.Tensor, lengths: tf.Tensor, labels: tf.Tensor, label_lengths: tf.Tensor) -> tf.Tensor:
    places = tf.where(tf.sequence_mask(label_lengths, labels.shape[1]))
    # The operator's blank is the last class. `tf.nn.ctc_loss` with dense labels is composed of other operators, has quadratic
    # cost in the labels, and computes in float32 only.
    return tf.raw_ops.CTCLoss(
        inputs=tf.roll(logits, -1, axis=2),
        labels_indices=places,
        labels_values=tf.gather_nd(labels, places) - 1,
        sequence_length=lengths,
        preprocess_collapse_repeated=False,
        ctc_merge_repeated=True,
        ignore_longer_outputs_than_inputs=False,
    ).loss


def composed(logits: tf.Tensor, lengths: tf.Tensor, labels: tf.Tensor, label_lengths: tf.Tensor) -> tf.Tensor:
    """Return the same for labels that fit, by the forward recursion over the states blank, label 1, ..., label L, blank."""
    states = 2 * labels.shape[1] + 1
    spread = tf.reshape(tf.stack((tf.zeros_like(labels), labels), axis=2), (-1, states - 1))
    spread = tf.pad(spread, ((0, 0), (0, 1)))
    skips = (spread != 0) & (spread != tf.pad(spread, ((0, 0), (2, 0)))[:, :-2])
    # A product with ones and zeros selects exactly. The gradient of a gather would be a scatter, which XLA runs serially on CPU.
    chosen = tf.one_hot(spread, logits.shape[2], dtype=logits.dtype)
    emitted = tf.einsum("tnk,nsk->tns", tf.nn.log_softmax(logits), chosen)
    barred = tf.where(skips, tf.zeros((), logits.dtype), NEVER)
    last = _run(emitted, barred, lengths)
    ends = tf.one_hot(2 * label_lengths, states, on_value=True, off_value=False)
    ends |= tf.one_hot(2 * label_lengths - 1, states, on_value=True, off_value=False)
    return -tf.reduce_logsumexp(tf.where(ends, last, NEVER), axis=1)


def _run(emitted: tf.Tensor, barred: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """Return the log forward variables (N, S) after each utterance's last frame; emitted is (T, N, S)."""
    steps, states = emitted.shape[0], emitted.shape[2]
    frames = tf.TensorArray(emitted.dtype, steps).unstack(emitted)

    def body(t: tf.Tensor, alpha: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        before = tf.pad(alpha, ((0, 0), (2, 0)), constant_values=NEVER)
        ways = tf.stack((alpha, before[:, 1:-1], before[:, :-2] + barred))
        # Limited to NEVER, so that sums of it do not grow without bound.
        moved = tf.maximum(tf.reduce_logsumexp(ways, axis=0) + frames.read(t), tf.constant(NEVER, alpha.dtype))
        return t + 1, tf.where((t < lengths)[:, None], moved, alpha)

    # Before the first frame only the state before the first blank is possible; the first frame enters blank or label 1.
    start = tf.pad(tf.zeros_like(emitted[0, :, :1]), ((0, 0), (0, states - 1)), constant_values=NEVER)
    return tf.while_loop(lambda t, _: t < steps, body, (0, start), maximum_iterations=steps)[1]
