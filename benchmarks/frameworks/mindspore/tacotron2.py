"""Tacotron 2 by MindSpore's cells, its decoder unrolled in the graph."""

from itertools import pairwise

import numpy as np
from mindspore import nn, ops

SOURCE = (
    "written by hand from mindspore 2.10.0's nn.Conv1d, BatchNorm2d, LSTM and LSTMCell; MindSpore's own Tacotron 2 is "
    "a script for Ascend, in no package"
)
DIFFERS = (
    "a second trainable bias in every LSTM; the encoder's backward direction starts in the padding: with lengths, "
    "nn.LSTM would not use its fused kernel"
)
MORE = 10_240


class Convolution(nn.Cell):
    """Convolution of width 5 that keeps the length, batch norm."""

    def __init__(self, channels, out):
        super().__init__()
        self.conv = nn.Conv1d(channels, out, 5, pad_mode="pad", padding=2)
        self.norm = nn.BatchNorm2d(out, eps=1e-5, momentum=0.9)

    def construct(self, x):
        """(N, channels, T) -> (N, out, T)."""
        return ops.squeeze(self.norm(ops.expand_dims(self.conv(x), 2)), 2)


class Attention(nn.Cell):
    """Location-sensitive attention of one frame."""

    def __init__(self, sizes):
        super().__init__()
        units, window = sizes["attention"], sizes["window"]
        self.query = nn.Dense(sizes["lstm"], units, has_bias=False)
        self.conv = nn.Conv1d(1, sizes["filters"], window, pad_mode="pad", padding=window // 2)
        self.dense = nn.Dense(sizes["filters"], units, has_bias=False)
        self.v = nn.Dense(units, 1, has_bias=False)

    def construct(self, state, seen, memory, keys, beyond):
        """State (N, H), cumulative weights (N, L), memory, its keys, mask of its padding -> context (N, E), weights (N, L)."""
        location = self.dense(ops.transpose(self.conv(ops.expand_dims(seen, 1)), (0, 2, 1)))
        energy = ops.squeeze(self.v(ops.tanh(ops.expand_dims(self.query(state), 1) + keys + location)), 2)
        share = ops.softmax(ops.masked_fill(energy, beyond, -1e9), -1)
        return ops.squeeze(ops.bmm(ops.expand_dims(share, 1), memory), 1), share


class Tacotron(nn.Cell):
    """Text (N, L), its lengths, mel (N, M, T) -> mel, mel_post (N, M, T), gate (N, T)."""

    def __init__(self, sizes):
        super().__init__()
        width, mels, hidden = sizes["embedding"], sizes["mels"], sizes["lstm"]
        self.embedding = nn.Embedding(sizes["symbols"], width)
        self.encoder = nn.SequentialCell([cell for _ in range(3) for cell in (Convolution(width, width), nn.ReLU())])
        self.lstm = nn.LSTM(width, width // 2, batch_first=True, bidirectional=True)
        prenet = []
        for features in (mels, sizes["prenet"]):
            prenet += [nn.Dense(features, sizes["prenet"], has_bias=False), nn.ReLU()]
        self.prenet = nn.SequentialCell(prenet)
        self.key = nn.Dense(width, sizes["attention"], has_bias=False)
        self.first, self.second = nn.LSTMCell(sizes["prenet"] + width, hidden), nn.LSTMCell(hidden, hidden)
        self.attention = Attention(sizes)
        self.frame, self.gate = nn.Dense(hidden + width, mels), nn.Dense(hidden + width, 1)
        widths, postnet = (mels, *(sizes["postnet"],) * 4, mels), []
        for channels, out in pairwise(widths):
            postnet += [Convolution(channels, out), nn.Tanh()]
        self.postnet = nn.SequentialCell(postnet[:-1])
        self.hidden = hidden

    def construct(self, text, lengths, mel):
        """Teacher-forced: the decoder gets the correct frame before each frame."""
        x = self.encoder(ops.transpose(self.embedding(text), (0, 2, 1)))
        beyond = ops.arange(text.shape[1]).reshape(1, -1) >= lengths.reshape(-1, 1)
        memory = self.lstm(ops.transpose(x, (0, 2, 1)))[0] * ops.expand_dims(ops.cast(~beyond, x.dtype), 2)
        moved = ops.transpose(mel, (2, 0, 1))
        before = self.prenet(ops.concat((ops.zeros_like(moved[:1]), moved[:-1]), 0))
        read = self.decode(before, memory, beyond)
        found = ops.transpose(self.frame(read), (1, 2, 0))
        return found, found + self.postnet(found), ops.transpose(ops.squeeze(self.gate(read), 2), (1, 0))

    def decode(self, before, memory, beyond):
        """Prenet's frames (T, N, P) -> second LSTM's states and the contexts, concatenated (T, N, H + E)."""
        keys, batch = self.key(memory), memory.shape[0]
        zero = ops.zeros((batch, self.hidden), memory.dtype)
        first = second = (zero, zero)
        context, seen = ops.zeros((batch, memory.shape[2]), memory.dtype), ops.zeros(beyond.shape, memory.dtype)
        decoded = []
        for at in ops.unstack(before, 0):
            first = self.first(ops.concat((at, context), 1), first)
            second = self.second(first[0], second)
            context, share = self.attention(second[0], seen, memory, keys, beyond)
            seen = seen + share
            decoded.append(ops.concat((second[0], context), 1))
        return ops.stack(decoded, 0)


def model(sizes):
    """Return the network."""
    return Tacotron(sizes)


def inputs(batch):
    """Text, its lengths, mel."""
    return batch["text"], batch["text_length"], batch["mel"]


def targets(batch):
    """Mel, and a gate that is 1 from the last frame on."""
    ended = np.arange(batch["mel"].shape[2]) >= batch["mel_length"][:, None] - 1
    return batch["mel"], ended.astype(np.float32)


class Loss(nn.Cell):
    """Squared errors of both spectrograms and the gate's cross-entropy: plain means that include padding."""

    def __init__(self):
        super().__init__()
        self.squared, self.entropy = nn.MSELoss(), nn.BCEWithLogitsLoss()

    def construct(self, mel, mel_post, gate, target, ended):
        """Outputs and targets -> scalar loss."""
        return self.squared(mel, target) + self.squared(mel_post, target) + self.entropy(gate, ended)


def loss():
    """Return the sum of three means."""
    return Loss()
