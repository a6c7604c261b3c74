"""GNMT v2 in canonical form: a deep LSTM encoder and decoder with normalised Bahdanau attention, one shared embedding.

Only the first encoder layer uses lengths; the others run over padding, which attention and loss ignore. There is no input
feeding, so every layer and the attention see the whole target at once. Ids: 0 padding, 1 unknown, 2 begin, 3 end of a sentence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard_worker.beam import Beam
from steelyard_worker.network import Adversarial, Input, Network, Parameter
from steelyard_worker.sizes import at_least

if TYPE_CHECKING:
    from collections.abc import Callable

    from steelyard_worker.batches import Batch

PAD, UNKNOWN, BEGIN, END = range(4)
RESERVED = 4
# U(-0.1, 0.1) is published for layers of 1,024; narrower layers get a larger bound, so that sums over a layer have the same
# size. With sums a thirtieth of that, tanh would be linear, and the attention's bias and queries would cancel in the softmax.
BOUND, AT_WIDTH = 0.1, 1024


def describe(sizes: dict[str, Any]) -> Network:
    """Sizes: vocabulary, hidden, layers (of encoder and of decoder, at least 2), source, target (longest), batch, and beam
    (the width of the beam search for translations).
    """
    for name, least in (("vocabulary", RESERVED + 1), ("layers", 2), ("source", 3), ("target", 3)):
        at_least(sizes, name, least)
    vocabulary, hidden = sizes["vocabulary"], sizes["hidden"]
    initial = _initial(hidden)
    inputs = (
        Input("source", (sizes["source"],), "int32", high=vocabulary),
        Input("source_length", (), "int32", high=sizes["source"] + 1),
        Input("target", (sizes["target"],), "int32", high=vocabulary),
    )
    encoder, decoder, attention = _encoder(sizes), _decoder(sizes), _attention(hidden)
    parameters = [
        Parameter("embedding.weight", (vocabulary, hidden), "embedding", initial),
        *encoder,
        *decoder[:3],
        *attention,
        *decoder[3:],
        Parameter("classifier.weight", (vocabulary, hidden), "dense", initial),
        Parameter("classifier.bias", (vocabulary,), "bias", initial),
    ]

    def draw(generator: np.random.Generator, batch: int) -> Batch:
        return _batch(generator, batch, sizes)

    macs, stored = _macs(sizes, encoder, decoder), _activations(sizes)
    beam = Beam(sizes["beam"], BEGIN, END, PAD)

    def write(forward: Callable[[Batch], Batch], batch: Batch) -> Batch:
        return translations(forward, batch, beam)

    def draw_adversarial(generator: np.random.Generator, batch: int) -> Batch:
        return _adversarial_batch(generator, batch, sizes)

    # Saturated gates, and an attention that looks at few words, which differ from place to place of the target.
    factors = {"*.w_ih": 4.0, "attention.g": 32.0, "attention.query.weight": 8.0}
    adversarial = Adversarial(draw_adversarial, factors=factors)
    return Network(
        tuple(parameters),
        inputs,
        macs,
        stored,
        draw=draw,
        predictions=predictions,
        write=write,
        adversarial=adversarial,
        probes=_probes(sizes["layers"]),
        likelihood=True,
        blocks=tuple(f"{part}.layer{n}" for part in ("encoder", "decoder") for n in range(sizes["layers"])),
        loop_reads=((sizes["layers"] + 1) * sizes["source"] + sizes["layers"] * (sizes["target"] - 1)) * 4 * hidden**2,
    )


def _probes(layers: int) -> tuple[str, ...]:
    """Return the names of the outputs of all layers, after their residual sums, and of the attention."""
    return *(f"encoded{n}" for n in range(layers)), "decoded0", "context", *(f"decoded{n}" for n in range(1, layers))


def _encoder(sizes: dict[str, Any]) -> list[Parameter]:
    hidden = sizes["hidden"]
    both = [_lstm(f"encoder.layer0.{direction}", hidden, hidden) for direction in ("forward", "backward")]
    widths = [2 * hidden] + [hidden] * (sizes["layers"] - 2)
    rest = [_lstm(f"encoder.layer{number}", width, hidden) for number, width in enumerate(widths, 1)]
    return [parameter for layer in both + rest for parameter in layer]


def _decoder(sizes: dict[str, Any]) -> list[Parameter]:
    hidden = sizes["hidden"]
    widths = [hidden] + [2 * hidden] * (sizes["layers"] - 1)
    layers = [_lstm(f"decoder.layer{number}", width, hidden) for number, width in enumerate(widths)]
    return [parameter for layer in layers for parameter in layer]


def _attention(hidden: int) -> list[Parameter]:
    initial = _initial(hidden)
    return [
        Parameter("attention.query.weight", (hidden, hidden), "dense", initial),
        Parameter("attention.key.weight", (hidden, hidden), "dense", initial),
        Parameter("attention.b", (hidden,), "vector", "constant:0"),
        Parameter("attention.v", (hidden,), "vector", initial),
        Parameter("attention.g", (1,), "vector", f"constant:{hidden**-0.5!r}"),
    ]


def _initial(hidden: int) -> str:
    return f"uniform:{BOUND * (AT_WIDTH / hidden) ** 0.5!r}"


def _lstm(name: str, width: int, hidden: int) -> list[Parameter]:
    initial = _initial(hidden)
    return [
        Parameter(f"{name}.w_ih", (4 * hidden, width), "lstm_w_ih", initial),
        Parameter(f"{name}.w_hh", (4 * hidden, hidden), "lstm_w_hh", initial),
        Parameter(f"{name}.b", (4 * hidden,), "lstm_b", initial),
    ]


def _macs(sizes: dict[str, Any], encoder: list[Parameter], decoder: list[Parameter]) -> int:
    source, steps, hidden = sizes["source"], sizes["target"] - 1, sizes["hidden"]
    lstm = sum(
        length * p.count for length, layers in ((source, encoder), (steps, decoder)) for p in layers if p.shape[1:]
    )
    projections = (source + steps) * hidden**2
    return lstm + projections + 2 * steps * source * hidden + steps * sizes["vocabulary"] * hidden


def _activations(sizes: dict[str, Any]) -> int:
    """Count eight vectors per LSTM step (gates, states, input), and three per pair of words in attention and per score."""
    source, steps, hidden = sizes["source"], sizes["target"] - 1, sizes["hidden"]
    lstm = 8 * hidden * ((sizes["layers"] + 1) * source + sizes["layers"] * steps)
    return lstm + 3 * steps * (source * hidden + sizes["vocabulary"])


def _batch(generator: np.random.Generator, batch: int, sizes: dict[str, Any]) -> Batch:
    """Make a batch: the first half of the sentences has full length, the others at least 2 words (begin, end)."""
    source, source_length = _sentences(generator, batch, sizes["source"], sizes["vocabulary"])
    target, _ = _sentences(generator, batch, sizes["target"], sizes["vocabulary"])
    return {"source": source, "source_length": source_length, "target": target}


def _sentences(
    generator: np.random.Generator, batch: int, longest: int, vocabulary: int
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    lengths = generator.integers(2, longest, batch, dtype=np.int32)
    lengths[: (batch + 1) // 2] = longest
    words = generator.integers(RESERVED, vocabulary, (batch, longest), dtype=np.int32)
    words[:, 0] = BEGIN
    words[np.arange(batch), lengths - 1] = END
    words[np.arange(longest) >= lengths[:, None]] = PAD
    return words, lengths


def _adversarial_batch(generator: np.random.Generator, batch: int, sizes: dict[str, Any]) -> Batch:
    """Make a batch of the shortest sentences (begin, end) with the shortest and the longest of the other language, of the longest
    with one word again and again, and of the last and the unknown word.
    """
    source = generator.integers(RESERVED, sizes["vocabulary"], (batch, sizes["source"]), dtype=np.int32)
    target = generator.integers(RESERVED, sizes["vocabulary"], (batch, sizes["target"]), dtype=np.int32)
    lengths = np.full(batch, sizes["source"], np.int32)
    for words, short in ((source, (0, 3)), (target, (0, 2))):
        words[1::4] = words[1::4, :1]
        words[2::4] = sizes["vocabulary"] - 1
        words[2::4, ::2] = UNKNOWN
        words[:, 0], words[:, -1] = BEGIN, END
        for first in short:
            words[first::4, 1], words[first::4, 2:] = END, PAD
    lengths[0::4] = lengths[3::4] = 2
    return {"source": source, "source_length": lengths, "target": target}


def predictions(outputs: Batch, batch: Batch) -> Batch:
    """Return nll float64 (N,), natural logarithm, no smoothing, summed over a sentence's words, and words int32 (N,)."""
    labels = batch["target"][:, 1:]
    inside = labels != PAD
    # One sentence at a time, because copies of a whole batch of logits would need too much memory.
    found = [_nll(logits, words) for logits, words in zip(outputs["logits"], labels, strict=True)]
    return {"nll": (np.stack(found) * inside).sum(axis=1), "words": inside.sum(axis=1, dtype=np.int32)}


def translations(forward: Callable[[Batch], Batch], batch: Batch, beam: Beam) -> Batch:
    """Return `said` (the translation found) and `truth`, int32 (N, T - 1): word pieces without the beginning, padded."""

    def score(targets: np.ndarray[Any, Any], place: int) -> np.ndarray[Any, Any]:
        logits = forward({**batch, "target": targets})["logits"][:, place - 1].astype(np.float64)
        logits -= logits.max(axis=1, keepdims=True)
        return np.asarray(logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)))

    count, longest = batch["target"].shape
    return {"translation": beam.search(score, count, longest)[:, 1:], "truth": batch["target"][:, 1:]}


def _nll(logits: np.ndarray[Any, Any], labels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    wide = logits.astype(np.float64)
    wide -= wide.max(axis=1, keepdims=True)
    chosen = wide[np.arange(len(labels)), labels]
    return np.asarray(np.log(np.exp(wide, out=wide).sum(axis=1)) - chosen)
