"""Tacotron 2 in MindSpore: the decoder's loop, forward and backward, computes only what depends on the previous frame."""

from __future__ import annotations

from typing import Any

import mindspore
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import initializer

from steelyard_worker.frameworks.mindspore.recurrent import Bidirectional, named_by_cell_and_direction
from steelyard_worker.probes import probe

Tensors = tuple[Tensor, ...]
# Frames in one iteration of the loop.
AT_ONCE = 8


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
    """Embedded text (N, L, embedding) and lengths -> memory (N, L, embedding), zero after the lengths."""

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
    """Weights of an LSTM with one bias."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.w_ih = Parameter(initializer("zeros", (4 * hidden, width)))
        self.w_hh = Parameter(initializer("zeros", (4 * hidden, hidden)))
        self.b = Parameter(initializer("zeros", (4 * hidden,)))


class Attention(nn.Cell):
    """Weights of location-sensitive attention, and its tensors that are the same for all frames."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        units, filters, window = sizes["attention"], sizes["filters"], sizes["window"]
        self.query = nn.Dense(sizes["lstm"], units, has_bias=False)
        self.memory = nn.Dense(sizes["embedding"], units, has_bias=False)
        self.location_conv, self.location_dense = Weight(filters, 1, window), Weight(units, filters)
        self.v = Weight(1, units)

    def construct(self, memory: Tensor, lengths: Tensor) -> Tensors:
        """Return keys (N, L, units), the location kernel (units, window), its places (L, window) and the mask (N, L)."""
        # The location convolution and its dense layer are both linear, so their product is one narrow convolution.
        kernel = ops.matmul(self.location_dense.weight, ops.squeeze(self.location_conv.weight, 1))
        at = ops.arange(memory.shape[1])
        places = at.reshape(-1, 1) + ops.arange(kernel.shape[1]).reshape(1, -1)
        outside = at.reshape(1, -1) >= lengths.reshape(-1, 1)
        return self.memory(memory), kernel, places, ops.cast(outside, memory.dtype) * -1e9


