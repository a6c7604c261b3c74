"""PyTorch as a person would write it by hand: a bare loop around our objects, and whole programs of its own idiom."""

import torch
from torch import nn
from torch.nn import functional as F


def bare_loop(trainer, batch, steps):
    """The training loop of PyTorch's own tutorials, around the objects that the trainer holds."""
    forward, rule = trainer._forward, trainer._rule
    for _ in range(steps):
        rule.zero_grad(set_to_none=True)
        _, loss = forward(batch)
        loss.backward()
        rule.step()


def idiomatic(workload, sizes, optimizer, batch):
    """Return (step, synchronise) of the same network as `torch.nn` code, tuned as PyTorch's guide recommends."""
    build = {"resnet18": ResNet18, "resnet50": ResNet50, "vgg16": VGG16, "lstm-imdb": Sentiment}[workload]
    model = build(sizes).to(memory_format=torch.channels_last)
    if optimizer["name"] == "sgd":
        rule = torch.optim.SGD(
            model.parameters(),
            lr=optimizer["learning_rate"],
            momentum=optimizer["momentum"],
            weight_decay=optimizer["weight_decay"],
            fused=True,
        )
    else:
        rule = torch.optim.Adam(model.parameters(), lr=optimizer["learning_rate"], eps=optimizer["epsilon"], fused=True)
    x = torch.from_numpy(batch["tokens" if workload == "lstm-imdb" else "image"])
    x = x.to(memory_format=torch.channels_last) if x.dim() == 4 else x.long()
    y = torch.from_numpy(batch["label"]).long()

    def step():
        rule.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        rule.step()

    return step, lambda: None


def conv3x3(channels, out, stride=1):
    """A 3x3 convolution without bias."""
    return nn.Conv2d(channels, out, 3, stride, 1, bias=False)


class BasicBlock(nn.Module):
    """conv-bn-relu-conv-bn plus shortcut."""

    def __init__(self, channels, out, stride):
        super().__init__()
        self.body = nn.Sequential(
            conv3x3(channels, out, stride),
            nn.BatchNorm2d(out),
            nn.ReLU(inplace=True),
            conv3x3(out, out),
            nn.BatchNorm2d(out),
        )
        self.down = None
        if stride != 1 or channels != out:
            self.down = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        """Add the shortcut, then rectify."""
        return F.relu(self.body(x) + (x if self.down is None else self.down(x)))


class ResNet18(nn.Sequential):
    """3x3 stem with a 2x2 pool, eight basic blocks, global average, dense layer."""

    def __init__(self, sizes):
        width = sizes["width"]
        layers = [
            conv3x3(sizes["channels"], width),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
        ]
        channels = width
        for stage in range(4):
            for block in range(2):
                layers.append(BasicBlock(channels, width * 2**stage, 2 if stage and not block else 1))
                channels = width * 2**stage
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, sizes["classes"]))


class Bottleneck(nn.Module):
    """conv1x1-bn-relu-conv3x3-bn-relu-conv1x1-bn plus shortcut, the stride in the 3x3."""

    def __init__(self, channels, within, stride):
        super().__init__()
        out = 4 * within
        self.body = nn.Sequential(
            nn.Conv2d(channels, within, 1, bias=False),
            nn.BatchNorm2d(within),
            nn.ReLU(inplace=True),
            conv3x3(within, within, stride),
            nn.BatchNorm2d(within),
            nn.ReLU(inplace=True),
            nn.Conv2d(within, out, 1, bias=False),
            nn.BatchNorm2d(out),
        )
        self.down = None
        if stride != 1 or channels != out:
            self.down = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        """Add the shortcut, then rectify."""
        return F.relu(self.body(x) + (x if self.down is None else self.down(x)))


class ResNet50(nn.Sequential):
    """7x7 stem with a 3x3 pool, bottlenecks, global average, dense layer."""

    def __init__(self, sizes):
        width = channels = sizes["width"]
        layers = [
            nn.Conv2d(sizes["channels"], width, 7, 2, 3, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
        ]
        for stage, count in enumerate(sizes["blocks"]):
            for block in range(count):
                layers.append(Bottleneck(channels, width * 2**stage, 2 if stage and not block else 1))
                channels = 4 * width * 2**stage
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, sizes["classes"]))


class VGG16(nn.Sequential):
    """Thirteen 3x3 convolutions with bias in five stages, dense layers."""

    def __init__(self, sizes):
        layers, channels = [], sizes["channels"]
        for count, factor in ((2, 1), (2, 2), (3, 4), (3, 8), (3, 8)):
            for _ in range(count):
                layers += [nn.Conv2d(channels, sizes["width"] * factor, 3, 1, 1), nn.ReLU(inplace=True)]
                channels = sizes["width"] * factor
            layers.append(nn.MaxPool2d(2))
        layers.append(nn.Flatten())
        features = channels * (sizes["image"] // 32) ** 2
        for _ in range(2 if sizes["dense"] else 0):
            layers += [nn.Linear(features, sizes["dense"]), nn.ReLU(inplace=True)]
            features = sizes["dense"]
        super().__init__(*layers, nn.Linear(features, sizes["classes"]))


class Sentiment(nn.Module):
    """Embedding, LSTM, dense layer on the last step."""

    def __init__(self, sizes):
        super().__init__()
        self.embedding = nn.Embedding(sizes["vocabulary"], sizes["embedding"])
        self.lstm = nn.LSTM(sizes["embedding"], sizes["hidden"], sizes["layers"], batch_first=True)
        self.head = nn.Linear(sizes["hidden"], sizes["classes"])

    def forward(self, tokens):
        """Indices (N, T) -> logits."""
        return self.head(self.lstm(self.embedding(tokens))[0][:, -1])
