"""JAX as a person would write it by hand: a bare loop around our objects, and whole programs of its own idiom."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx


def bare_loop(trainer, batch, steps):
    """The loop of JAX's own guides, around the jitted update and the state that the trainer holds."""
    update, scalars = trainer.update, trainer.scalars
    carry, loss = trainer.carry, None
    for _ in range(steps):
        carry, loss = update(carry, batch, scalars())
    trainer.carry, trainer.loss = carry, loss


def idiomatic(workload, sizes, optimizer, batch):
    """Return (step, synchronise) of the same network in Flax, in the functional loop of its guide to performance."""
    build = {"resnet18": ResNet18, "resnet50": ResNet50, "vgg16": VGG16, "lstm-imdb": Sentiment}[workload]
    model = build(sizes, nnx.Rngs(0))
    if optimizer["name"] == "sgd":
        transform = optax.sgd(optimizer["learning_rate"], momentum=optimizer["momentum"])
        if optimizer["weight_decay"]:
            transform = optax.chain(optax.add_decayed_weights(optimizer["weight_decay"]), transform)
    else:
        transform = optax.adam(optimizer["learning_rate"], eps=optimizer["epsilon"])
    graph, state = nnx.split((model, nnx.Optimizer(model, transform, wrt=nnx.Param)))
    x = batch["tokens"] if workload == "lstm-imdb" else batch["image"].transpose(0, 2, 3, 1)
    x, y = jax.device_put((np.ascontiguousarray(x), batch["label"]))

    @jax.jit(donate_argnums=0)
    def train_step(state, x, y):
        model, rule = nnx.merge(graph, state)

        def objective(model):
            return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()

        loss, gradients = nnx.value_and_grad(objective)(model)
        rule.update(model, gradients)
        return nnx.state((model, rule)), loss

    latest = [state, None]

    def step():
        latest[:] = train_step(latest[0], x, y)

    return step, lambda: jax.block_until_ready(latest)


def conv(channels, out, size, stride, rngs):
    """A convolution without bias, padded so that stride 1 keeps the size."""
    return nnx.Conv(channels, out, (size, size), stride, padding=size // 2, use_bias=False, rngs=rngs)


def norm(channels, rngs):
    """Batch norm with PyTorch's constants."""
    return nnx.BatchNorm(channels, momentum=0.9, epsilon=1e-5, rngs=rngs)


class BasicBlock(nnx.Module):
    """conv-bn-relu-conv-bn plus shortcut."""

    def __init__(self, channels, out, stride, rngs):
        self.body = nnx.Sequential(
            conv(channels, out, 3, stride, rngs), norm(out, rngs), nnx.relu, conv(out, out, 3, 1, rngs), norm(out, rngs)
        )
        changes = stride != 1 or channels != out
        self.down = nnx.Sequential(conv(channels, out, 1, stride, rngs), norm(out, rngs)) if changes else nnx.identity

    def __call__(self, x):
        """Add the shortcut, then rectify."""
        return nnx.relu(self.body(x) + self.down(x))


class ResNet18(nnx.Module):
    """3x3 stem with a 2x2 pool, eight basic blocks, global average, dense layer."""

    def __init__(self, sizes, rngs):
        width = channels = sizes["width"]
        self.stem = nnx.Sequential(conv(sizes["channels"], width, 3, 1, rngs), norm(width, rngs), nnx.relu)
        blocks = []
        for stage in range(4):
            for block in range(2):
                out = width * 2**stage
                blocks.append(BasicBlock(channels, out, 2 if stage and not block else 1, rngs))
                channels = out
        self.blocks = nnx.Sequential(*blocks)
        self.head = nnx.Linear(channels, sizes["classes"], rngs=rngs)

    def __call__(self, x):
        """Images (N, H, W, C) -> logits."""
        x = nnx.max_pool(self.stem(x), (2, 2), strides=(2, 2))
        return self.head(jnp.mean(self.blocks(x), axis=(1, 2)))


class Bottleneck(nnx.Module):
    """conv1x1-bn-relu-conv3x3-bn-relu-conv1x1-bn plus shortcut, the stride in the 3x3."""

    def __init__(self, channels, within, stride, rngs):
        out = 4 * within
        self.body = nnx.Sequential(
            conv(channels, within, 1, 1, rngs), norm(within, rngs), nnx.relu,
            conv(within, within, 3, stride, rngs), norm(within, rngs), nnx.relu,
            conv(within, out, 1, 1, rngs), norm(out, rngs),
        )  # fmt: skip
        changes = stride != 1 or channels != out
        self.down = nnx.Sequential(conv(channels, out, 1, stride, rngs), norm(out, rngs)) if changes else nnx.identity

    def __call__(self, x):
        """Add the shortcut, then rectify."""
        return nnx.relu(self.body(x) + self.down(x))


class ResNet50(nnx.Module):
    """7x7 stem with a 3x3 pool, bottlenecks, global average, dense layer."""

    def __init__(self, sizes, rngs):
        width = channels = sizes["width"]
        self.stem = nnx.Sequential(conv(sizes["channels"], width, 7, 2, rngs), norm(width, rngs), nnx.relu)
        blocks = []
        for stage, count in enumerate(sizes["blocks"]):
            for block in range(count):
                blocks.append(Bottleneck(channels, width * 2**stage, 2 if stage and not block else 1, rngs))
                channels = 4 * width * 2**stage
        self.blocks = nnx.Sequential(*blocks)
        self.head = nnx.Linear(channels, sizes["classes"], rngs=rngs)

    def __call__(self, x):
        """Images (N, H, W, C) -> logits."""
        x = nnx.max_pool(self.stem(x), (3, 3), strides=(2, 2), padding=((1, 1), (1, 1)))
        return self.head(jnp.mean(self.blocks(x), axis=(1, 2)))


class VGG16(nnx.Module):
    """Thirteen 3x3 convolutions with bias in five stages, dense layers."""

    def __init__(self, sizes, rngs):
        stages, channels = [], sizes["channels"]
        for count, factor in ((2, 1), (2, 2), (3, 4), (3, 8), (3, 8)):
            stage = []
            for _ in range(count):
                stage += [nnx.Conv(channels, sizes["width"] * factor, (3, 3), padding=1, rngs=rngs), nnx.relu]
                channels = sizes["width"] * factor
            stages.append(nnx.Sequential(*stage))
        self.stages = nnx.List(stages)
        features, dense = channels * (sizes["image"] // 32) ** 2, []
        for _ in range(2 if sizes["dense"] else 0):
            dense += [nnx.Linear(features, sizes["dense"], rngs=rngs), nnx.relu]
            features = sizes["dense"]
        self.head = nnx.Sequential(*dense, nnx.Linear(features, sizes["classes"], rngs=rngs))

    def __call__(self, x):
        """Images (N, H, W, C) -> logits."""
        for stage in self.stages:
            x = nnx.max_pool(stage(x), (2, 2), strides=(2, 2))
        return self.head(x.reshape(len(x), -1))


class Sentiment(nnx.Module):
    """Embedding, LSTM, dense layer on the last step."""

    def __init__(self, sizes, rngs):
        self.embedding = nnx.Embed(sizes["vocabulary"], sizes["embedding"], rngs=rngs)
        self.lstm = nnx.RNN(nnx.OptimizedLSTMCell(sizes["embedding"], sizes["hidden"], rngs=rngs))
        self.head = nnx.Linear(sizes["hidden"], sizes["classes"], rngs=rngs)

    def __call__(self, tokens):
        """Indices (N, T) -> logits."""
        return self.head(self.lstm(self.embedding(tokens))[:, -1])
