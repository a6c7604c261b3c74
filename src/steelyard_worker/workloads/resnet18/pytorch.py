"""ResNet-18 in PyTorch: `torch.nn` modules with the canonical names."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from steelyard_worker.frameworks.pytorch import layers
from steelyard_worker.frameworks.pytorch.residual import Classifier, batch_norm, conv, shortcut, stem


class Block(nn.Module):
    """Basic block: two 3x3 convolutions, and a projected shortcut where the shape changes."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = conv(channels, out, 3, stride)
        self.bn1 = batch_norm(out)
        self.conv2 = conv(out, out, 3)
        self.bn2 = batch_norm(out)
        self.shortcut = shortcut(channels, out, stride)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


INPUTS = ("image",)


def build(sizes: dict[str, Any]) -> nn.Module:
    """Return the network; its weights are loaded later."""
    channels, stages = sizes["width"], []
    for stage in range(4):
        out, blocks = sizes["width"] * 2**stage, list[nn.Module]()
        for block in range(2):
            blocks.append(Block(channels, out, 2 if stage and not block else 1))
            channels = out
        stages.append(blocks)
    first = stem(sizes["channels"], sizes["width"], sizes["stem"])
    return Classifier(first, stages, nn.Linear(channels, sizes["classes"]))


def variables(network: nn.Module) -> dict[str, Tensor]:
    """Map canonical names to parameters and buffers."""
    return layers.named_by_module(network)


def loss(outputs: dict[str, Tensor], batch: dict[str, Tensor]) -> Tensor:
    """Mean softmax cross-entropy from logits."""
    return F.cross_entropy(outputs["logits"], batch["label"])
