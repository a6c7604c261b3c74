"""Tacotron 2 from Flax's layers: prenet, projections and postnet over all frames at once, the decoder a scan over them."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

SOURCE = "written by hand from flax.nnx.Conv, RNN and OptimizedLSTMCell, and jax.lax.scan: no package has this network in JAX"
DIFFERS = "biased running variances"


class Convolutions(nnx.Module):
    """Convolutions of width 5, each with batch norm and activation: (N, T, C) -> (N, T, out)."""

    def __init__(self, widths, activations, rngs):
        pairs = list(pairwise(widths))
        self.convs = nnx.List([nnx.Conv(*pair, 5, use_bias=False, rngs=rngs) for pair in pairs])
        self.norms = nnx.List([nnx.BatchNorm(out, momentum=0.9, epsilon=1e-5, rngs=rngs) for _, out in pairs])
        self.activations = activations

    def __call__(self, x):
        """Apply all convolutions in sequence."""
        for conv, norm, activation in zip(self.convs, self.norms, self.activations, strict=True):
            x = activation(norm(conv(x)))
        return x


class Attention(nnx.Module):
    """Location-sensitive attention."""

    def __init__(self, sizes, rngs):
        units, window = sizes["attention"], sizes["window"]
        self.query, self.memory, self.location_dense, self.score = (
            nnx.Linear(width, out, use_bias=False, rngs=rngs)
            for width, out in (
                (sizes["lstm"], units),
                (sizes["embedding"], units),
                (sizes["filters"], units),
                (units, 1),
            )
        )
        self.location = nnx.Conv(1, sizes["filters"], window, use_bias=False, rngs=rngs)

    def __call__(self, query, cumulative, keys, memory, inside):
        """Query (N, H), the cumulative weights (N, L), keys, memory (N, L, ...), valid positions (N, L) -> context, weights."""
        location = self.location_dense(self.location(cumulative[..., None]))
        energy = self.score(jnp.tanh(self.query(query)[:, None] + keys + location))[..., 0]
        weights = nnx.softmax(jnp.where(inside, energy, -1e9))
        return jnp.einsum("nl,nlm->nm", weights, memory), weights


class Tacotron2(nnx.Module):
    """Text (N, L), its lengths, mel (N, T, mels) -> mel, mel with the postnet's correction, gate (N, T)."""

    def __init__(self, sizes, rngs):
        width, hidden, mels, prenet = sizes["embedding"], sizes["lstm"], sizes["mels"], sizes["prenet"]
        self.embedding = nnx.Embed(sizes["symbols"], width, rngs=rngs)
        self.convolutions = Convolutions((width,) * 4, (nnx.relu,) * 3, rngs)
        forward, backward = (nnx.RNN(nnx.OptimizedLSTMCell(width, width // 2, rngs=rngs)) for _ in range(2))
        self.lstm = nnx.Bidirectional(forward, backward)
        self.prenet = nnx.Sequential(
            nnx.Linear(mels, prenet, use_bias=False, rngs=rngs),
            nnx.relu,
            nnx.Linear(prenet, prenet, use_bias=False, rngs=rngs),
            nnx.relu,
        )
        self.attention = Attention(sizes, rngs)
        self.first = nnx.OptimizedLSTMCell(prenet + width, hidden, rngs=rngs)
        self.second = nnx.OptimizedLSTMCell(hidden, hidden, rngs=rngs)
        self.frame = nnx.Linear(hidden + width, mels, rngs=rngs)
        self.gate = nnx.Linear(hidden + width, 1, rngs=rngs)
        activations = (nnx.tanh,) * 4 + (nnx.identity,)
        self.postnet = Convolutions((mels, *(sizes["postnet"],) * 4, mels), activations, rngs)

    def __call__(self, text, lengths, mel):
        """Encode, decode each frame after the correct frames before it (teacher forcing), refine."""
        inside = jnp.arange(text.shape[1]) < lengths[:, None]
        memory = self.lstm(self.convolutions(self.embedding(text)), seq_lengths=lengths) * inside[..., None]
        before = self.prenet(jnp.pad(mel[:, :-1], ((0, 0), (1, 0), (0, 0))))
        read = self.decode(before.transpose(1, 0, 2), memory, inside).transpose(1, 0, 2)
        frames = self.frame(read)
        return frames, frames + self.postnet(frames), self.gate(read)[..., 0]

    def decode(self, before, memory, inside):
        """Run two LSTMs and the attention over frames (T, N, prenet): states and contexts, concatenated (T, N, H + M)."""
        keys = self.attention.memory(memory)

        def step(carry, x):
            first, second, context, cumulative = carry
            first, x = self.first(first, jnp.concatenate((x, context), 1))
            second, x = self.second(second, x)
            context, weights = self.attention(x, cumulative, keys, memory, inside)
            return (first, second, context, cumulative + weights), jnp.concatenate((x, context), 1)

        zero = jnp.zeros((len(memory), self.second.hidden_features))
        start = (zero, zero), (zero, zero), jnp.zeros_like(memory[:, 0]), jnp.zeros(memory.shape[:2])
        return jax.lax.scan(step, start, before)[1]


def model(sizes, inputs):  # noqa: ARG001
    """Return the network."""
    return Tacotron2(sizes, nnx.Rngs(0))


def inputs(batch):
    """Spectrograms (N, T, mels); the gate's target is 1 from the last frame on."""
    mel, mel_length = np.ascontiguousarray(batch["mel"].transpose(0, 2, 1)), batch["mel_length"]
    ended = np.float32(np.arange(mel.shape[1]) >= mel_length[:, None] - 1)
    return {"text": batch["text"], "text_length": batch["text_length"], "mel": mel, "gate": ended}


def loss(model, inputs):
    """Squared errors of both spectrograms and the gate's cross-entropy; padding is included."""
    mel, post, gate = model(inputs["text"], inputs["text_length"], inputs["mel"])
    squared = ((mel - inputs["mel"]) ** 2).mean() + ((post - inputs["mel"]) ** 2).mean()
    return squared + optax.sigmoid_binary_cross_entropy(gate, inputs["gate"]).mean()
