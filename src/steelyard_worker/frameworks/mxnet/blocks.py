"""Blocks of convolutional networks: convolution, batch norm, ReLU, and branches of them. Prefixes are canonical names."""

from __future__ import annotations

from typing import Any

from mxnet.gluon import HybridBlock, nn

Pair = tuple[int, int]


class ConvBlock(HybridBlock):
    """Convolution without bias -> batch norm -> ReLU; kernel, stride and padding as `nn.Conv2D` takes them."""

    def __init__(
        self,
        prefix: str,
        channels: int,
        out: int,
        kernel: int | Pair = 1,
        stride: int | Pair = 1,
        padding: int | Pair = 0,
        *,
        epsilon: float,
    ) -> None:
        super().__init__(prefix=prefix)
        with self.name_scope():
            self.conv = nn.Conv2D(out, kernel, stride, padding, use_bias=False, in_channels=channels, prefix="conv.")
            # Gluon's momentum is the weight of the old statistic (P-01).
            self.bn = nn.BatchNorm(axis=1, momentum=0.9, epsilon=epsilon, in_channels=out, prefix="bn.")

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        # `Activation` has a oneDNN kernel, `F.relu` has none.
        return F.Activation(self.bn(self.conv(x)), act_type="relu")


class Branch(nn.HybridSequential):
    """Blocks in sequence, named step1 and so on, after a pool if one is given; a step is (out, kernel, ...)."""

    def __init__(
        self, prefix: str, channels: int, *steps: tuple[Any, ...], epsilon: float, pool: HybridBlock | None = None
    ) -> None:
        super().__init__(prefix=prefix)
        with self.name_scope():
            if pool is not None:
                self.add(pool)
            for number, step in enumerate(steps, 1):
                self.add(ConvBlock(f"step{number}.", channels, *step, epsilon=epsilon))
                channels = step[0]


class Parallel(HybridBlock):
    """Branches concatenated along the channels."""

    def __init__(self, *branches: HybridBlock) -> None:
        super().__init__(prefix="")
        for each in branches:
            self.register_child(each)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.concat(*(each(x) for each in self._children.values()), dim=1)
