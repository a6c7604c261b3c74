"""Sentiment classification as in Flax's guide: `nnx.Embed`, `nnx.RNN` over `nnx.OptimizedLSTMCell`, `nnx.Linear`."""

import jax.numpy as jnp
import optax
from flax import nnx

SOURCE = "written by hand from flax.nnx.Embed, RNN and OptimizedLSTMCell: no package has this network"
DIFFERS = ""


def lstm(width, hidden, rngs):
    """One direction over (N, T, width)."""
    return nnx.RNN(nnx.OptimizedLSTMCell(width, hidden, rngs=rngs))


class Sentiment(nnx.Module):
    """Indices (N, T) -> logits (N, classes)."""

    def __init__(self, sizes, rngs):
        both, self.ends = sizes["bidirectional"], sizes["readout"] == "first+last"
        width, hidden, layers = sizes["embedding"], sizes["hidden"], []
        self.embedding = nnx.Embed(sizes["vocabulary"], width, rngs=rngs)
        if not sizes["train_embedding"]:
            self.embedding.embedding = nnx.Cache(self.embedding.embedding.get_value())
        for _ in range(sizes["layers"]):
            forward = lstm(width, hidden, rngs)
            layers.append(nnx.Bidirectional(forward, lstm(width, hidden, rngs)) if both else forward)
            width = hidden * (1 + both)
        self.layers = nnx.List(layers)
        self.head = nnx.Linear(width * (1 + self.ends), sizes["classes"], rngs=rngs)

    def __call__(self, tokens):
        """Read the last step, or the first and the last."""
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(jnp.concatenate((x[:, 0], x[:, -1]), 1) if self.ends else x[:, -1])


def model(sizes, inputs):  # noqa: ARG001
    """Return the network."""
    return Sentiment(sizes, nnx.Rngs(0))


def inputs(batch):
    """Indices and labels."""
    return {name: batch[name] for name in ("tokens", "label")}


def loss(model, inputs):
    """Mean softmax cross-entropy."""
    return optax.softmax_cross_entropy_with_integer_labels(model(inputs["tokens"]), inputs["label"]).mean()
