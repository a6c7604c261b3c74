"""The second set of weights that a certificate computes with: the initial weights times factors that are drawn.

An implementation cannot recognise them. A tensor that equals its initial value, or a power of two times it, would show that the
implementation is being certified. Draws are hashes, not random numbers of NumPy, so that they are the same in every version of
NumPy.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard_worker.network import Isolation, Network

    Array = np.ndarray[Any, Any]

# A draw is 1 minus a whole number of these, which float32 holds exactly: between 15/16 and 1. Not more than 1, because gates that
# saturate further lose accuracy in right code, too. With draws of up to 1.5, BERT tiny in MindSpore went from 74 to 155 rounding
# levels, and errors of 0.6 % passed in the adversarial step of GNMT instead of 0.1 %.
UNIT = 2.0**-23
MOST = 2**19


def of_training(network: Network, weights: Mapping[str, Array], seed: int) -> dict[str, Array]:
    """Return the weights of the adversarial step of a training, drawn by the case's seed."""
    return {name: _times(array, network.adversarial.factor(name), seed, name) for name, array in weights.items()}


def of_inference(network: Network, weights: Mapping[str, Array], seed: int) -> dict[str, Array]:
    """Return the weights of the adversarial batch of an inference: without the factors that only batch statistics undo.

    Variances are small, as in `of_evaluation`.
    """
    plain = {f"{p.name.rpartition('.')[0]}.gamma" for p in network.parameters if p.kind == "running_var"}
    return {
        name: _times(array, 1.0 if name in plain else network.adversarial.factor(name), seed, name)
        for name, array in _with_small_variances(network, weights).items()
    }


def of_evaluation(network: Network, weights: Mapping[str, Array], seed: int) -> dict[str, Array]:
    """Return weights with which the outputs of an inference show the epsilon of every normalisation.

    A running variance is about as large as the epsilon, and its batch norm's scale smaller by the same factor as what is divided,
    so that outputs are about those of the initial weights. Layer norms: see `Network.small_variances`.
    """
    return {name: _times(array, 1.0, seed, name) for name, array in _with_small_variances(network, weights).items()}


def _with_small_variances(network: Network, weights: Mapping[str, Array]) -> dict[str, Array]:
    found = {name: _multiplied(array, network.small_variance_factor(name)) for name, array in weights.items()}
    epsilon = network.norm_epsilon
    for each in network.parameters:
        scale = f"{each.name.rpartition('.')[0]}.gamma"
        if each.kind == "running_var" and scale in weights:
            usual = weights[each.name].astype(np.float64)
            small = usual * (epsilon / usual.mean()) if usual.any() else usual
            found[each.name] = small.astype(weights[each.name].dtype)
            found[scale] = _multiplied(weights[scale], np.sqrt((small + epsilon) / (usual + epsilon)))
    return found


def isolated(isolation: Isolation, weights: Mapping[str, Array], seed: int) -> dict[str, Array]:
    """Return the weights that isolate a layer from the rounding of those before it."""
    return {
        name: ramp(array, top) if (top := isolation.ramp(name)) else _times(array, isolation.factor(name), seed, name)
        for name, array in weights.items()
    }


def ramp(array: Array, top: float) -> Array:
    """Return evenly spread values between -top and top, of the same shape and dtype. None is zero, where a ReLU has a kink."""
    places = np.arange(array.size) + 0.25 - array.size / 2
    return (places * (2 * top / array.size)).reshape(array.shape).astype(array.dtype)


def draw(seed: int, name: str) -> float:
    """Return the draw of a tensor, less than 1 and more than 15/16."""
    hashed = int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:8], "big")
    return 1 - UNIT * (1 + hashed % (MOST - 1))


def _times(array: Array, factor: float, seed: int, name: str) -> Array:
    return _multiplied(array, factor * draw(seed, name))


def _multiplied(array: Array, factor: Any) -> Array:
    # In the array's own precision, so that the reference gets exactly the same numbers as the candidate.
    return np.asarray(array * np.asarray(factor, array.dtype), array.dtype)
