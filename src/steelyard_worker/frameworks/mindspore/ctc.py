"""Connectionist temporal classification (Graves et al. 2006) by MindSpore's operator."""

from __future__ import annotations

import mindspore
from mindspore import Tensor, nn, ops


class Ctc(nn.Cell):
    """Logits (T, N, K), lengths (N,), labels (N, L) padded with 0, label lengths (N,) -> negative log-likelihoods (N,); blank 0.

    Labels that do not fit into the length have a likelihood of zero; such a sample counts as 0. The operator fails on labels
    that are too long, so it gets a single label for such a sample.
    """

    def __init__(self) -> None:
        super().__init__()
        self.cross_entropy = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="none")

    def construct(self, logits: Tensor, lengths: Tensor, labels: Tensor, label_lengths: Tensor) -> Tensor:
        after, before = labels[:, 1:], labels[:, :-1]
        # Equal labels need a blank between them.
        doubled = ops.cast(ops.logical_and(after == before, after > 0), label_lengths.dtype)
        fits = label_lengths + doubled.sum(axis=1) <= lengths
        taken = ops.select(fits, label_lengths, ops.ones_like(label_lengths))
        each = ops.ctc_loss(self.log_softmax(logits), labels, lengths, taken, 0, "none", True)[0]
        return each * ops.cast(fits, logits.dtype)

    def log_softmax(self, logits: Tensor) -> Tensor:
        """Compute log-softmax from an exact kernel, the cross-entropy of class 0; `ops.log_softmax` is wrong by 5e-6 (P-53)."""
        flat = logits.reshape((-1, logits.shape[2]))
        total = self.cross_entropy(flat, ops.zeros((flat.shape[0],), mindspore.int32)) + flat[:, 0]
        return (flat - total.reshape((-1, 1))).reshape(logits.shape)
