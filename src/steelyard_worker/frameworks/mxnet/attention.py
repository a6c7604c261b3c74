"""Multi-head self-attention as batched matrix products over (N * T, width), and GELU."""

from __future__ import annotations

import math
from typing import Any

from mxnet.gluon import HybridBlock, nn

MASKED = -1e9


class SelfAttention(HybridBlock):
    """(N * T, width) and masked scores (N, 1, 1, T) -> (N * T, width), without the output projection.

    MXNet's interleaved operators take the same time on CPU, and they have no float64.
    """

    def __init__(self, shape: tuple[int, int], width: int, heads: int, prefix: str) -> None:
        """`shape` is (N, T)."""
        super().__init__(prefix=prefix)
        with self.name_scope():
            self.query = nn.Dense(width, flatten=False, in_units=width, prefix="query.")
            self.key = nn.Dense(width, flatten=False, in_units=width, prefix="key.")
            self.value = nn.Dense(width, flatten=False, in_units=width, prefix="value.")
        self._split, self._scale = (*shape, heads, width // heads), (width // heads) ** -0.5

    def hybrid_forward(self, F: Any, x: Any, masked: Any) -> Any:
        batch, length, heads, width = self._split
        scores = F.batch_dot(self._heads(F, self.query(x) * self._scale), self._heads(F, self.key(x)), transpose_b=True)
        shares = F.softmax(F.broadcast_add(F.reshape(scores, (batch, heads, length, length)), masked))
        context = F.batch_dot(F.reshape(shares, (-3, 0, 0)), self._heads(F, self.value(x)))
        context = F.transpose(F.reshape(context, (batch, heads, length, width)), axes=(0, 2, 1, 3))
        return F.reshape(context, (batch * length, heads * width))

    def _heads(self, F: Any, projected: Any) -> Any:
        """(N * T, width) -> (N * heads, T, width / heads)."""
        return F.reshape(F.transpose(F.reshape(projected, self._split), axes=(0, 2, 1, 3)), (-3, 0, 0))


def masked_scores(F: Any, mask: Any, dtype: str) -> Any:
    """Return (N, 1, 1, T): 0 where the mask int (N, T) is 1, else -1e9, to be added.

    Scores are less than half a unit in the last place of -1e9, so adding -1e9 equals replacing the score by it, to rounding.
    """
    return F.expand_dims(F.expand_dims(F.cast(1 - mask, dtype) * MASKED, axis=1), axis=1)


def gelu(F: Any, x: Any, tanh: bool) -> Any:
    """GELU (Hendrycks & Gimpel 2016): exact by MXNet's operator, or the approximation by tanh (P-30)."""
    if not tanh:
        return F.LeakyReLU(x, act_type="gelu")
    return 0.5 * x * (1 + F.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
