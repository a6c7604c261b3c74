"""GNMT v2 from Flax's layers, after NVIDIA's program: one bidirectional layer, attention over the whole target at once."""

import jax.numpy as jnp
import optax
from flax import nnx

SOURCE = "written by hand from flax.nnx.RNN and OptimizedLSTMCell: no package has this network in JAX"
DIFFERS = ""


def lstm(width, hidden, rngs):
    """One direction over time-major sequences."""
    return nnx.RNN(nnx.OptimizedLSTMCell(width, hidden, rngs=rngs), time_major=True)


class Attention(nnx.Module):
    """Bahdanau's attention with a normalised vector: queries (T, N, H), keys (S, N, H) -> contexts (T, N, H)."""

    def __init__(self, hidden, rngs):
        self.query = nnx.Linear(hidden, hidden, use_bias=False, rngs=rngs)
        self.key = nnx.Linear(hidden, hidden, use_bias=False, rngs=rngs)
        self.vector = nnx.Param(nnx.initializers.normal(0.1)(rngs.params(), (hidden,)))
        self.bias, self.scale = nnx.Param(jnp.zeros(hidden)), nnx.Param(jnp.full(1, hidden**-0.5))

    def __call__(self, queries, keys, lengths):
        """Score every pair, mask the padding, average."""
        pairs = self.query(queries)[:, None] + (self.key(keys) + self.bias[...])
        scores = jnp.tanh(pairs) @ (self.vector[...] / jnp.linalg.norm(self.vector[...]) * self.scale[...])
        inside = jnp.arange(len(keys))[:, None] < lengths
        shares = nnx.softmax(jnp.where(inside, scores, -1e9), axis=1)
        return jnp.einsum("tsn,snh->tnh", shares, keys)


class GNMT(nnx.Module):
    """Source and target (N, length) -> logits (T - 1, N, vocabulary)."""

    def __init__(self, sizes, rngs):
        hidden, layers = sizes["hidden"], sizes["layers"]
        self.embedding = nnx.Embed(sizes["vocabulary"], hidden, rngs=rngs)
        self.first = nnx.Bidirectional(lstm(hidden, hidden, rngs), lstm(hidden, hidden, rngs), time_major=True)
        self.second = lstm(2 * hidden, hidden, rngs)
        self.encoder = nnx.List([lstm(hidden, hidden, rngs) for _ in range(layers - 2)])
        self.attention = Attention(hidden, rngs)
        self.bottom = lstm(hidden, hidden, rngs)
        self.decoder = nnx.List([lstm(2 * hidden, hidden, rngs) for _ in range(layers - 1)])
        self.classifier = nnx.Linear(hidden, sizes["vocabulary"], rngs=rngs)

    def __call__(self, source, lengths, target):
        """Encode, then decode all words, each after the correct words before it (teacher forcing)."""
        keys = self.second(self.first(self.embedding(source.T), seq_lengths=lengths))
        for layer in self.encoder:
            keys = layer(keys) + keys
        x = self.bottom(self.embedding(target[:, :-1].T))
        context = self.attention(x, keys, lengths)
        for number, layer in enumerate(self.decoder):
            y = layer(jnp.concatenate((x, context), axis=2))
            x = y + x if number else y
        return self.classifier(x)


def model(sizes, inputs):  # noqa: ARG001
    """Return the network."""
    return GNMT(sizes, nnx.Rngs(0))


def inputs(batch):
    """Return all arrays unchanged."""
    return dict(batch)


def loss(model, inputs):
    """Cross-entropy with labels smoothed by 0.1, summed over words and divided by the number of sentences."""
    logits, labels = model(inputs["source"], inputs["source_length"], inputs["target"]), inputs["target"][:, 1:].T
    each = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    uniform = nnx.logsumexp(logits, axis=-1) - logits.mean(-1)
    return jnp.where(labels != 0, 0.9 * each + 0.1 * uniform, 0.0).sum() / labels.shape[1]
