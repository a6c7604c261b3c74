"""Scaled dot-product attention, between dense layers or as one layer: scale, masks, heads, rotary positions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.ports.causes import Family, Place, Settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.ports.given_inputs import Array

ROOT_OF_HEAD, ROOT_OF_WIDTH, NONE = "the root of a head's width", "the root of the whole width", "nothing"
MOST_HEADS = 64
HALVES, NEIGHBOURS = "of two halves", "of neighbours"
"""Which two numbers of a head are turned together: Llama of transformers has halves, the paper and GPT-J neighbours."""
BASES = (10_000, 500_000, 1_000_000)
LEAST = 1e-300
MASK = "mask "
"""The name of an input that may be a mask begins with it."""


def _attention(place: Place, settings: Settings) -> Array | None:
    query, key, value = (place.inputs.get(name) for name in ("query", "key", "value"))
    if query is None or key is None or value is None:
        return None
    return _mixed(place, (query, key, value), settings)


def _mixed(place: Place, three: tuple[Array, Array, Array], settings: Settings) -> Array | None:
    """Return the values of all heads, mixed, beside each other: (batch, tokens, width)."""
    if (found := _in_heads(three, settings["heads"])) is None:
        return None
    q, k, v = found
    size, width = q.shape[-1], three[0].shape[-1]
    if settings["rotary"] != NONE:
        if size % 2:
            return None
        q, k = (_turned(each, settings["rotary"], settings["base"]) for each in (q, k))
    divisor = {ROOT_OF_HEAD: np.sqrt(size), ROOT_OF_WIDTH: np.sqrt(width), NONE: 1.0}[settings["divisor"]]
    scores = _masked(place, np.einsum("bqhd,bkhd->bhqk", q, k) / divisor, settings)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    total = weights.sum(-1 if settings["softmax over"] == "keys" else -2, keepdims=True)
    weights /= np.maximum(total, LEAST)  # a key that no query may see has weights of 0 over all queries
    context: Array = np.einsum("bhqk,bkhd->bqhd", weights, v)
    return context.reshape(three[0].shape)


def _in_heads(three: tuple[Array, Array, Array], heads: int) -> tuple[Array, Array, Array] | None:
    """Return query, key and value as (batch, tokens, heads, size); None if they have not so many heads."""
    query, key, value = three
    size = query.shape[-1] // heads
    if query.ndim != 3 or any(each.shape[-1] % size for each in three) or query.shape[-1] % heads:
        return None
    q, k, v = (_split(each, size) for each in (query, key, value))
    if heads % k.shape[2] or k.shape[2] != v.shape[2]:
        return None
    shared = heads // k.shape[2]  # several heads may share keys and values
    return q, np.repeat(k, shared, 2), np.repeat(v, shared, 2)


def _split(array: Array, size: int) -> Array:
    return array.reshape(*array.shape[:2], -1, size)


def _turned(x: Array, how: str, base: float) -> Array:
    """Turn pairs of numbers by angles that grow with the position (Su et al., 2021, RoFormer)."""
    size = x.shape[-1]
    angles = np.arange(x.shape[1])[:, None] * base ** (-np.arange(0, size, 2) / size)
    cosine, sine = np.cos(angles)[None, :, None], np.sin(angles)[None, :, None]
    found = np.empty_like(x)
    places = (slice(0, size // 2), slice(size // 2, None)) if how == HALVES else (slice(0, None, 2), slice(1, None, 2))
    first, second = x[..., places[0]], x[..., places[1]]
    found[..., places[0]] = first * cosine - second * sine
    found[..., places[1]] = second * cosine + first * sine
    return found


def _masked(place: Place, scores: Array, settings: Settings) -> Array:
    """Give scores that a mask forbids a value far below all others, as a query may have no key that is left."""
    least = scores.min() - 1e4
    if settings["mask"] == "causal":
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, least)
    name = settings["mask of keys"]
    mask = place.inputs.get(name) if name else None
    if mask is not None and mask.shape == (scores.shape[0], scores.shape[-1]):
        scores = np.where(mask[:, None, None] != 0, scores, least)
    return scores


def _heads(width: int) -> list[int]:
    return [each for each in range(1, MOST_HEADS + 1) if width % each == 0]


def _options(place: Place, width: int) -> dict[str, Sequence[Any]]:
    return {
        "heads": _heads(width),
        "divisor": (ROOT_OF_HEAD, ROOT_OF_WIDTH, NONE),
        "mask": ("none", "causal"),
        "mask of keys": ("", *(name for name in place.inputs if name.startswith(MASK))),
        "softmax over": ("keys", "queries"),
        "rotary": (NONE, HALVES, NEIGHBOURS),
        "base": BASES,
    }


def _values(place: Place) -> Mapping[str, Sequence[Any]]:
    return _options(place, place.inputs["query"].shape[-1] if "query" in place.inputs else 1)


def _layer(place: Place, settings: Settings) -> Array | None:
    """Return self-attention with its four projections. Kernels: (outputs, inputs)."""
    x = place.inputs["input"]
    projected = []
    for name in ("query", "key", "value"):
        kernel, bias = place.tensors.get(f"{name} kernel"), place.tensors.get(f"{name} bias")
        if kernel is None or x.ndim != 3 or kernel.shape[1] != x.shape[-1]:
            return None
        product = x @ kernel.T
        projected.append(product if bias is None else product + settings["biases"] * bias)
    found = _mixed(place, (projected[0], projected[1], projected[2]), settings)
    kernel, bias = place.tensors.get("out kernel"), place.tensors.get("out bias")
    if found is None or kernel is None:
        return None
    found = found @ kernel.T
    return found if bias is None else found + settings["last bias"] * bias


def _layer_values(place: Place) -> Mapping[str, Sequence[Any]]:
    kernel = place.tensors.get("query kernel")
    return _options(place, 1 if kernel is None else kernel.shape[0]) | {"biases": (1, 0), "last bias": (1, 0)}


def _words(name: str, value: Any) -> str:
    return {
        "heads": f"{value} heads",
        "divisor": f"scores divided by {value}",
        "mask": "no mask" if value == "none" else f"a {value} mask",
        "mask of keys": f"the {value} on keys" if value else "no mask on keys",
        "softmax over": f"softmax over {value}",
        "rotary": "no rotary positions" if value == NONE else f"rotary positions {value}",
        "base": f"rotary positions with base {value}",
        "biases": "biases of query, key and value" if value else "no biases of query, key and value",
        "last bias": "its last bias" if value else "no last bias",
    }[name]


FAMILY = Family("attention", _attention, _values, _words, samples=2)
LAYER = Family("attention", _layer, _layer_values, _words, samples=2)
