"""Scaled dot-product attention between three dense layers and a fourth: its scale, its mask, its heads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.port.causes import Family, Place, Settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.port.given_inputs import Array

ROOT_OF_HEAD, ROOT_OF_WIDTH, NONE = "the root of a head's width", "the root of the whole width", "nothing"
MOST_HEADS = 64


def _attention(place: Place, settings: Settings) -> Array | None:
    query, key, value = (place.inputs.get(name) for name in ("query", "key", "value"))
    if query is None or key is None or value is None or query.ndim != 3:
        return None
    heads, width = settings["heads"], query.shape[-1]
    divisor = {ROOT_OF_HEAD: np.sqrt(width // heads), ROOT_OF_WIDTH: np.sqrt(width), NONE: 1.0}[settings["divisor"]]
    q, k, v = (_split(each, heads) for each in (query, key, value))
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) / divisor
    if settings["mask"] == "causal":
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    scores = scores - scores.max(-1, keepdims=True)
    weights = np.exp(scores)
    weights /= weights.sum(-1 if settings["softmax over"] == "keys" else -2, keepdims=True)
    context: Array = np.einsum("bhqk,bkhd->bqhd", weights, v)
    return context.reshape(query.shape)


def _split(array: Array, heads: int) -> Array:
    return array.reshape(*array.shape[:2], heads, -1)


def _values(place: Place) -> Mapping[str, Sequence[Any]]:
    width = place.inputs["query"].shape[-1] if "query" in place.inputs else 1
    return {
        "heads": [each for each in range(1, MOST_HEADS + 1) if width % each == 0],
        "divisor": (ROOT_OF_HEAD, ROOT_OF_WIDTH, NONE),
        "mask": ("none", "causal"),
        "softmax over": ("keys", "queries"),
    }


def _words(name: str, value: Any) -> str:
    return {
        "heads": f"{value} heads",
        "divisor": f"scores divided by {value}",
        "mask": "no mask" if value == "none" else f"a {value} mask",
        "softmax over": f"softmax over {value}",
    }[name]


FAMILY = Family("attention", _attention, _values, _words)
