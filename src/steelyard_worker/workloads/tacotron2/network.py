"""Tacotron 2's spectrogram network (Shen et al. 2018, arXiv 1712.05884) in canonical form, teacher-forced.

The decoder has the structure of the TensorFlow version, as unified by Dai et al. (SCIS 2022): two stacked LSTMs, then the
attention, whose context enters the first LSTM one frame later. Everything else is as in NVIDIA's model, without biases before
batch norm. There is no dropout, not even in the prenet, because no two frameworks' random generators agree.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard_worker.network import Adversarial, Input, Isolation, Network, Parameter, batch_norm
from steelyard_worker.sizes import at_least, require

if TYPE_CHECKING:
    from steelyard_worker.batches import Batch

    Ints = np.ndarray[Any, np.dtype[np.int32]]

ENCODER_CONVOLUTIONS = 3
POSTNET_CONVOLUTIONS = 5
KERNEL = 5  # of the encoder's and the postnet's convolutions
PRENET_LAYERS = 2
# Gains of Glorot's bound by the activation after a layer (torch.nn.init.calculate_gain).
RELU, TANH, LINEAR = math.sqrt(2), 5 / 3, 1.0
# Of the weights of the adversarial step. With the initial ones, the attention looks at all characters about equally, so mistakes
# in what it asks for would hardly change anything.
FACTORS = {"*.gamma": 4.0, "*.w_ih": 4.0, "attention.query.weight": 8.0, "attention.v.weight": 8.0}

# The attention then depends on its own previous weights only. Otherwise its location features have little effect beside its
# query and its memory, and their rounding less than that of the LSTMs before it.
ISOLATION = Isolation(
    ("attention.location_*", "attention.v.weight"),
    factors={
        "attention.query.weight": 0.0,
        "attention.memory.weight": 0.0,
        "attention.location_*.weight": 4.0,
        "attention.v.weight": 8.0,
    },
)


def describe(sizes: dict[str, Any]) -> Network:
    """Sizes: symbols, characters, frames, mels, embedding, prenet, lstm, attention, filters, window, postnet, batch.

    The encoder's LSTM has embedding/2 units per direction; `filters` and `window` (odd) belong to the location convolution.
    """
    at_least(sizes, "symbols", 2)
    require(sizes["embedding"] % 2 == 0, f"embedding is {sizes['embedding']} and must be even")
    require(sizes["window"] % 2 == 1, f"window is {sizes['window']} and must be odd")
    layers = _Layers(sizes)
    layers.encoder()
    layers.decoder()
    layers.attention()
    layers.projections()
    layers.postnet()
    characters, frames, mels = sizes["characters"], sizes["frames"], sizes["mels"]
    inputs = (
        Input("text", (characters,), "int32", high=sizes["symbols"], lengths={0: "text_length"}),
        Input("text_length", (), "int32", high=characters + 1),
        Input("mel", (mels, frames), "float32", lengths={1: "mel_length"}),
        Input("mel_length", (), "int32", high=frames + 1),
    )

    def draw(generator: np.random.Generator, batch: int) -> Batch:
        lengths = (_lengths(generator, batch, longest) for longest in (characters, frames))
        return _draw(generator, *lengths, sizes)

    def draw_set(generator: np.random.Generator, count: int) -> Batch:
        return _draw(generator, *_varied(generator, count, characters, frames), sizes)

    def draw_adversarial(generator: np.random.Generator, batch: int) -> Batch:
        return _draw_adversarial(generator, batch, sizes)

    return Network(
        tuple(layers.parameters),
        inputs,
        layers.macs,
        layers.activations,
        draw=draw,
        draw_set=draw_set,
        predictions=predictions,
        loop_reads=layers.loop_reads,
        adversarial=Adversarial(draw_adversarial, factors=FACTORS, isolation=ISOLATION),
        probes=(
            *(f"encoder.bn{number}" for number in range(ENCODER_CONVOLUTIONS)),
            "encoded",
            "prenet",
            "decoded",
            *(f"postnet.bn{number}" for number in range(POSTNET_CONVOLUTIONS)),
        ),
    )


def predictions(outputs: Batch, batch: Batch) -> Batch:
    """Return per utterance the sum of the two mean squared errors, and the gate's cross-entropy: float64 (N,)."""
    target = batch["mel"].astype(np.float64)
    errors = sum(np.mean(np.square(outputs[name] - target), axis=(1, 2)) for name in ("mel", "mel_post"))
    gate = outputs["gate"].astype(np.float64)
    frames = np.arange(gate.shape[1])
    ended = frames[None, :] >= batch["mel_length"][:, None] - 1
    entropy = np.logaddexp(0.0, gate) - np.where(ended, gate, 0.0)
    return {"mel": np.asarray(errors), "gate": np.mean(entropy, axis=1)}


