"""Functions of one number between two layers: forms of GELU, slopes, and others that are taken for each other; and gates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import erf, expit

from steelyard.ports.causes import Family, Place, Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from steelyard.ports.given_inputs import Array

ROOT = float(np.sqrt(2 / np.pi))


def _softplus(x: Array) -> Array:
    return np.logaddexp(0, x)


FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "no activation": lambda x: x,
    "ReLU": lambda x: np.maximum(x, 0),
    "GELU by the error function": lambda x: x * 0.5 * (1 + erf(x / np.sqrt(2))),
    "GELU by its tanh approximation": lambda x: 0.5 * x * (1 + np.tanh(ROOT * (x + 0.044715 * x**3))),
    "GELU by its sigmoid approximation": lambda x: x * expit(1.702 * x),
    "SiLU": lambda x: x * expit(x),
    "tanh": np.tanh,
    "sigmoid": expit,
    "ReLU6": lambda x: np.clip(x, 0, 6),
    "leaky ReLU with slope 0.01": lambda x: np.where(x > 0, x, 0.01 * x),
    "leaky ReLU with slope 0.2": lambda x: np.where(x > 0, x, 0.2 * x),
    "leaky ReLU with slope 0.3": lambda x: np.where(x > 0, x, 0.3 * x),
    "ELU": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "softplus": _softplus,
    "mish": lambda x: x * np.tanh(_softplus(x)),
    "hard swish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hard sigmoid (x / 6 + 1/2)": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "hard sigmoid (x / 5 + 1/2)": lambda x: np.clip(x / 5 + 0.5, 0, 1),
    "squared ReLU": lambda x: np.maximum(x, 0) ** 2,
}

DECLARED = {
    "relu": "ReLU",
    "gelu": "GELU by the error function",
    "silu": "SiLU",
    "swish": "SiLU",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "relu6": "ReLU6",
    "leaky_relu": "leaky ReLU with slope 0.2",
    "elu": "ELU",
    "softplus": "softplus",
    "mish": "mish",
}
"""Names of functions of Keras that a layer may apply itself."""


def _activation(place: Place, settings: Settings) -> Array | None:
    return FUNCTIONS[settings["function"]](place.inputs["input"])


def _values(place: Place) -> Mapping[str, Sequence[Any]]:
    del place
    return {"function": tuple(FUNCTIONS)}


FAMILY = Family("activation", _activation, _values, lambda _, value: str(value))


def _gate(place: Place, settings: Settings) -> Array | None:
    """Return one of two values times a function of the other."""
    one = place.inputs[settings["of"]]
    other = next(array for name, array in place.inputs.items() if name != settings["of"])
    return FUNCTIONS[settings["function"]](one) * other


def _gate_values(place: Place) -> Mapping[str, Sequence[Any]]:
    return {"of": tuple(place.inputs), "function": tuple(FUNCTIONS)}


GATE = Family(
    "gate", _gate, _gate_values, lambda name, value: f"the function of {value}" if name == "of" else str(value)
)
