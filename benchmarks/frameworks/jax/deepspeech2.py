"""Deep Speech 2 from Flax's layers: masked convolutions, bidirectional LSTMs whose directions are summed, optax's CTC."""

import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

SOURCE = "written by hand from flax.nnx.Conv, RNN and OptimizedLSTMCell, and optax.ctc_loss: no package has this network in JAX"
DIFFERS = "biased running variances"


class Masked(nnx.Module):
    """Convolution over (frequency, time), batch norm, clip; frames after the end become zero."""

    def __init__(self, channels, out, kernel, strides, rngs):
        padding = [(extent // 2, extent // 2) for extent in kernel]
        self.conv = nnx.Conv(channels, out, kernel, strides, padding=padding, use_bias=False, rngs=rngs)
        self.norm = nnx.BatchNorm(out, momentum=0.9, epsilon=1e-5, rngs=rngs)

    def __call__(self, x, inside):
        """(N, F, T, C) and the mask of valid frames (N, T') -> (N, F', T', out)."""
        return jnp.clip(self.norm(self.conv(x)), 0.0, 20.0) * inside[:, None, :, None]


class Recurrent(nnx.Module):
    """Batch norm over features, then an LSTM whose directions are summed: (N, T, width) -> (N, T, hidden)."""

    def __init__(self, width, hidden, rngs, normalise=True):
        self.norm = nnx.BatchNorm(width, momentum=0.9, epsilon=1e-5, rngs=rngs) if normalise else nnx.identity
        forward, backward = (nnx.RNN(nnx.OptimizedLSTMCell(width, hidden, rngs=rngs)) for _ in range(2))
        self.lstm = nnx.Bidirectional(forward, backward, merge_fn=jnp.add)

    def __call__(self, x, lengths, inside):
        """Set steps after the end to zero."""
        return self.lstm(self.norm(x), seq_lengths=lengths) * inside[..., None]


class DeepSpeech2(nnx.Module):
    """Spectrograms (N, bins, T, 1) and output lengths -> logits (N, T', classes)."""

    def __init__(self, sizes, rngs):
        channels, hidden, width = sizes["channels"], sizes["hidden"], sizes["channels"] * -(-sizes["bins"] // 4)
        self.first = Masked(1, channels, (41, 11), (2, 2), rngs)
        self.second = Masked(channels, channels, (21, 11), (2, 1), rngs)
        rest = [Recurrent(hidden, hidden, rngs) for _ in range(sizes["layers"] - 1)]
        self.recurrent = nnx.List([Recurrent(width, hidden, rngs, normalise=False), *rest])
        self.norm = nnx.BatchNorm(hidden, momentum=0.9, epsilon=1e-5, rngs=rngs)
        self.head = nnx.Linear(hidden, sizes["classes"], use_bias=False, rngs=rngs)

    def __call__(self, spectrogram, lengths):
        """Run all layers."""
        inside = jnp.arange((spectrogram.shape[2] + 1) // 2) < lengths[:, None]
        x = self.second(self.first(spectrogram, inside), inside)
        x = x.transpose(0, 2, 3, 1).reshape(*inside.shape, -1)
        for layer in self.recurrent:
            x = layer(x, lengths, inside)
        return self.head(self.norm(x))


def model(sizes, inputs):  # noqa: ARG001
    """Return the network."""
    return DeepSpeech2(sizes, nnx.Rngs(0))


def inputs(batch):
    """Spectrograms (N, F, T, 1), output lengths, transcripts and the mask of their letters."""
    transcript, letters = batch["transcript"], batch["transcript_length"]
    return {
        "spectrogram": np.ascontiguousarray(batch["spectrogram"].transpose(0, 2, 3, 1)),
        "lengths": (batch["frames"] + 1) // 2,
        "transcript": transcript,
        "transcript_paddings": np.float32(np.arange(transcript.shape[1]) >= letters[:, None]),
    }


def loss(model, inputs):
    """CTC, blank 0, summed over the batch and divided by its size."""
    lengths = inputs["lengths"]
    logits = model(inputs["spectrogram"], lengths)
    paddings = (jnp.arange(logits.shape[1]) >= lengths[:, None]).astype(logits.dtype)
    return optax.ctc_loss(logits, paddings, inputs["transcript"], inputs["transcript_paddings"]).mean()