def _draw(generator: np.random.Generator, text_length: Ints, mel_length: Ints, sizes: dict[str, Any]) -> Batch:
    """Make a batch of utterances with these lengths; padding is 0."""
    batch, characters, frames = len(text_length), sizes["characters"], sizes["frames"]
    text = generator.integers(1, sizes["symbols"], (batch, characters), dtype=np.int32)
    mel = generator.standard_normal((batch, sizes["mels"], frames), dtype=np.float32)
    text[np.arange(characters) >= text_length[:, None]] = 0
    mel *= (np.arange(frames) < mel_length[:, None])[:, None, :]
    return {"text": text, "text_length": text_length, "mel": mel, "mel_length": mel_length}


def _draw_adversarial(generator: np.random.Generator, batch: int, sizes: dict[str, Any]) -> Batch:
    """Make a batch of loud utterances: the shortest and the longest of either axis, each of one symbol, often the last one."""
    lengths = (_lengths(generator, batch, sizes[name]) for name in ("characters", "frames"))
    found = _draw(generator, *lengths, sizes)
    short_text, short_mel = np.isin(np.arange(batch) % 4, (0, 1)), np.isin(np.arange(batch) % 4, (0, 2))
    found["text_length"][:] = np.where(short_text, 1, sizes["characters"])
    found["mel_length"][:] = np.where(short_mel, 1, sizes["frames"])
    text = np.where(np.arange(batch)[:, None] % 4 == 2, 1, sizes["symbols"] - 1)
    found["text"][:] = np.where(np.arange(sizes["characters"]) < found["text_length"][:, None], text, 0)
    inside = np.arange(sizes["frames"]) < found["mel_length"][:, None, None]
    found["mel"][:] = 8 * generator.standard_normal(found["mel"].shape, dtype=np.float32) * inside
    return found