class Decoder(nn.Cell):
    """The two LSTMs of the loop."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.lstm1, self.lstm2 = Lstm(width, hidden), Lstm(hidden, hidden)


class Frames(nn.Cell):
    """The decoder's loop with a backward pass of its own, which reads the LSTMs' matrices once per frame and never writes them.

    Under MindSpore's differentiation, every frame adds two products as large as those matrices to their gradients; here that is
    one product over all frames. A condition on a tensor stays a loop in the graph; a loop over a fixed number of frames would be
    unrolled and exceed MindSpore's call depth. An iteration computes `AT_ONCE` frames, because writing into the tensor of all
    frames copies that tensor. The narrow location convolution is a matrix product, because oneDNN's backward pass is slow.
    """

    def __init__(self, hidden: int, width: int, window: int) -> None:
        super().__init__()
        self.hidden, self.width = hidden, width
        self.times, self.summed = ops.MatMul(transpose_b=True), ops.MatMul(transpose_a=True)
        # Operators, because functions with branches fail in a backward pass ("The func graph is empty, func graph: zeros_like").
        self.zeros, self.each, half = ops.ZerosLike(), ops.Split(1, 4), window // 2
        self.pad, self.pad_windows = ops.Pad(((0, 0), (half, half))), ops.Pad(((0, 0), (half, half), (0, 0)))

    def construct(
        self,
        projected: Tensor,
        weight1: Tensor,
        weight2: Tensor,
        bias2: Tensor,
        query: Tensor,
        v: Tensor,
        memory: Tensor,
        keys: Tensor,
        kernel: Tensor,
        places: Tensor,
        mask: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Return (h2, context) as (T, N, H + E), and for the backward pass h1, c1, c2, all gates and attention weights."""
        frames, batch, read = projected.shape[0], projected.shape[1], self.hidden + self.width
        zeros, context = ops.zeros((batch, self.hidden), memory.dtype), ops.zeros((batch, self.width), memory.dtype)
        state = (zeros, context, zeros, zeros, zeros, self.zeros(mask))
        matrices = (weight1, weight2, bias2, query, v, memory, keys.reshape(-1, keys.shape[2]), kernel, places, mask)
        rest, found = frames % AT_ONCE, ()
        if rest:
            state, first = self.some(state, projected[:rest], rest, matrices)
            found += (first,)
        if frames >= AT_ONCE:
            grouped = projected[rest:].reshape(-1, AT_ONCE, batch, 4 * self.hidden)
            stored = ops.zeros(
                (grouped.shape[0], AT_ONCE, batch, read + 11 * self.hidden + mask.shape[1]), memory.dtype
            )
            t = ops.zeros((), mindspore.int32)
            while t < grouped.shape[0]:
                state, some = self.some(state, ops.gather(grouped, t, 0), AT_ONCE, matrices)
                stored = ops.tensor_scatter_update(stored, t.reshape(1, 1), ops.expand_dims(some, 0))
                t = t + 1
            found += (stored.reshape(frames - rest, batch, -1),)
        every = ops.concat(found, 0)
        return every[:, :, :read], every[:, :, read:]

    def some(self, state: Tensors, projected: Tensor, count: int, matrices: Tensors) -> tuple[Tensors, Tensor]:
        """Run `count` frames; return the state after them, and what the backward pass needs of each (count, N, ...)."""
        weight1, weight2, bias2, query, v, memory, keys, kernel, places, mask = matrices
        h2, context, h1, c1, c2, seen = state
        found = ()
        for t in range(count):
            gates1 = projected[t] + self.times(ops.concat((context, h1), 1), weight1)
            h1, c1, gates1 = self.cell(gates1, c1)
            h2, c2, gates2 = self.cell(self.times(ops.concat((h1, h2), 1), weight2) + bias2, c2)
            features = self.features(self.times(h2, query), keys, kernel, self.windows(seen, places))
            share = ops.softmax(self.times(features, v).reshape(mask.shape) + mask, -1)
            context = ops.bmm(ops.expand_dims(share, 1), memory).reshape(context.shape)
            seen = seen + share
            found += (ops.concat((h2, context, h1, c1, c2, gates1, gates2, share), 1),)
        return (h2, context, h1, c1, c2, seen), ops.stack(found, 0)

    def cell(self, gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return an LSTM's h and c from its gates (N, 4H), in the order i, f, g, o, and the activated gates."""
        i, f, g, o = self.each(gates)
        i, f, g, o = ops.sigmoid(i), ops.sigmoid(f), ops.tanh(g), ops.sigmoid(o)
        c = f * c + i * g
        return o * ops.tanh(c), c, ops.concat((i, f, g, o), 1)

    def features(self, projected_query: Tensor, keys: Tensor, kernel: Tensor, windows: Tensor) -> Tensor:
        """Return tanh(query (N, units) + keys (N * L, units) + kernel over windows (N * L, window)): (N * L, units)."""
        projected_query = ops.expand_dims(projected_query, 1)
        located = (keys + self.times(windows, kernel)).reshape(projected_query.shape[0], -1, projected_query.shape[2])
        return ops.tanh(projected_query + located).reshape(keys.shape)

    def windows(self, seen: Tensor, places: Tensor) -> Tensor:
        """Return the window of the location kernel at every position: (N, L) -> (N * L, window)."""
        return ops.gather(self.pad(seen), places, 1).reshape(-1, places.shape[1])

    def windows_back(self, of_windows: Tensor, places: Tensor) -> Tensor:
        """Return, for every position, the sum of the gradients of the windows that contain it: (N * L, window) -> (N, L)."""
        length, window = places.shape
        padded = self.pad_windows(of_windows.reshape(-1, length, window))
        inside = places - places[:, :1]
        at = (places[:, :1] + window - 1 - inside) * window + inside
        return ops.gather(padded.reshape(padded.shape[0], -1), at, 1).sum(axis=2)

    def bprop(
        self,
        projected: Tensor,
        weight1: Tensor,
        weight2: Tensor,
        bias2: Tensor,
        query: Tensor,
        v: Tensor,
        memory: Tensor,
        keys: Tensor,
        kernel: Tensor,
        places: Tensor,
        mask: Tensor,
        out: tuple[Tensor, Tensor],
        dout: tuple[Tensor, Tensor],
    ) -> Tensors:
        """Return the gradients of all inputs."""
        (read, saved), of_read, hidden, width = out, dout[0], self.hidden, self.width
        frames, batch, units, rest = read.shape[0], read.shape[1], query.shape[0], read.shape[0] % AT_ONCE
        h2, context = read[:, :, :hidden], read[:, :, hidden:]
        h1, c1, c2 = saved[:, :, :hidden], saved[:, :, hidden : 2 * hidden], saved[:, :, 2 * hidden : 3 * hidden]
        gates1, gates2 = saved[:, :, 3 * hidden : 7 * hidden], saved[:, :, 7 * hidden : 11 * hidden]
        share = saved[:, :, 11 * hidden :]
        projected_query = self.times(h2.reshape(-1, hidden), query).reshape(frames, batch, units)
        seen = ops.cumsum(self.before(share), 0)
        inputs = (gates1, gates2, c1, self.before(c1), c2, self.before(c2), projected_query, share, seen, of_read)
        zeros, flat = self.zeros(c1[0]), keys.reshape(-1, units)
        state = (zeros, zeros, zeros, zeros, self.zeros(context[0]), self.zeros(mask), self.zeros(flat), self.zeros(v))
        state, found = (*state, self.zeros(kernel)), ()
        matrices = (weight1, weight2, query, v, memory, flat, kernel, places)
        if frames >= AT_ONCE:
            grouped = ()
            for each in inputs:
                grouped += (each[rest:].reshape(-1, AT_ONCE, batch, each.shape[2]),)
            stored = ops.zeros((frames // AT_ONCE, AT_ONCE, batch, 8 * hidden + units + width), memory.dtype)
            t = ops.zeros((), mindspore.int32) + frames // AT_ONCE
            while t > 0:
                t, at = t - 1, ()
                for each in grouped:
                    at += (ops.gather(each, t, 0),)
                state, some = self.some_back(state, at, AT_ONCE, matrices)
                stored = ops.tensor_scatter_update(stored, t.reshape(1, 1), ops.expand_dims(some, 0))
            found += (stored.reshape(frames - rest, batch, -1),)
        if rest:
            at = ()
            for each in inputs:
                at += (each[:rest],)
            state, first = self.some_back(state, at, rest, matrices)
            found = (first, *found)
        every = ops.concat(found, 0)
        of_gates1, of_gates2 = every[:, :, : 4 * hidden], every[:, :, 4 * hidden : 8 * hidden].reshape(-1, 4 * hidden)
        of_projected_query, of_context = every[:, :, 8 * hidden : -width].reshape(-1, units), every[:, :, -width:]
        taken1 = ops.concat((self.before(context), self.before(h1)), 2).reshape(frames * batch, -1)
        taken2 = ops.concat((h1, self.before(h2)), 2).reshape(frames * batch, -1)
        of_memory = ops.bmm(ops.transpose(share, (1, 2, 0)), ops.transpose(of_context, (1, 0, 2)))
        return (
            of_gates1,
            self.summed(of_gates1.reshape(-1, 4 * hidden), taken1),
            self.summed(of_gates2, taken2),
            of_gates2.sum(0),
            self.summed(of_projected_query, h2.reshape(-1, hidden)),
            state[7],
            of_memory,
            state[6].reshape(keys.shape),
            state[8],
            self.zeros(places),
            self.zeros(mask),
        )

    def before(self, values: Tensor) -> Tensor:
        """Return each frame's values of the previous frame, (T, ...); those of the first frame are zero."""
        return ops.concat((self.zeros(values[:1]), values[:-1]), 0)

    def some_back(self, state: Tensors, inputs: Tensors, count: int, matrices: Tensors) -> tuple[Tensors, Tensor]:
        """Run backward over `count` frames; return the gradients for earlier frames and those of each frame's own values."""
        weight1, weight2, query, v, memory, keys, kernel, places = matrices
        gates1, gates2, c1, c1_before, c2, c2_before, projected_query, share, seen, of_read = inputs
        of_h1, of_c1, of_h2, of_c2, of_context, of_seen, of_keys, of_v, of_kernel = state
        found = ()
        for back in range(count):
            t = count - 1 - back
            of_context = of_context + of_read[t][:, self.hidden :]
            windows = self.windows(seen[t], places)
            features = self.features(projected_query[t], keys, kernel, windows)
            of_share = ops.bmm(memory, ops.expand_dims(of_context, 2)).reshape(of_seen.shape) + of_seen
            of_energy = (share[t] * (of_share - (share[t] * of_share).sum(axis=1, keepdims=True))).reshape(-1, 1)
            of_v = of_v + self.summed(of_energy, features)
            of_features = of_energy * v * (1 - features * features)
            of_keys, of_kernel = of_keys + of_features, of_kernel + self.summed(of_features, windows)
            of_seen = of_seen + self.windows_back(ops.matmul(of_features, kernel), places)
            of_projected_query = of_features.reshape(projected_query[t].shape[0], -1, query.shape[0]).sum(axis=1)
            of_h2 = of_h2 + of_read[t][:, : self.hidden] + ops.matmul(of_projected_query, query)
            of_gates2, of_c2 = self.cell_back(gates2[t], c2[t], c2_before[t], of_h2, of_c2)
            of_taken2 = ops.matmul(of_gates2, weight2)
            of_h1, of_h2 = of_h1 + of_taken2[:, : self.hidden], of_taken2[:, self.hidden :]
            of_gates1, of_c1 = self.cell_back(gates1[t], c1[t], c1_before[t], of_h1, of_c1)
            found = (ops.concat((of_gates1, of_gates2, of_projected_query, of_context), 1), *found)
            of_taken1 = ops.matmul(of_gates1, weight1)
            of_context, of_h1 = of_taken1[:, : self.width], of_taken1[:, self.width :]
        return (of_h1, of_c1, of_h2, of_c2, of_context, of_seen, of_keys, of_v, of_kernel), ops.stack(found, 0)

    def cell_back(
        self, gates: Tensor, c: Tensor, c_before: Tensor, of_h: Tensor, of_c: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the gradients of an LSTM's gates (N, 4H) before activation, and of the previous c."""
        i, f, g, o = self.each(gates)
        bent = ops.tanh(c)
        of_c = of_c + of_h * o * (1 - bent * bent)
        of_gates = (
            of_c * g * i * (1 - i),
            of_c * c_before * f * (1 - f),
            of_c * i * (1 - g * g),
            of_h * bent * o * (1 - o),
        )
        return ops.concat(of_gates, 1), of_c * f


class Network(nn.Cell):
    """Text (N, L), its lengths, mel (N, M, T) -> mel, mel_post (N, M, T), gate (N, T)."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        width, hidden, mels = sizes["embedding"], sizes["lstm"], sizes["mels"]
        self.embedding = Weight(sizes["symbols"], width)
        self.encoder = Encoder(width)
        self.prenet, self.taken = Prenet(mels, sizes["prenet"]), sizes["prenet"]
        self.decoder, self.attention = Decoder(sizes["prenet"] + width, hidden), Attention(sizes)
        self.frames = Frames(hidden, width, sizes["window"])
        self.frame, self.gate = nn.Dense(hidden + width, mels), nn.Dense(hidden + width, 1)
        self.postnet = Convolutions((mels, *(sizes["postnet"],) * 4, mels), (*(nn.Tanh(),) * 4, nn.Identity()))

    def construct(self, text: Tensor, text_length: Tensor, mel: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        memory = probe("encoded", self.encoder(ops.gather(self.embedding.weight, text, 0), text_length))
        read = probe("decoded", self.decode(mel, memory, text_length))
        frames = ops.transpose(self.frame(read), (1, 2, 0))
        refined = ops.squeeze(self.postnet(ops.expand_dims(frames, 2)), 2)
        return frames, frames + refined, ops.transpose(ops.squeeze(self.gate(read), 2), (1, 0))

    def projected(self, mel: Tensor) -> Tensor:
        """Return the part of LSTM 1's gates that comes from the previous frame, with its bias: (T, N, 4H)."""
        moved = ops.transpose(mel, (2, 0, 1))
        before = ops.concat((ops.zeros_like(moved[:1]), moved[:-1]), 0)
        lstm1 = self.decoder.lstm1
        of_frame = ops.matmul(self.prenet(before.reshape(-1, before.shape[2])), lstm1.w_ih[:, : self.taken].T) + lstm1.b
        return of_frame.reshape(before.shape[0], before.shape[1], -1)

    def decode(self, mel: Tensor, memory: Tensor, lengths: Tensor) -> Tensor:
        """Run the loop over frames: (T, N, H + embedding), the second LSTM's states concatenated with the contexts."""
        lstm1, lstm2, attention = self.decoder.lstm1, self.decoder.lstm2, self.attention
        keys, kernel, places, mask = attention(memory, lengths)
        weight1 = ops.concat((lstm1.w_ih[:, self.taken :], lstm1.w_hh), 1)
        weight2 = ops.concat((lstm2.w_ih, lstm2.w_hh), 1)
        read, _ = self.frames(
            self.projected(mel),
            weight1,
            weight2,
            lstm2.b,
            attention.query.weight,
            attention.v.weight,
            memory,
            keys,
            kernel,
            places,
            mask,
        )
        return read


INPUTS, TARGETS, OUTPUTS = ("text", "text_length", "mel"), ("mel", "mel_length"), ("mel", "mel_post", "gate")


def build(sizes: dict[str, Any]) -> nn.Cell:
    """Return the network; its weights are loaded later."""
    return Network(sizes)


def variables(network: nn.Cell) -> dict[str, Parameter]:
    """Map canonical names to parameters."""
    return named_by_cell_and_direction(network)


class Loss(nn.Cell):
    """Squared errors of both spectrograms and the gate's cross-entropy, plain means that include padding."""

    def construct(self, mel: Tensor, mel_post: Tensor, gate: Tensor, target: Tensor, length: Tensor) -> Tensor:
        ended = ops.cast(ops.arange(gate.shape[1]).reshape(1, -1) >= length.reshape(-1, 1) - 1, gate.dtype)
        squared = ops.square(mel - target).mean() + ops.square(mel_post - target).mean()
        # max(x, 0) - x y + log(1 + exp(-|x|)), which does not overflow.
        entropy = ops.relu(gate) - gate * ended + ops.log1p(ops.exp(-ops.abs(gate)))
        return squared + entropy.mean()


def loss() -> nn.Cell:
    """Return the loss as a cell over outputs and targets."""
    return Loss()
