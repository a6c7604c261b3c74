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
    network = {"resnet18": ResNet18, "resnet50": ResNet50, "vgg16": vgg16, "lstm-imdb": SentimentNet}[workload](sizes)
    rule = _optimizer(optimizer, network.trainable_params())
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    train = nn.TrainOneStepCell(nn.WithLossCell(network, loss), rule).set_train()
    data = Tensor(batch["tokens" if workload == "lstm-imdb" else "image"])
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
        return nn.SGD(parameters, spec["learning_rate"], momentum=spec["momentum"], weight_decay=spec["weight_decay"])
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


class Bottleneck(nn.Cell):
    """1x1, 3x3 (with the stride) and 1x1 convolution with a shortcut."""

    def __init__(self, channels: int, within: int, stride: int) -> None:
        super().__init__()
        out = 4 * within
        self.conv1, self.norm1 = nn.Conv2d(channels, within, 1), nn.BatchNorm2d(within)
        self.conv2 = nn.Conv2d(within, within, 3, stride, pad_mode="pad", padding=1)
        self.norm2 = nn.BatchNorm2d(within)
        self.conv3, self.norm3 = nn.Conv2d(within, out, 1), nn.BatchNorm2d(out)
        self.relu = nn.ReLU()
        self.down_sample = None
        if stride != 1 or channels != out:
            self.down_sample = nn.SequentialCell(
                nn.Conv2d(channels, out, 1, stride, pad_mode="valid"), nn.BatchNorm2d(out)
            )

    def construct(self, x: Tensor) -> Tensor:
        identity = x
        out = self.relu(self.norm1(self.conv1(x)))
        out = self.relu(self.norm2(self.conv2(out)))
        out = self.norm3(self.conv3(out))
        if self.down_sample is not None:
            identity = self.down_sample(x)
        return self.relu(out + identity)


class ResNet50(nn.Cell):
    """7x7 stem with a 3x3 pool, bottlenecks, global average, dense layer."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        width = channels = sizes["width"]
        self.conv = nn.Conv2d(sizes["channels"], width, 7, 2, pad_mode="pad", padding=3)
        self.norm = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        self.max_pool = nn.MaxPool2d(3, 2, pad_mode="pad", padding=1)
        blocks = []
        for stage, count in enumerate(sizes["blocks"]):
            for block in range(count):
                blocks.append(Bottleneck(channels, width * 2**stage, 2 if stage and not block else 1))
                channels = 4 * width * 2**stage
        self.blocks = nn.SequentialCell(blocks)
        self.fc = nn.Dense(channels, sizes["classes"])

    def construct(self, x: Tensor) -> Tensor:
        x = self.max_pool(self.relu(self.norm(self.conv(x))))
        return self.fc(ops.mean(self.blocks(x), (2, 3)))


def vgg16(sizes: dict[str, Any]) -> nn.Cell:
    """Thirteen 3x3 convolutions with bias in five stages, dense layers."""
    cells, channels = list[nn.Cell](), sizes["channels"]
    for count, factor in ((2, 1), (2, 2), (3, 4), (3, 8), (3, 8)):
        for _ in range(count):
            out = sizes["width"] * factor
            cells += [nn.Conv2d(channels, out, 3, pad_mode="pad", padding=1, has_bias=True), nn.ReLU()]
            channels = out
        cells.append(nn.MaxPool2d(2, 2))
    cells.append(nn.Flatten())
    features = channels * (sizes["image"] // 32) ** 2
    for _ in range(2 if sizes["dense"] else 0):
        cells += [nn.Dense(features, sizes["dense"]), nn.ReLU()]
        features = sizes["dense"]
    return nn.SequentialCell(*cells, nn.Dense(features, sizes["classes"]))


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
