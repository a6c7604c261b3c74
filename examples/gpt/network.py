"""A small GPT (Radford et al. 2019) in canonical form: learned positions, causal pre-norm blocks, an output layer of its own.

Layer norms have epsilon 1e-5 and the biased variance, GELU is the tanh form, scores are divided by the root of a head's width.
A token sees itself and the tokens before it. There is no dropout. The loss is the mean cross-entropy over all tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard_worker.network import Input, Network, Parameter
from steelyard_worker.sizes import require

if TYPE_CHECKING:
    from steelyard_worker.batches import Batch


def describe(sizes: dict[str, Any]) -> Network:
    """Sizes: vocabulary, length (tokens of a sample), width, heads, hidden, blocks, batch."""
    width, hidden, length, vocabulary = (sizes[name] for name in ("width", "hidden", "length", "vocabulary"))
    require(width % sizes["heads"] == 0, "width is a multiple of heads")
    parameters = [
        Parameter("token", (vocabulary, width), "embedding", "trunc_normal:0.02"),
        Parameter("position", (length, width), "embedding", "trunc_normal:0.02"),
    ]
    for number in range(sizes["blocks"]):
        parameters += block(f"block{number}", width, hidden)
    parameters += [*norm("norm", width), Parameter("head.weight", (vocabulary, width), "dense", "trunc_normal:0.02")]
    inputs = tuple(Input(name, (length,), "int32", high=vocabulary) for name in ("tokens", "targets"))
    per_block = length * (4 * width * width + 2 * width * hidden) + 2 * length * length * width
    macs = sizes["blocks"] * per_block + length * width * vocabulary
    probes = tuple(f"block{number}" for number in range(sizes["blocks"]))
    return Network(tuple(parameters), inputs, macs, probes=probes, likelihood=True, predictions=predictions)


def block(name: str, width: int, hidden: int) -> list[Parameter]:
    """Attention and perceptron, each after a layer norm. The keys' bias has a gradient of zero: it shifts all scores equally."""
    attention = [each for part in ("query", "key", "value", "out") for each in dense(f"{name}.{part}", width, width)]
    parts = [
        Parameter(each.name, each.shape, each.kind, each.initial, zero_gradient=each.name == f"{name}.key.bias")
        for each in attention
    ]
    perceptron = [*dense(f"{name}.up", width, hidden), *dense(f"{name}.down", hidden, width)]
    return [*norm(f"{name}.norm1", width), *parts, *norm(f"{name}.norm2", width), *perceptron]


def dense(name: str, features: int, out: int) -> tuple[Parameter, Parameter]:
    """Kernel (out, in) and bias."""
    return (
        Parameter(f"{name}.weight", (out, features), "dense", "trunc_normal:0.02"),
        Parameter(f"{name}.bias", (out,), "bias", "constant:0"),
    )


def norm(name: str, width: int) -> tuple[Parameter, Parameter]:
    """Scale and shift of a layer norm."""
    return (
        Parameter(f"{name}.gamma", (width,), "gamma", "constant:1"),
        Parameter(f"{name}.beta", (width,), "beta", "constant:0"),
    )


def predictions(outputs: Batch, batch: Batch) -> Batch:
    """Return what the metric `next-token` needs, each (N,).

    nll: the negative log-likelihood of a sample's targets in nats. tokens: their number. right: how many were the most likely.
    """
    logits, targets = outputs["logits"], batch["targets"].astype(np.int64)
    highest = logits.max(axis=-1)
    chosen = np.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    nll = np.log(np.exp(logits - highest[..., None]).sum(axis=-1)) + (highest - chosen)
    return {
        "nll": nll.sum(axis=1).astype(np.float32),
        "tokens": np.full(len(targets), targets.shape[1], np.int32),
        "right": (logits.argmax(axis=-1) == targets).sum(axis=1).astype(np.int32),
    }
