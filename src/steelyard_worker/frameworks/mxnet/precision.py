"""Blocks that know the precision of the run; Gluon infers it for parameters, not for values computed from integers."""

from __future__ import annotations

from mxnet.gluon import HybridBlock


class Precise(HybridBlock):
    """A block whose `dtype` is the type that it, or a block around it, was last cast to."""

    dtype = "float32"

    def cast(self, dtype: str) -> None:
        """Store the precision and cast the parameters."""
        self.dtype = dtype
        super().cast(dtype)
