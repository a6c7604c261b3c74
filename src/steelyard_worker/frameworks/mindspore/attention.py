"""Multi-head self-attention over (N * T, width), so that every projection is one plain matrix product."""

from __future__ import annotations

from mindspore import Tensor, nn, ops

MASKED = -1e9


class SelfAttention(nn.Cell):
    """(N * T, width) and masked scores (N, 1, 1, T) -> (N * T, width), without the output projection.

    MindSpore's fused attention has no CPU kernel.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.query, self.key, self.value = nn.Dense(width, width), nn.Dense(width, width), nn.Dense(width, width)
        self.heads, self.scale = heads, (width // heads) ** -0.5
        self.scores, self.context = ops.BatchMatMul(transpose_b=True), ops.BatchMatMul()
        self.softmax = ops.Softmax()

    def construct(self, x: Tensor, masked: Tensor) -> Tensor:
        query, key, value = (
            self.split(self.query(x), masked),
            self.split(self.key(x), masked),
            self.split(self.value(x), masked),
        )
        shares = self.softmax(self.scores(query * self.scale, key) + masked)
        return ops.reshape(ops.transpose(self.context(shares, value), (0, 2, 1, 3)), x.shape)

    def split(self, projected: Tensor, masked: Tensor) -> Tensor:
        """(N * T, width) -> (N, heads, T, width / heads)."""
        return ops.transpose(ops.reshape(projected, (masked.shape[0], masked.shape[3], self.heads, -1)), (0, 2, 1, 3))


def masked_scores(mask: Tensor) -> Tensor:
    """Return (N, 1, 1, T): 0 where the mask int (N, T) is 1, else -1e9, to be added.

    Scores are less than half a unit in the last place of -1e9, so adding -1e9 equals replacing the score by it, to rounding.
    """
    return ops.expand_dims(ops.expand_dims((1 - mask).astype("float32") * MASKED, 1), 1)
