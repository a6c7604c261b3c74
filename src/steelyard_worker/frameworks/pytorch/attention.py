"""Multi-head self-attention on PyTorch's fused kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor, nn
from torch.nn import functional as F

if TYPE_CHECKING:
    from torch import BoolTensor


class SelfAttention(nn.Module):
    """(N, T, width) and keep (N, 1, 1, T), True where a key counts -> (N, T, width), without the output projection.

    `scaled_dot_product_attention` ignores masked keys, whereas the definition gives them a score of -1e9; the result is the same
    if at least one key counts (P-31). On CPU it is also one tiled kernel that never stores the T x T scores.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.heads = heads

    def forward(self, x: Tensor, keep: BoolTensor) -> Tensor:
        parts = (part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.query, self.key, self.value))
        return F.scaled_dot_product_attention(*parts, attn_mask=keep).transpose(1, 2).flatten(2)
