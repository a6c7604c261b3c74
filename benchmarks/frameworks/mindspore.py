"""MindSpore's side of the overhead benchmarks: the loop a person would write, and the idiomatic network."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import mindspore
import numpy as np
from mindspore import Tensor, nn, ops

if TYPE_CHECKING:
    from collections.abc import Callable


def bare_loop(trainer: Any, batch: Any, steps: int) -> None:
    """Train on one batch with the Trainer's own compiled step; ends without synchronisation."""
    train = trainer._train
    for _ in range(steps):
        train(*batch)


def idiomatic(
    workload: str, sizes: dict[str, Any], optimizer: dict[str, Any], batch: dict[str, np.ndarray[Any, Any]]
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return (step, synchronise) of the same network in graph mode with `nn.TrainOneStepCell`."""
    mindspore.set_context(mode=mindspore.GRAPH_MODE)
    network = ResNet18(sizes) if workload == "resnet18" else SentimentNet(sizes)
    rule = _optimizer(optimizer, network.trainable_params())
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    train = nn.TrainOneStepCell(nn.WithLossCell(network, loss), rule).set_train()
    data = Tensor(batch["image" if workload == "resnet18" else "tokens"])
    label = Tensor(batch["label"])
    last: list[Tensor] = []

    def step() -> None:
        last[:] = [train(data, label)]

    def synchronise() -> None:
        for tensor in (rule.parameters[-1], *last):
            tensor.asnumpy()

    return step, synchronise


def _optimizer(spec: dict[str, Any], parameters: Any) -> nn.Cell:
    if spec["name"] == "sgd":
        return nn.SGD(parameters, spec["learning_rate"], momentum=spec["momentum"])
    return nn.Adam(parameters, spec["learning_rate"], spec["beta1"], spec["beta2"], spec["epsilon"])


class ResidualBlock(nn.Cell):
    """Two 3x3 convolutions with a shortcut."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, pad_mode="pad", padding=1)
        self.norm1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, pad_mode="pad", padding=1)
        self.norm2 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU()
        self.down_sample = None
        if stride != 1 or channels != out:
            self.down_sample = nn.SequentialCell(
                nn.Conv2d(channels, out, 1, stride, pad_mode="valid"), nn.BatchNorm2d(out)
            )

    def construct(self, x: Tensor) -> Tensor:
        identity = x
        out = self.relu(self.norm1(self.conv1(x)))
        out = self.norm2(self.conv2(out))
        if self.down_sample is not None:
            identity = self.down_sample(x)
        return self.relu(out + identity)


class ResNet18(nn.Cell):
    """The `seed` stem: 3x3 convolution, then 2x2 max pool."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        width = channels = sizes["width"]
        self.conv = nn.Conv2d(sizes["channels"], width, 3, 1, pad_mode="pad", padding=1)
        self.norm = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        self.max_pool = nn.MaxPool2d(kernel_size=2, stride=2)
        blocks = OrderedDict()
        for stage in range(4):
            out = width * 2**stage
            blocks[f"{stage}a"] = ResidualBlock(channels, out, 2 if stage else 1)
            blocks[f"{stage}b"] = ResidualBlock(out, out, 1)
            channels = out
        self.blocks = nn.SequentialCell(blocks)
        self.fc = nn.Dense(channels, sizes["classes"])

    def construct(self, x: Tensor) -> Tensor:
        x = self.max_pool(self.relu(self.norm(self.conv(x))))
        return self.fc(ops.mean(self.blocks(x), (2, 3)))


class SentimentNet(nn.Cell):
    """Embedding, LSTM, dense layer on the last step."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        self.embedding = nn.Embedding(sizes["vocabulary"], sizes["embedding"])
        self.rnn = nn.LSTM(
            sizes["embedding"], sizes["hidden"], num_layers=sizes["layers"], bidirectional=sizes["bidirectional"],
            batch_first=True,
        )  # fmt: skip
        self.both_ends = sizes["readout"] == "first+last"
        features = sizes["hidden"] * (2 if sizes["bidirectional"] else 1) * (2 if self.both_ends else 1)
        self.fc = nn.Dense(features, sizes["classes"])

    def construct(self, tokens: Tensor) -> Tensor:
        output, _ = self.rnn(self.embedding(tokens))
        read = ops.concat((output[:, 0], output[:, -1]), 1) if self.both_ends else output[:, -1]
        return self.fc(read)
