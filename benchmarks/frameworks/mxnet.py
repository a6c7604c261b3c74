"""MXNet as a person would write it by hand: a bare loop around our objects, and whole programs in Gluon."""

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn


def bare_loop(trainer, batch, steps):
    """The training loop of Gluon's crash course, around the objects that the trainer holds."""
    objective, rule, statistics = trainer.objective, trainer.rule, trainer._statistics
    for _ in range(steps):
        with autograd.record():
            loss, _ = objective(*batch)
        loss.backward()
        rule.step(1)
        statistics.advance()


def idiomatic(workload, sizes, optimizer, batch):
    """Return (step, synchronise) of the same network in hybridized Gluon blocks with a Gluon trainer."""
    build = {"resnet18": resnet18, "resnet50": resnet50, "vgg16": vgg16, "inceptionv3": inceptionv3, "lstm-imdb": Sentiment}
    network = build[workload](sizes)
    network.initialize(mx.init.Xavier())
    network.hybridize(static_alloc=True, static_shape=True)
    criterion = gluon.loss.SoftmaxCrossEntropyLoss()
    criterion.hybridize(static_alloc=True, static_shape=True)
    constants = {"learning_rate": optimizer["learning_rate"], "wd": optimizer["weight_decay"]}
    if optimizer["name"] == "sgd":
        constants["momentum"] = optimizer["momentum"]
    else:
        constants["epsilon"] = optimizer["epsilon"]
    x = nd.array(batch["tokens" if workload == "lstm-imdb" else "image"])
    y = nd.array(batch["label"])
    network(x)
    rule = gluon.Trainer(network.collect_params(), optimizer["name"], constants, kvstore=None)

    def step():
        with autograd.record():
            loss = criterion(network(x), y)
        loss.backward()
        rule.step(x.shape[0])

    return step, nd.waitall


class BasicBlock(gluon.HybridBlock):
    """conv-bn-relu-conv-bn plus shortcut."""

    def __init__(self, channels, out, stride):
        super().__init__()
        with self.name_scope():
            self.body = nn.HybridSequential()
            self.body.add(
                nn.Conv2D(out, 3, stride, 1, use_bias=False, in_channels=channels),
                nn.BatchNorm(),
                nn.Activation("relu"),
                nn.Conv2D(out, 3, 1, 1, use_bias=False, in_channels=out),
                nn.BatchNorm(),
            )
            self.down = None
            if stride != 1 or channels != out:
                self.down = nn.HybridSequential()
                self.down.add(nn.Conv2D(out, 1, stride, use_bias=False, in_channels=channels), nn.BatchNorm())

    def hybrid_forward(self, F, x):
        """Add the shortcut, then rectify."""
        return F.Activation(self.body(x) + (x if self.down is None else self.down(x)), act_type="relu")


def resnet18(sizes):
    """3x3 stem with a 2x2 pool, eight basic blocks, global average, dense layer."""
    width = sizes["width"]
    network = nn.HybridSequential()
    network.add(
        nn.Conv2D(width, 3, 1, 1, use_bias=False, in_channels=sizes["channels"]),
        nn.BatchNorm(),
        nn.Activation("relu"),
        nn.MaxPool2D(2, 2),
    )
    channels = width
    for stage in range(4):
        for block in range(2):
            network.add(BasicBlock(channels, width * 2**stage, 2 if stage and not block else 1))
            channels = width * 2**stage
    network.add(nn.GlobalAvgPool2D(), nn.Flatten(), nn.Dense(sizes["classes"], in_units=channels))
    return network


def resnet50(sizes):
    """Gluon's model zoo at our sizes: v1 (stride in the first 1x1), which leaves biases on in its 1x1 convolutions."""
    from mxnet.gluon.model_zoo import vision

    widths = [sizes["width"], *(4 * sizes["width"] * 2**stage for stage in range(4))]
    return vision.ResNetV1(vision.BottleneckV1, list(sizes["blocks"]), widths, classes=sizes["classes"])


def vgg16(sizes):
    """Thirteen 3x3 convolutions with bias in five stages, dense layers: the model zoo's VGG without its dropout."""
    network = nn.HybridSequential()
    for count, factor in ((2, 1), (2, 2), (3, 4), (3, 8), (3, 8)):
        for _ in range(count):
            network.add(nn.Conv2D(sizes["width"] * factor, 3, padding=1), nn.Activation("relu"))
        network.add(nn.MaxPool2D(strides=2))
    for _ in range(2 if sizes["dense"] else 0):
        network.add(nn.Dense(sizes["dense"], activation="relu"))
    network.add(nn.Dense(sizes["classes"]))
    return network


def inceptionv3(sizes):
    """Gluon's own; it computes a dropout of 0.5 more, and fits images of 299 pixels alone."""
    return gluon.model_zoo.vision.inception_v3(classes=sizes["classes"])


class Sentiment(gluon.HybridBlock):
    """Embedding, fused LSTM, dense layer on the last step."""

    def __init__(self, sizes):
        super().__init__()
        with self.name_scope():
            self.embedding = nn.Embedding(sizes["vocabulary"], sizes["embedding"])
            self.lstm = gluon.rnn.LSTM(sizes["hidden"], sizes["layers"], input_size=sizes["embedding"])
            self.head = nn.Dense(sizes["classes"], in_units=sizes["hidden"])

    def hybrid_forward(self, F, tokens):
        """Indices (N, T) -> logits."""
        steps = self.lstm(self.embedding(F.transpose(tokens)))
        return self.head(F.squeeze(F.slice_axis(steps, axis=0, begin=-1, end=None), axis=0))
