"""BERT pre-training (Devlin et al. 2019, arXiv 1810.04805): masked words and next sentence, in canonical form.

Post-layer-norm encoder; the word embedding is also the matrix that scores masked words. Layer norm has epsilon 1e-12.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard_worker.network import Adversarial, Input, Network, Parameter
from steelyard_worker.sizes import at_least, one_of, require

if TYPE_CHECKING:
    from steelyard_worker.batches import Batch

SEGMENTS = 2  # first and second sentence
SHORTEST = 6  # a sample of two sentences
SPECIAL = 5  # ids below are padding, unknown, classification, separator, mask
# The variances that layer norms see are the square of this, times their usual ones: near the epsilon of 1e-12, far below one of
# 1e-7, which is the default of some frameworks. What reads a layer norm is larger by as much.
SMALL = 2.0**-16
SMALL_VARIANCES = {
    "words.norm.*": 1 / SMALL,
    "*norm.*": SMALL,
    "embeddings.*": SMALL,
    "*.attention.output.*": SMALL,
    "*.attention.*.weight": 1 / SMALL,
    "*.intermediate.weight": 1 / SMALL,
    "layer*.output.*": SMALL,
    "pooler.weight": 1 / SMALL,
}


def describe(sizes: dict[str, Any]) -> Network:
    """Sizes: vocabulary, positions, length, masked (per sample), hidden, layers, heads, intermediate, gelu, initial, batch.

    `initial` is the standard deviation of all initial matrices: 0.02 at the published width, and more in narrower networks, so
    that inputs of the GELU are as large as there. With small inputs a certificate could not distinguish its two forms.
    """
    _check(sizes)
    hidden, inner, length = sizes["hidden"], sizes["intermediate"], sizes["length"]
    vocabulary, masked, initial = sizes["vocabulary"], sizes["masked"], f"trunc_normal:{sizes['initial']}"
    parameters = _embeddings(sizes)
    for layer in range(sizes["layers"]):
        parameters += _layer(f"layer{layer}", hidden, inner, initial)
    parameters += [
        *_dense("pooler", hidden, hidden, initial),
        *_dense("words.transform", hidden, hidden, initial),
        *layer_norm("words.norm", hidden),
        Parameter("words.bias", (vocabulary,), "bias", "constant:0"),
        *_dense("next", 2, hidden, initial),
    ]
    layer_macs = length * (4 * hidden * hidden + 2 * length * hidden + 2 * hidden * inner)
    heads = hidden * hidden + masked * hidden * (hidden + vocabulary) + 2 * hidden
    macs = sizes["layers"] * layer_macs + heads

    # Per token twelve vectors of the width, three of the inner width; per head two attention matrices; scores of masked words.
    tables = 2 * sizes["heads"] * length * length
    stored = sizes["layers"] * (length * (12 * hidden + 3 * inner) + tables) + 3 * masked * vocabulary

    def draw(generator: np.random.Generator, batch: int) -> Batch:
        return draw_batch(generator, batch, sizes)

    def draw_adversarial(generator: np.random.Generator, batch: int) -> Batch:
        return draw_adversarial_batch(generator, batch, sizes)

    return Network(
        tuple(parameters),
        _inputs(sizes),
        macs,
        stored,
        draw=draw,
        predictions=predictions,
        adversarial=Adversarial(draw_adversarial, factors={"*.gamma": 4.0}),
        probes=_probes(sizes["layers"]),
        mean_over="words",
        likelihood=True,
        blocks=tuple(f"layer{layer}" for layer in range(sizes["layers"])),
        small_variances=SMALL_VARIANCES,
    )


def _check(sizes: dict[str, Any]) -> None:
    hidden, heads, length, masked = (sizes[name] for name in ("hidden", "heads", "length", "masked"))
    one_of(sizes, "gelu", "erf", "tanh")
    at_least(sizes, "vocabulary", SPECIAL + 1)
    at_least(sizes, "length", 2 * SHORTEST)
    require(hidden % heads == 0, f"hidden is {hidden} and must be a multiple of heads, which is {heads}")
    require(length <= sizes["positions"], f"length is {length} and must not exceed positions, {sizes['positions']}")
    most = length // 2 - 2  # of the shortest sample, without its first and last token
    require(masked <= most, f"masked is {masked} and must be at most {most} where length is {length}")


def _probes(layers: int) -> tuple[str, ...]:
    encoder = (f"layer{layer}.{norm}" for layer in range(layers) for norm in ("attention.norm", "norm"))
    return "embeddings.norm", *encoder, "pooler", "words.norm"


def layer_norm(name: str, width: int) -> tuple[Parameter, Parameter]:
    """Scale and shift of a layer norm, each (width,)."""
    return (
        Parameter(f"{name}.gamma", (width,), "gamma", "constant:1"),
        Parameter(f"{name}.beta", (width,), "beta", "constant:0"),
    )


def _dense(
    name: str, out: int, features: int, initial: str, zero_gradient_bias: bool = False
) -> tuple[Parameter, Parameter]:
    return (
        Parameter(f"{name}.weight", (out, features), "dense", initial),
        Parameter(f"{name}.bias", (out,), "bias", "constant:0", zero_gradient=zero_gradient_bias),
    )


def _embeddings(sizes: dict[str, Any]) -> list[Parameter]:
    rows = {"word": sizes["vocabulary"], "position": sizes["positions"], "segment": SEGMENTS}
    tables = [
        Parameter(
            f"embeddings.{name}.weight", (count, sizes["hidden"]), "embedding", f"trunc_normal:{sizes['initial']}"
        )
        for name, count in rows.items()
    ]
    return [*tables, *layer_norm("embeddings.norm", sizes["hidden"])]


def _layer(name: str, hidden: int, inner: int, initial: str) -> tuple[Parameter, ...]:
    """Attention and feed-forward part. A bias of the keys shifts all scores of a query equally: softmax ignores it (P-51)."""
    return (
        *_dense(f"{name}.attention.query", hidden, hidden, initial),
        *_dense(f"{name}.attention.key", hidden, hidden, initial, zero_gradient_bias=True),
        *_dense(f"{name}.attention.value", hidden, hidden, initial),
        *_dense(f"{name}.attention.output", hidden, hidden, initial),
        *layer_norm(f"{name}.attention.norm", hidden),
        *_dense(f"{name}.intermediate", inner, hidden, initial),
        *_dense(f"{name}.output", hidden, inner, initial),
        *layer_norm(f"{name}.norm", hidden),
    )


def _inputs(sizes: dict[str, Any]) -> tuple[Input, ...]:
    length, masked = (sizes["length"],), (sizes["masked"],)
    return (
        Input("input_ids", length, "int32", high=sizes["vocabulary"]),
        Input("input_mask", length, "int32", high=2),
        Input("segment_ids", length, "int32", high=SEGMENTS),
        Input("masked_lm_positions", masked, "int32", high=sizes["length"]),
        Input("masked_lm_ids", masked, "int32", high=sizes["vocabulary"]),
        Input("masked_lm_weights", masked, "float32"),
        Input("next_sentence_label", (), "int32", high=2),
    )


def draw_batch(generator: np.random.Generator, batch: int, sizes: dict[str, Any]) -> Batch:
    """Make samples like prepared text: half of them full, the others padded; some masked positions unused."""
    length, masked = sizes["length"], sizes["masked"]
    lengths = np.where(generator.random(batch) < 0.5, length, generator.integers(length // 2, length + 1, batch))
    seconds = generator.integers(3, lengths - 2)  # start of the second sentence
    place = np.arange(length)
    inside = place < lengths[:, None]
    words = generator.integers(SPECIAL, sizes["vocabulary"], (batch, length))
    chosen = np.array([_places(generator, int(end), masked) for end in lengths])
    used = np.arange(masked) < generator.integers(1, masked + 1, batch)[:, None]
    return {
        "input_ids": np.where(inside, words, 0).astype(np.int32),
        "input_mask": inside.astype(np.int32),
        "segment_ids": (inside & (place >= seconds[:, None])).astype(np.int32),
        "masked_lm_positions": np.where(used, chosen, 0).astype(np.int32),
        "masked_lm_ids": np.where(used, generator.integers(SPECIAL, sizes["vocabulary"], used.shape), 0).astype(
            np.int32
        ),
        "masked_lm_weights": used.astype(np.float32),
        "next_sentence_label": generator.integers(0, 2, batch, dtype=np.int32),
    }


def draw_adversarial_batch(generator: np.random.Generator, batch: int, sizes: dict[str, Any]) -> Batch:
    """Make, in turn, a full sample of the last word; one of two tokens that masks one place again and again; one without masked
    words; and a usual one.
    """
    found = draw_batch(generator, batch, sizes)
    full, short, unmasked = (slice(number, None, 4) for number in range(3))
    found["input_ids"][full], found["input_mask"][full] = sizes["vocabulary"] - 1, 1
    for name in ("input_ids", "input_mask", "segment_ids"):
        found[name][short, 2:] = 0
    found["input_ids"][short, :2], found["masked_lm_positions"][short], found["masked_lm_ids"][short] = (
        SPECIAL,
        1,
        SPECIAL,
    )
    found["masked_lm_weights"][short] = 1
    for name in ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights"):
        found[name][unmasked] = 0
    return found


def _places(generator: np.random.Generator, end: int, count: int) -> np.ndarray[Any, Any]:
    """Return distinct sorted positions in 1..end-2: the first and the last token are never masked."""
    return np.sort(generator.choice(np.arange(1, end - 1), count, replace=False))


def predictions(outputs: Batch, batch: Batch) -> Batch:
    """Return per sample: nll (natural log, summed over its masked words), number of words, number of correct ones; next_right."""
    logits, truth = outputs["words"], batch["masked_lm_ids"][..., None].astype(np.int64)
    counted = batch["masked_lm_weights"] > 0
    highest = logits.max(axis=-1)
    chosen = np.take_along_axis(logits, truth, axis=-1)[..., 0]
    nll = np.log(np.exp(logits - highest[..., None]).sum(axis=-1)) + (highest - chosen)
    return {
        "nll": np.where(counted, nll, 0).sum(axis=1).astype(np.float32),
        "words": counted.sum(axis=1).astype(np.int32),
        "right": (counted & (logits.argmax(axis=-1) == truth[..., 0])).sum(axis=1).astype(np.int32),
        "next_right": (outputs["next"].argmax(axis=1) == batch["next_sentence_label"]).astype(np.int8),
    }
