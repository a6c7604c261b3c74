"""Losses: what they take (logits or probabilities), what they average over, smoothed labels, what they leave out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.ports.causes import Family, Place, Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from steelyard.ports.given_inputs import Array

LEAST = 1e-7
"""Keras clips probabilities to this before it takes their logarithm."""
MEAN, SUM, PER_SAMPLE, ALL = (
    "the mean over all that counts",
    "the sum",
    "the sum over the batch size",
    "the mean over all places",
)
CLIPPED_FIRST = "probabilities, clipped before they are divided by their sum"


def _log_softmax(x: Array) -> Array:
    moved = x - x.max(-1, keepdims=True)
    found: Array = moved - np.log(np.exp(moved).sum(-1, keepdims=True))
    return found


def _log_of(x: Array, taken: str) -> Array:
    if taken == "logits":
        return _log_softmax(x)
    if taken == "logits after one more softmax":
        return _log_softmax(np.exp(_log_softmax(x)))
    if taken == "log-probabilities":
        return x
    if taken == CLIPPED_FIRST:
        return _log_softmax(np.log(np.clip(x, LEAST, 1 - LEAST)))
    total = x.sum(-1, keepdims=True)
    shares = np.divide(x, total, out=np.zeros_like(x), where=total != 0)
    logs: Array = np.log(np.clip(shares, LEAST, 1 - LEAST))
    return logs


def _cross_entropy(place: Place, settings: Settings) -> Array | None:
    x, labels = place.inputs["input"], place.inputs["target"]
    x = np.moveaxis(x, 1, -1) if settings["classes"] == "second" else x
    if x.shape[:-1] != labels.shape:
        return None
    numbers = labels.astype(np.int64)
    counted = np.ones(labels.shape, bool) if settings["left out"] is None else numbers != settings["left out"]
    chosen = np.where(counted, numbers, 0)
    if not counted.any() or chosen.min() < 0 or chosen.max() >= x.shape[-1]:
        return None
    logs = _log_of(x, settings["takes"])
    own = np.take_along_axis(logs, chosen[..., None], -1)[..., 0]
    smoothed = (1 - settings["smoothing"]) * own + settings["smoothing"] * logs.mean(-1)
    return _averaged(-np.where(counted, smoothed, 0), int(counted.sum()), settings["over"])


def _averaged(terms: Array, counted: int, over: str) -> Array:
    divisor = {MEAN: counted, SUM: 1, PER_SAMPLE: len(terms), ALL: terms.size}[over]
    return np.asarray(terms.sum() / divisor).reshape(1)


def _cross_entropy_values(place: Place) -> Mapping[str, Sequence[Any]]:
    del place
    return {
        "takes": ("logits", "probabilities", CLIPPED_FIRST, "logits after one more softmax", "log-probabilities"),
        "over": (MEAN, SUM, PER_SAMPLE, ALL),
        "smoothing": (0.0, 0.1, 0.05, 0.2),
        "left out": (None, -100, 0, 1, -1),
        "classes": ("last", "second"),
    }


def _words(name: str, value: Any) -> str:
    if name == "left out":
        return "no label left out" if value is None else f"the label {value} left out"
    return {
        "takes": f"a loss that takes {value}",
        "over": str(value),
        "smoothing": f"labels smoothed by {value:g}" if name == "smoothing" and value else "labels as they are",
        "terms": str(value),
    }.get(name, f"{name} {value}")


TERMS: dict[str, Callable[[Array, Array], Array]] = {
    "squared errors": lambda x, t: (x - t) ** 2,
    "half squared errors": lambda x, t: 0.5 * (x - t) ** 2,
    "absolute errors": lambda x, t: np.abs(x - t),
    "Huber's errors": lambda x, t: np.where(np.abs(x - t) <= 1, 0.5 * (x - t) ** 2, np.abs(x - t) - 0.5),
    "root of the squared errors": lambda x, t: np.sqrt((x - t) ** 2),
    "binary cross-entropy of logits": lambda x, t: _of_logits(x, t),
    "binary cross-entropy of probabilities": lambda x, t: _of_probabilities(x, t),
    "binary cross-entropy of logits after one more sigmoid": lambda x, t: _of_logits(1 / (1 + np.exp(-x)), t),
}


def _of_logits(x: Array, t: Array) -> Array:
    found: Array = np.maximum(x, 0) - x * t + np.log1p(np.exp(-np.abs(x)))
    return found


def _of_probabilities(x: Array, t: Array) -> Array:
    clipped = np.clip(x, LEAST, 1 - LEAST)
    found: Array = -(t * np.log(clipped) + (1 - t) * np.log(1 - clipped))
    return found


def _of_terms(place: Place, settings: Settings) -> Array | None:
    x, target = place.inputs["input"], place.inputs["target"]
    if x.size != target.size:
        return None
    terms = TERMS[settings["terms"]](x, target.reshape(x.shape))
    return _averaged(terms, terms.size, settings["over"])


def _term_values(place: Place) -> Mapping[str, Sequence[Any]]:
    del place
    return {"terms": tuple(TERMS), "over": (MEAN, SUM, PER_SAMPLE)}


CROSS_ENTROPY = Family("cross-entropy", _cross_entropy, _cross_entropy_values, _words)
OF_TERMS = Family("loss", _of_terms, _term_values, _words)
FAMILIES = (CROSS_ENTROPY, OF_TERMS)
