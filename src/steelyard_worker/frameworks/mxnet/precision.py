"""Blocks that know the precision of the run: Gluon infers it for parameters alone, not for what is made of integers."""

from __future__ import annotations

from mxnet.gluon import HybridBlock


class Precise(HybridBlock):
    """A block whose `dtype` is what it, or a block around it, was last cast to."""

    dtype = "float32"

    def cast(self, dtype: str) -> None:
        """Remember the precision."""
        self.dtype = dtype
        super().cast(dtype)
