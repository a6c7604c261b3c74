"""Tacotron 2 in MindSpore: what no frame needs from the one before it is computed outside the decoder's loop."""

from __future__ import annotations

from typing import Any

import mindspore
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import initializer

from steelyard_worker.frameworks.mindspore.recurrent import Bidirectional, named_by_cell_and_direction


class Weight(nn.Cell):
    """One tensor called `weight`."""

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.weight = Parameter(initializer("zeros", shape))

    def construct(self) -> Tensor:
        return self.weight


class Convolution(nn.Cell):
    """Bias-free convolution over the last axis, its window odd: (N, channels, 1, T) -> (N, out, 1, T)."""

    def __init__(self, channels: int, out: int, window: int) -> None:
        super().__init__()
        self.weight = Parameter(initializer("zeros", (out, channels, window)))
        half = window // 2
        self.convolve = ops.Conv2D(out, (1, window), pad_mode="pad", pad=(0, 0, half, half))

    def construct(self, x: Tensor) -> Tensor:
        return self.convolve(x, ops.expand_dims(self.weight, 2))


class Convolutions(nn.Cell):
    """Convolutions of width 5, each with batch norm and activation: (N, C, 1, T) -> (N, out, 1, T)."""

    def __init__(self, widths: tuple[int, ...], activations: tuple[nn.Cell, ...]) -> None:
        super().__init__()
        layers = []
        for number, activation in enumerate(activations):
            conv = Convolution(widths[number], widths[number + 1], 5)
            # `momentum` is the weight of the old statistic here (P-01), the variance is unbiased (P-03).
            norm = nn.BatchNorm2d(widths[number + 1], eps=1e-5, momentum=0.9)
            self.insert_child_to_cell(f"conv{number}", conv)
            self.insert_child_to_cell(f"bn{number}", norm)
            layers += [conv, norm, activation]
        self.layers = tuple(layers)

    def construct(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class Encoder(Convolutions):
    """Embedded text (N, L, embedding) and lengths -> memory (N, L, embedding), zero beyond the lengths."""

    def __init__(self, width: int) -> None:
        super().__init__((width,) * 4, (nn.ReLU(),) * 3)
        self.lstm = Bidirectional(width, width // 2)

    def construct(self, x: Tensor, lengths: Tensor) -> Tensor:
        x = ops.expand_dims(ops.transpose(x, (0, 2, 1)), 2)
        for layer in self.layers:
            x = layer(x)
        steps = ops.transpose(ops.squeeze(x, 2), (2, 0, 1))
        return ops.transpose(ops.concat(self.lstm(steps, lengths), 2), (1, 0, 2))


class Prenet(nn.Cell):
    """Frames (T * N, mels) -> (T * N, width)."""

    def __init__(self, mels: int, width: int) -> None:
        super().__init__()
        self.dense0, self.dense1 = nn.Dense(mels, width, has_bias=False), nn.Dense(width, width, has_bias=False)

    def construct(self, x: Tensor) -> Tensor:
        return ops.relu(self.dense1(ops.relu(self.dense0(x))))


class Lstm(nn.Cell):
    """Weights of an LSTM with one bias, and what its gates make of its state."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.w_ih = Parameter(initializer("zeros", (4 * hidden, width)))
        self.w_hh = Parameter(initializer("zeros", (4 * hidden, hidden)))
        self.b = Parameter(initializer("zeros", (4 * hidden,)))

    def construct(self, gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        i, f, g, o = ops.chunk(gates, 4, 1)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        return ops.sigmoid(o) * ops.tanh(c), c


class Attention(nn.Cell):
    """Location-sensitive attention; what stays the same from frame to frame is made by `prepare`."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        units, filters, window = sizes["attention"], sizes["filters"], sizes["window"]
        self.query = nn.Dense(sizes["lstm"], units, has_bias=False)
        self.memory = nn.Dense(sizes["embedding"], units, has_bias=False)
        self.location_conv, self.location_dense = Weight(filters, 1, window), Weight(units, filters)
        self.v = Weight(1, units)
        self.convolve = ops.Conv2D(units, (1, window), pad_mode="pad", pad=(0, 0, window // 2, window // 2))

    def prepare(self, memory: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return keys (N, units, 1, L), the location kernel (units, 1, 1, window), and the mask (N, L) as a summand."""
        keys = ops.expand_dims(ops.transpose(self.memory(memory), (0, 2, 1)), 2)
        # Nothing stands between the location convolution and its dense layer: their product is one narrow convolution.
        kernel = ops.matmul(self.location_dense.weight, ops.squeeze(self.location_conv.weight, 1))
        outside = ops.arange(memory.shape[1]).reshape(1, -1) >= lengths.reshape(-1, 1)
        return keys, kernel.reshape(kernel.shape[0], 1, 1, -1), ops.cast(outside, memory.dtype) * -1e9

    def construct(
        self, state: Tensor, seen: Tensor, memory: Tensor, keys: Tensor, kernel: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """One frame: state (N, H) and cumulative weights (N, L) -> context (N, embedding), the new weights."""
        location = self.convolve(seen.reshape(seen.shape[0], 1, 1, -1), kernel)
        query = self.query(state).reshape(keys.shape[0], keys.shape[1], 1, 1)
        energy = ops.mul(ops.tanh(query + keys + location), self.v.weight.reshape(1, -1, 1, 1)).sum(axis=(1, 2))
        share = ops.softmax(energy + mask, -1)
        return ops.squeeze(ops.bmm(ops.expand_dims(share, 1), memory), 1), share


class Decoder(nn.Cell):
    """The two LSTMs of the loop."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.lstm1, self.lstm2 = Lstm(width, hidden), Lstm(hidden, hidden)


class Network(nn.Cell):
    """Text (N, L), its lengths, mel (N, M, T) -> mel, mel_post (N, M, T), gate (N, T)."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        width, hidden, mels = sizes["embedding"], sizes["lstm"], sizes["mels"]
        self.embedding = Weight(sizes["symbols"], width)
        self.encoder = Encoder(width)
        self.prenet, self.taken = Prenet(mels, sizes["prenet"]), sizes["prenet"]
        self.decoder, self.attention = Decoder(sizes["prenet"] + width, hidden), Attention(sizes)
        self.times = ops.MatMul(transpose_b=True)
        self.frame, self.gate = nn.Dense(hidden + width, mels), nn.Dense(hidden + width, 1)
        self.postnet = Convolutions((mels, *(sizes["postnet"],) * 4, mels), (*(nn.Tanh(),) * 4, nn.Identity()))

    def construct(self, text: Tensor, text_length: Tensor, mel: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        memory = self.encoder(ops.gather(self.embedding.weight, text, 0), text_length)
        read = self.decode(mel, memory, text_length)
        frames = ops.transpose(self.frame(read), (1, 2, 0))
        refined = ops.squeeze(self.postnet(ops.expand_dims(frames, 2)), 2)
        return frames, frames + refined, ops.transpose(ops.squeeze(self.gate(read), 2), (1, 0))

    def projected(self, mel: Tensor) -> Tensor:
        """Return what LSTM 1 takes from the frame before, its bias included: (T, N, 4H)."""
        moved = ops.transpose(mel, (2, 0, 1))
        before = ops.concat((ops.zeros_like(moved[:1]), moved[:-1]), 0)
        lstm1 = self.decoder.lstm1
        of_frame = ops.matmul(self.prenet(before.reshape(-1, before.shape[2])), lstm1.w_ih[:, : self.taken].T) + lstm1.b
        return of_frame.reshape(before.shape[0], before.shape[1], -1)

    def decode(self, mel: Tensor, memory: Tensor, lengths: Tensor) -> Tensor:
        """Run the loop over frames: (T, N, H + embedding), the second LSTM's states beside the contexts."""
        lstm1, lstm2 = self.decoder.lstm1, self.decoder.lstm2
        keys, kernel, mask = self.attention.prepare(memory, lengths)
        weight1 = ops.concat((lstm1.w_ih[:, self.taken :], lstm1.w_hh), 1)
        weight2 = ops.concat((lstm2.w_ih, lstm2.w_hh), 1)
        batch, hidden = mel.shape[0], lstm1.w_hh.shape[1]
        h1 = c1 = h2 = c2 = ops.zeros((batch, hidden), mel.dtype)
        context, seen = ops.zeros((batch, memory.shape[2]), mel.dtype), ops.zeros_like(mask)
        projected = self.projected(mel)
        kept, t = ops.zeros((projected.shape[0], batch, hidden + memory.shape[2]), mel.dtype), ops.zeros((), mindspore.int32)
        # A condition on a tensor stays a loop in the graph. One over frames would be unrolled: a twentieth faster at 60 of them,
        # and at the published 566 beyond MindSpore's depth of calls, and beyond 15 GB without that limit.
        while t < projected.shape[0]:
            at = ops.gather(projected, t, 0)
            h1, c1 = lstm1(at + self.times(ops.concat((context, h1), 1), weight1), c1)
            h2, c2 = lstm2(self.times(ops.concat((h1, h2), 1), weight2) + lstm2.b, c2)
            context, share = self.attention(h2, seen, memory, keys, kernel, mask)
            seen = seen + share
            kept = ops.tensor_scatter_update(kept, t.reshape(1, 1), ops.expand_dims(ops.concat((h2, context), 1), 0))
            t = t + 1
        return kept


INPUTS, TARGETS, OUTPUTS = ("text", "text_length", "mel"), ("mel", "mel_length"), ("mel", "mel_post", "gate")


def build(sizes: dict[str, Any]) -> nn.Cell:
    """Return the network with whatever weights MindSpore gives it."""
    return Network(sizes)


def variables(network: nn.Cell) -> dict[str, Parameter]:
    """Map canonical names to parameters."""
    return named_by_cell_and_direction(network)


class Loss(nn.Cell):
    """Squared errors of both spectrograms and the gate's cross-entropy, plain means: padding counts."""

    def construct(self, mel: Tensor, mel_post: Tensor, gate: Tensor, target: Tensor, length: Tensor) -> Tensor:
        ended = ops.cast(ops.arange(gate.shape[1]).reshape(1, -1) >= length.reshape(-1, 1) - 1, gate.dtype)
        squared = ops.square(mel - target).mean() + ops.square(mel_post - target).mean()
        # max(x, 0) - x y + log(1 + exp(-|x|)): nothing overflows.
        entropy = ops.relu(gate) - gate * ended + ops.log1p(ops.exp(-ops.abs(gate)))
        return squared + entropy.mean()


def loss() -> nn.Cell:
    """Return the loss as a cell over outputs and targets."""
    return Loss()
