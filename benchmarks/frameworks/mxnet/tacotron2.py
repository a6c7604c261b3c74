"""Tacotron 2 from Gluon's layers and cells, its decoder unrolled in the hybridized graph."""

import numpy as np
from mxnet import gluon
from mxnet.gluon import nn, rnn

SOURCE = (
    "written by hand from mxnet 1.9.1's gluon.nn.Conv2D (the backward pass of its Conv1D crashes on CPU), "
    "gluon.rnn.LSTM and an unrolled LSTMCell; no package has this network for MXNet"
)
DIFFERS = (
    "a second trainable bias in every LSTM; the encoder's backward direction starts in the padding, because the"
    " fused operator uses lengths only with cuDNN; biased running variances"
)
MORE = 10_240


def convolutions(widths, activations):
    """Convolutions of flat images (N, C, 1, T) of width 5, each with batch norm and activation."""
    found = nn.HybridSequential()
    for channels, out, activation in zip(widths[:-1], widths[1:], activations, strict=True):
        conv = nn.Conv2D(out, (1, 5), padding=(0, 2), use_bias=False, in_channels=channels)
        found.add(conv, nn.BatchNorm(in_channels=out))
        if activation:
            found.add(nn.Activation(activation))
    return found


class Attention(gluon.HybridBlock):
    """Location-sensitive attention of one frame."""

    def __init__(self, sizes):
        super().__init__()
        units, window = sizes["attention"], sizes["window"]
        with self.name_scope():
            self.query = nn.Dense(units, use_bias=False, in_units=sizes["lstm"])
            padding = (0, window // 2)
            self.conv = nn.Conv2D(sizes["filters"], (1, window), padding=padding, use_bias=False, in_channels=1)
            self.dense = nn.Dense(units, use_bias=False, flatten=False, in_units=sizes["filters"])
            self.v = nn.Dense(1, use_bias=False, flatten=False, in_units=units)

    def hybrid_forward(self, F, state, seen, memory, keys, lengths):
        """State (N, H), cumulative weights (N, L), memory, its keys, lengths -> context (N, E), weights (N, L)."""
        location = F.squeeze(self.conv(F.reshape(seen, (0, 1, 1, -1))), axis=2)
        location = self.dense(F.swapaxes(location, 1, 2))
        energy = self.v(F.tanh(F.broadcast_add(keys + location, F.expand_dims(self.query(state), 1))))
        share = F.softmax(F.reshape(energy, (0, -3)), lengths, use_length=True)
        return F.reshape(F.batch_dot(F.expand_dims(share, 1), memory), (-3, 0)), share


class Decoder(gluon.HybridBlock):
    """Prenet's frames (T, N, P), memory (N, L, E), lengths -> states of the second LSTM and contexts (T, N, H + E)."""

    def __init__(self, sizes):
        super().__init__()
        hidden, width = sizes["lstm"], sizes["embedding"]
        self.frames, self.hidden = sizes["frames"], hidden
        with self.name_scope():
            self.first = rnn.LSTMCell(hidden, input_size=sizes["prenet"] + width)
            self.second = rnn.LSTMCell(hidden, input_size=hidden)
            self.key = nn.Dense(sizes["attention"], use_bias=False, flatten=False, in_units=width)
            self.attention = Attention(sizes)

    def hybrid_forward(self, F, x, memory, lengths):
        """Decode frame by frame."""
        keys = self.key(memory)
        context = F.zeros_like(F.mean(memory, axis=1))
        seen = F.zeros_like(F.mean(memory, axis=2))
        zero = F.broadcast_axis(F.zeros_like(F.mean(memory, axis=(1, 2), keepdims=True)), axis=2, size=self.hidden)
        zero = F.reshape(zero, (-3, 0))
        first, second, decoded = [zero, zero], [zero, zero], []
        for at in F.SliceChannel(x, num_outputs=self.frames, axis=0, squeeze_axis=True):
            state, first = self.first(F.concat(at, context, dim=1), first)
            state, second = self.second(state, second)
            context, share = self.attention(state, seen, memory, keys, lengths)
            seen = seen + share
            decoded.append(F.concat(state, context, dim=1))
        return F.stack(*decoded, axis=0)


class Tacotron(gluon.HybridBlock):
    """Text (N, L), its lengths, mel (N, M, T) -> mel, mel_post (N, M, T), gate (N, T)."""

    def __init__(self, sizes):
        super().__init__()
        width, mels, read = sizes["embedding"], sizes["mels"], sizes["lstm"] + sizes["embedding"]
        with self.name_scope():
            self.embedding = nn.Embedding(sizes["symbols"], width)
            self.encoder = convolutions((width,) * 4, ("relu",) * 3)
            self.lstm = rnn.LSTM(width // 2, bidirectional=True, input_size=width)
            self.prenet = nn.HybridSequential()
            for features in (mels, sizes["prenet"]):
                self.prenet.add(nn.Dense(sizes["prenet"], "relu", use_bias=False, flatten=False, in_units=features))
            self.decoder = Decoder(sizes)
            self.frame, self.gate = (nn.Dense(out, flatten=False, in_units=read) for out in (mels, 1))
            self.postnet = convolutions((mels, *(sizes["postnet"],) * 4, mels), (*("tanh",) * 4, ""))

    def hybrid_forward(self, F, text, text_length, mel):
        """Teacher-forced: the decoder gets the correct frame before each frame."""
        x = self.encoder(F.expand_dims(F.swapaxes(self.embedding(text), 1, 2), 2))
        memory = self.lstm(F.transpose(F.squeeze(x, axis=2), (2, 0, 1)))
        memory = F.swapaxes(F.SequenceMask(memory, text_length, use_sequence_length=True), 0, 1)
        frames = F.transpose(mel, (2, 0, 1))
        none = F.zeros_like(F.slice_axis(frames, axis=0, begin=0, end=1))
        before = F.concat(none, F.slice_axis(frames, axis=0, begin=0, end=-1), dim=0)
        read = self.decoder(self.prenet(before), memory, F.cast(text_length, "int32"))
        found = F.transpose(self.frame(read), (1, 2, 0))
        refined = found + F.squeeze(self.postnet(F.expand_dims(found, 2)), axis=2)
        return found, refined, F.transpose(F.reshape(self.gate(read), (0, -3)))


def model(sizes):
    """Return the network."""
    return Tacotron(sizes)


def inputs(batch):
    """Text, its lengths, mel."""
    return batch["text"], batch["text_length"], batch["mel"]


def targets(batch):
    """Mel, and a gate that is 1 from the last frame on."""
    ended = batch["mel_length"][:, None] - 1 <= np.arange(batch["mel"].shape[2])
    return batch["mel"], ended


class Loss(gluon.HybridBlock):
    """Squared errors of both spectrograms and the gate's cross-entropy: plain means that include padding."""

    def __init__(self):
        super().__init__()
        self.entropy = gluon.loss.SigmoidBinaryCrossEntropyLoss()

    def hybrid_forward(self, F, mel, mel_post, gate, target, ended):
        """Outputs and targets -> scalar loss."""
        squared = F.mean(F.square(mel - target)) + F.mean(F.square(mel_post - target))
        return squared + F.mean(self.entropy(gate, ended))


def loss():
    """Return the sum of three means."""
    return Loss()