def _lengths(generator: np.random.Generator, batch: int, longest: int) -> Ints:
    """Return lengths of a batch: every second utterance is as long as the axis, the others at least half."""
    lengths = generator.integers(max(1, longest // 2), longest + 1, batch, dtype=np.int32)
    lengths[::2] = longest
    return lengths


def _varied(generator: np.random.Generator, count: int, characters: int, frames: int) -> tuple[Ints, Ints]:
    """Return lengths of a data set: all texts from a quarter of the axis to all of it are equally likely.

    Speech has as many frames per character, give or take a tenth.
    """
    text = generator.integers(max(1, characters // 4), characters + 1, count, dtype=np.int32)
    mel = text * generator.uniform(0.9, 1.1, count) * frames / characters
    return text, np.clip(np.round(mel), 1, frames).astype(np.int32)


class _Layers:
    """Collects tensors, multiply-accumulates, and activations stored for the backward pass, of one utterance of full length."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        self.parameters: list[Parameter] = []
        self.macs = self.activations = self.loop_reads = 0
        self._sizes = sizes
        self._characters, self._frames = sizes["characters"], sizes["frames"]

    def encoder(self) -> None:
        symbols, width = self._sizes["symbols"], self._sizes["embedding"]
        bound = math.sqrt(3) * math.sqrt(2 / (symbols + width))
        self.parameters.append(Parameter("embedding.weight", (symbols, width), "embedding", f"uniform:{bound!r}"))
        for number in range(ENCODER_CONVOLUTIONS):
            self._convolution(f"encoder.conv{number}", width, width, RELU, self._characters)
            self.parameters += batch_norm(f"encoder.bn{number}", width)
        for direction in ("forward", "backward"):
            self._lstm(f"encoder.lstm.{direction}", width, width // 2, self._characters)

    def decoder(self) -> None:
        prenet, hidden, width = (self._sizes[name] for name in ("prenet", "lstm", "mels"))
        for number in range(PRENET_LAYERS):
            self._dense(f"prenet.dense{number}", width, prenet, LINEAR, self._frames)
            width = prenet
        self._lstm("decoder.lstm1", prenet + self._sizes["embedding"], hidden, self._frames)
        self._lstm("decoder.lstm2", hidden, hidden, self._frames)
        # Inputs come from the loop's previous step, too: what is attended to, and the first cell's output.
        self.loop_reads += self._frames * 4 * hidden * (self._sizes["embedding"] + hidden)

    def attention(self) -> None:
        units, memory = self._sizes["attention"], self._sizes["embedding"]
        filters, window = self._sizes["filters"], self._sizes["window"]
        looked_at = self._frames * self._characters
        self._dense("attention.query", self._sizes["lstm"], units, TANH, self._frames)
        self._dense("attention.memory", memory, units, TANH, self._characters)
        self._convolution("attention.location_conv", 1, filters, LINEAR, looked_at, window)
        self._dense("attention.location_dense", filters, units, TANH, looked_at)
        self._dense("attention.v", units, 1, LINEAR, looked_at)
        self.macs += looked_at * memory  # the context

    def projections(self) -> None:
        read = self._sizes["lstm"] + self._sizes["embedding"]
        for name, out in (("frame", self._sizes["mels"]), ("gate", 1)):
            self._dense(name, read, out, LINEAR, self._frames)
            self.parameters.append(Parameter(f"{name}.bias", (out,), "bias", f"lecun_uniform_in:{read}"))

    def postnet(self) -> None:
        mels, width = self._sizes["mels"], self._sizes["postnet"]
        widths = (mels, *(width,) * (POSTNET_CONVOLUTIONS - 1), mels)
        for number in range(POSTNET_CONVOLUTIONS):
            gain = TANH if number < POSTNET_CONVOLUTIONS - 1 else LINEAR
            self._convolution(f"postnet.conv{number}", widths[number], widths[number + 1], gain, self._frames)
            self.parameters += batch_norm(f"postnet.bn{number}", widths[number + 1])

    def _convolution(self, name: str, channels: int, out: int, gain: float, places: int, kernel: int = KERNEL) -> None:
        shape = (out, channels, kernel)
        self.parameters.append(Parameter(f"{name}.weight", shape, "conv1d", f"glorot_uniform:{gain!r}"))
        self.macs += out * channels * kernel * places
        self.activations += 3 * out * places  # of the convolution, its batch norm and its activation

    def _dense(self, name: str, features: int, out: int, gain: float, places: int) -> None:
        self.parameters.append(Parameter(f"{name}.weight", (out, features), "dense", f"glorot_uniform:{gain!r}"))
        self.macs += out * features * places
        self.activations += 2 * out * places

    def _lstm(self, name: str, width: int, hidden: int, steps: int) -> None:
        bound = f"uniform:{1 / math.sqrt(hidden)!r}"
        self.parameters += [
            Parameter(f"{name}.w_ih", (4 * hidden, width), "lstm_w_ih", bound),
            Parameter(f"{name}.w_hh", (4 * hidden, hidden), "lstm_w_hh", bound),
            Parameter(f"{name}.b", (4 * hidden,), "lstm_b", bound),
        ]
        self.macs += steps * 4 * hidden * (width + hidden)
        self.loop_reads += steps * 4 * hidden**2
        self.activations += steps * (7 * hidden + width)  # gates, states, input
