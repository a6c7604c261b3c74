"""Tacotron 2 in MXNet: the decoder's loop computes only what depends on the previous frame."""

from __future__ import annotations

from typing import Any

from mxnet import gluon
from mxnet.gluon import HybridBlock, nn

from steelyard_worker.frameworks.mxnet.precision import Precise
from steelyard_worker.frameworks.mxnet.recurrent import Bidirectional, named_by_prefix, unrolled
from steelyard_worker.probes import probe


class Convolution(HybridBlock):
    """Bias-free convolution of width 5: (N, C, T) -> (N, out, T), as a matrix product over windows.

    oneDNN returns gradients of narrow convolutions in a layout that MXNet 1.9.1 cannot make a view of: it crashes ("Check failed:
    !is_view"), even if they are written as convolutions of flat images.
    """

    def __init__(self, channels: int, out: int, prefix: str) -> None:
        super().__init__(prefix=prefix)
        self.out = out
        self.weight = self.params.get("weight", shape=(out, channels, 5))

    def hybrid_forward(self, F: Any, x: Any, weight: Any) -> Any:
        flat = F.expand_dims(x, axis=2)
        windows = F.transpose(F.im2col(flat, kernel=(1, 5), pad=(0, 2), stride=(1, 1), dilate=(1, 1)), axes=(0, 2, 1))
        kernel = F.reshape(weight, shape=(0, -3))
        found = F.FullyConnected(windows, kernel, no_bias=True, num_hidden=self.out, flatten=False)
        return F.transpose(found, axes=(0, 2, 1))


def convolutions(part: str, widths: tuple[int, ...], activations: tuple[str, ...]) -> nn.HybridSequential:
    """Return convolutions of width 5, each with batch norm and activation: (N, C, T) -> (N, out, T)."""
    found = nn.HybridSequential(prefix="")
    for number, activation in enumerate(activations):
        channels, out = widths[number], widths[number + 1]
        # Gluon's momentum is the weight of the old statistic (P-01).
        found.add(
            Convolution(channels, out, f"{part}.conv{number}."),
            nn.BatchNorm(axis=1, momentum=0.9, epsilon=1e-5, in_channels=out, prefix=f"{part}.bn{number}."),
        )
        if activation:
            found.add(nn.Activation(activation))
    return found


