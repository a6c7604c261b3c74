"""Connectionist temporal classification (Graves et al. 2006) by MXNet's operator."""

from __future__ import annotations

from typing import Any

from mxnet.gluon import HybridBlock


class Ctc(HybridBlock):
    """Logits (T, N, K), lengths (N,), labels (N, L) padded with 0, label lengths (N,) -> negative log-likelihoods (N,); blank 0.

    Labels that do not fit into the length have a likelihood of zero; such a sample counts as 0. The operator does not write the
    gradient of such a sample, so it gets a single label for it.
    """

    def hybrid_forward(self, F: Any, logits: Any, lengths: Any, labels: Any, label_lengths: Any) -> Any:
        labels, label_lengths = F.cast(labels, "float32"), F.cast(label_lengths, "float32")
        after = F.slice_axis(labels, axis=1, begin=1, end=None)
        # Equal labels need a blank between them.
        doubled = F.broadcast_equal(after, F.slice_axis(labels, axis=1, begin=0, end=-1)) * (after > 0)
        fits = (label_lengths + F.sum(doubled, axis=1)) <= lengths
        taken = F.where(fits, label_lengths, F.ones_like(label_lengths))
        found = F.CTCLoss(
            logits, labels, lengths, taken, use_data_lengths=True, use_label_lengths=True, blank_label="first"
        )
        return found * F.cast(fits, "float32")
