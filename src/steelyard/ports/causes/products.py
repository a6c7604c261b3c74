"""Dense layers and embeddings: a kernel that is not transposed, a bias that is missing, an activation inside, a shifted table."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.ports.causes import Family, Place, Settings
from steelyard.ports.causes.activations import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from steelyard.ports.given_inputs import Array


def _dense(place: Place, settings: Settings) -> Array | None:
    x, weight = place.inputs["input"], place.tensors.get("weight")
    if weight is None or weight.ndim != 2:
        return None
    kernel = weight if settings["kernel"] == "transposed" else weight.T  # weight: (out, in)
    if x.shape[-1] != kernel.shape[0]:
        return None
    of_factors, of_results = PRECISIONS[settings["precision"]]
    product = of_factors(x) @ of_factors(kernel)
    bias = place.tensors.get("bias")
    if bias is not None:
        product = product + settings["bias"] * of_results(bias)
    return FUNCTIONS[settings["activation"]](of_results(product))


def _kept(array: Array) -> Array:
    return array


def _half(array: Array) -> Array:
    return array.astype(np.float16).astype(np.float64)


def _rounded(array: Array, bits: int) -> Array:
    """Round float32 values to fewer bits, to nearest, ties to even."""
    raw = np.ascontiguousarray(array, np.float32).view(np.uint32).astype(np.uint64)
    half, last = np.uint64((1 << (bits - 1)) - 1), (raw >> np.uint64(bits)) & np.uint64(1)
    kept = ((raw + half + last) >> np.uint64(bits)) << np.uint64(bits)
    return kept.astype(np.uint32).view(np.float32).reshape(array.shape).astype(np.float64)


_brain = partial(_rounded, bits=16)
PRECISIONS: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "factors in float32": (_kept, _kept),
    "factors in bfloat16": (_brain, _kept),
    "factors in TF32": (partial(_rounded, bits=13), _kept),
    "factors and results in bfloat16": (_brain, _brain),
    "factors and results in float16": (_half, _half),
}
"""Precision -> how factors are rounded, and how the bias and the result are."""


def _dense_values(place: Place) -> Mapping[str, Sequence[Any]]:
    del place
    return {
        "kernel": ("as mapped", "transposed"),
        "bias": (1, 0, 2),
        "precision": tuple(PRECISIONS),
        "activation": tuple(FUNCTIONS),
    }


def _dense_words(name: str, value: Any) -> str:
    if name == "bias":
        return {0: "no bias", 1: "its bias", 2: "its bias twice"}[value]
    return f"the kernel {value}" if name == "kernel" else str(value)


def _embedding(place: Place, settings: Settings) -> Array | None:
    table, numbers = place.tensors.get("weight"), place.inputs["input"]
    if table is None or table.ndim != 2:
        return None
    rows = numbers.astype(np.int64) + settings["shift"]
    if rows.size and (rows.min() < 0 or rows.max() >= len(table)):
        return None
    scale = {"none": 1.0, "the root of the width": np.sqrt(table.shape[1])}[settings["scale"]]
    found: Array = table[rows] * scale
    if settings["row of zeros"] is not None:
        found = np.where((rows == settings["row of zeros"])[..., None], 0, found)
    return found


def _embedding_values(place: Place) -> Mapping[str, Sequence[Any]]:
    del place
    return {"scale": ("none", "the root of the width"), "shift": (0, 1, 2, -1), "row of zeros": (None, 0, 1)}


def _embedding_words(name: str, value: Any) -> str:
    if name == "shift":
        return f"rows {value:+d}" if value else "rows as given"
    return {"scale": f"scaled by {value}" if value != "none" else "not scaled"}.get(name, f"{name}: {value}")


FAMILIES = {
    "dense": (Family("dense layer", _dense, _dense_values, _dense_words),),
    "embedding": (Family("embedding", _embedding, _embedding_values, _embedding_words),),
}


def _numbers(place: Place, settings: Settings) -> Array | None:
    numbers: Array = place.inputs["input"] + settings["shift"]
    return numbers


NUMBERS = Family(
    "numbers of an embedding",
    _numbers,
    lambda _: {"shift": (0, 1, 2, -1, -2)},
    lambda _, value: _embedding_words("shift", value),
)
"""What an embedding receives: rows may be counted from another number, as positions are."""