class Decoder(Precise):
    """Prenet's frames (T, N, P), memory (N, L, E), lengths (N,) -> the second LSTM's states and the contexts, (T, N, H + E)."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__(prefix="")
        self.taken, self.hidden, self.units = sizes["prenet"], sizes["lstm"], sizes["attention"]
        self.frames, self.characters, self.window = sizes["frames"], sizes["characters"], sizes["window"]
        hidden, units, width, filters = self.hidden, self.units, sizes["embedding"], sizes["filters"]
        shapes = {
            "decoder.lstm1.w_ih": (4 * hidden, self.taken + width),
            "decoder.lstm1.w_hh": (4 * hidden, hidden),
            "decoder.lstm1.b": (4 * hidden,),
            "decoder.lstm2.w_ih": (4 * hidden, hidden),
            "decoder.lstm2.w_hh": (4 * hidden, hidden),
            "decoder.lstm2.b": (4 * hidden,),
            "attention.query.weight": (units, hidden),
            "attention.memory.weight": (units, width),
            "attention.location_conv.weight": (filters, 1, self.window),
            "attention.location_dense.weight": (units, filters),
            "attention.v.weight": (1, units),
        }
        for name, shape in shapes.items():
            setattr(self, name.split(".", 1)[1].replace(".", "_"), self.params.get(name, shape=shape))

    def hybrid_forward(self, F: Any, x: Any, memory: Any, lengths: Any, **weights: Any) -> Any:
        w_ih, w_hh = weights["lstm1_w_ih"], weights["lstm1_w_hh"]
        of_frame, of_context = (
            F.slice_axis(w_ih, axis=1, begin=begin, end=end) for begin, end in ((0, self.taken), (self.taken, None))
        )
        projected = F.FullyConnected(x, of_frame, weights["lstm1_b"], num_hidden=4 * self.hidden, flatten=False)
        weight1 = F.concat(of_context, w_hh, dim=1)
        weight2 = F.concat(weights["lstm2_w_ih"], weights["lstm2_w_hh"], dim=1)
        attended = self.prepared(F, memory, lengths, weights)
        first = F.reshape(F.slice_axis(projected, axis=0, begin=0, end=1), shape=(-3, 0))
        zero = F.zeros_like(F.slice_axis(first, axis=1, begin=0, end=self.hidden))
        context = F.zeros_like(F.reshape(F.slice_axis(memory, axis=1, begin=0, end=1), shape=(-3, 0)))
        state = [zero, zero, zero, zero, context, F.zeros_like(attended[-1])]

        def step(at: Any, state: list[Any]) -> tuple[Any, list[Any]]:
            h1, c1, h2, c2, context, seen = state
            of_state = F.FullyConnected(F.concat(context, h1, dim=1), weight1, no_bias=True, num_hidden=4 * self.hidden)
            h1, c1 = self.lstm(F, at + of_state, c1)
            both = F.concat(h1, h2, dim=1)
            h2, c2 = self.lstm(F, F.FullyConnected(both, weight2, weights["lstm2_b"], num_hidden=4 * self.hidden), c2)
            query = F.FullyConnected(h2, weights["query_weight"], no_bias=True, num_hidden=self.units)
            context, share = self.attend(F, query, seen, *attended)
            return F.concat(h2, context, dim=1), [h1, c1, h2, c2, context, seen + share]

        outputs = []
        for at in F.SliceChannel(projected, num_outputs=self.frames, axis=0, squeeze_axis=True):
            read, state = step(at, state)
            outputs.append(read)
        return F.stack(*outputs, axis=0)

    def prepared(self, F: Any, memory: Any, lengths: Any, weights: dict[str, Any]) -> tuple[Any, ...]:
        """Return memory, keys (N, L, units), the location kernel (units, window), v, and the mask (N, L) as a summand."""
        keys = F.FullyConnected(memory, weights["memory_weight"], no_bias=True, num_hidden=self.units, flatten=False)
        # The location convolution and its dense layer are both linear, so their product is one narrow convolution.
        narrow = F.reshape(weights["location_conv_weight"], shape=(0, -3))
        kernel = F.dot(weights["location_dense_weight"], narrow)
        places = F.reshape(F.arange(0, self.characters, dtype=self.dtype), shape=(1, -1))
        mask = -1e9 * F.broadcast_greater_equal(places, F.reshape(lengths, shape=(-1, 1)))
        return memory, keys, kernel, weights["v_weight"], mask

    def attend(
        self, F: Any, query: Any, seen: Any, memory: Any, keys: Any, kernel: Any, v: Any, mask: Any
    ) -> tuple[Any, Any]:
        """One frame: query (N, units), cumulative weights (N, L) -> context (N, E), the new weights.

        The convolution of the weights is a matrix product over their windows.
        """
        image = F.reshape(seen, shape=(0, 1, 1, -1))
        windows = F.im2col(image, kernel=(1, self.window), pad=(0, self.window // 2), stride=(1, 1), dilate=(1, 1))
        location = F.FullyConnected(
            F.transpose(windows, axes=(0, 2, 1)), kernel, no_bias=True, num_hidden=self.units, flatten=False
        )
        features = F.Activation(F.broadcast_add(keys + location, F.expand_dims(query, axis=1)), act_type="tanh")
        energy = F.FullyConnected(features, v, no_bias=True, num_hidden=1, flatten=False)
        share = F.softmax(F.reshape(energy, shape=(0, -3)) + mask)
        return F.reshape(F.batch_dot(F.expand_dims(share, axis=1), memory), shape=(-3, 0)), share

    def lstm(self, F: Any, gates: Any, c: Any) -> tuple[Any, Any]:
        """Gates (N, 4H) and cell state -> hidden and cell state."""
        i, f, g, o = F.SliceChannel(gates, num_outputs=4, axis=1)
        c = F.sigmoid(f) * c + F.sigmoid(i) * F.tanh(g)
        return F.sigmoid(o) * F.tanh(c), c


class Network(Precise):
    """Text (N, L), its lengths, mel (N, M, T) -> mel, mel_post (N, M, T), gate (N, T)."""

    unrolls = True  # the decoder's loop

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__(prefix="")
        width, prenet, mels = sizes["embedding"], sizes["prenet"], sizes["mels"]
        self.embedding = nn.Embedding(sizes["symbols"], width, prefix="embedding.")
        self.encoder = convolutions("encoder", (width,) * 4, ("relu",) * 3)
        self.lstm = Bidirectional("encoder.lstm", width, width // 2, sizes["characters"])
        self.prenet = nn.HybridSequential(prefix="")
        for number, features in enumerate((mels, prenet)):
            name = f"prenet.dense{number}."
            self.prenet.add(nn.Dense(prenet, "relu", use_bias=False, flatten=False, in_units=features, prefix=name))
        self.decoder = Decoder(sizes)
        read = sizes["lstm"] + width
        self.frame = nn.Dense(mels, flatten=False, in_units=read, prefix="frame.")
        self.gate = nn.Dense(1, flatten=False, in_units=read, prefix="gate.")
        self.postnet = convolutions("postnet", (mels, *(sizes["postnet"],) * 4, mels), (*("tanh",) * 4, ""))

    def fit(self, text: tuple[int, ...], lengths: tuple[int, ...], mel: tuple[int, ...], *_: tuple[int, ...]) -> None:
        """Unroll loops over the characters and frames of batches of these shapes."""
        del lengths
        self.decoder.characters, self.decoder.frames = text[1], mel[2]
        for lstm in unrolled(self):
            lstm.length = text[1]

    def hybrid_forward(self, F: Any, text: Any, text_length: Any, mel: Any) -> tuple[Any, Any, Any]:
        lengths = F.cast(text_length, self.dtype)
        x = self.encoder(F.transpose(self.embedding(text), axes=(0, 2, 1)))
        memory = F.transpose(F.concat(*self.lstm(F.transpose(x, axes=(2, 0, 1)), lengths), dim=2), axes=(1, 0, 2))
        frames = F.transpose(mel, axes=(2, 0, 1))
        none = F.zeros_like(F.slice_axis(frames, axis=0, begin=0, end=1))
        before = F.concat(none, F.slice_axis(frames, axis=0, begin=0, end=-1), dim=0)
        read = probe("decoded", self.decoder(probe("prenet", self.prenet(before)), probe("encoded", memory), lengths))
        found = F.transpose(self.frame(read), axes=(1, 2, 0))
        gate = F.transpose(F.reshape(self.gate(read), shape=(0, -3)), axes=(1, 0))
        return found, found + self.postnet(found), gate


class Loss(Precise):
    """Squared errors of both spectrograms and the gate's cross-entropy, plain means that include padding."""

    def hybrid_forward(self, F: Any, mel: Any, mel_post: Any, gate: Any, target: Any, length: Any) -> Any:
        places = F.expand_dims(F.contrib.arange_like(gate, axis=1), axis=0)
        ended = F.broadcast_greater_equal(places, F.reshape(F.cast(length, self.dtype) - 1, shape=(-1, 1)))
        squared = F.mean(F.square(mel - target)) + F.mean(F.square(mel_post - target))
        return squared + F.mean(F.Activation(gate, act_type="softrelu") - gate * ended)


INPUTS, TARGETS, OUTPUTS = ("text", "text_length", "mel"), ("mel", "mel_length"), ("mel", "mel_post", "gate")


def build(sizes: dict[str, Any]) -> HybridBlock:
    """Return the network; its weights are loaded later."""
    return Network(sizes)


def variables(network: HybridBlock) -> dict[str, gluon.Parameter]:
    """Map canonical names to parameters and statistics."""
    return named_by_prefix(network)


def loss() -> HybridBlock:
    """Return the loss as a block over outputs and targets."""
    return Loss(prefix="")
