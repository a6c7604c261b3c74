"""LSTM layers: the order of gates, one bias or two, the functions of gates and cell, and the direction."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.ports.causes import Family, Place, Settings
from steelyard.ports.causes.activations import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.ports.given_inputs import Array

GATES = ("input", "forget", "cell", "output")
"""The order of PyTorch and Keras, and of the tensors of a place."""
KNOWN = (
    GATES,
    ("input", "forget", "output", "cell"),
    ("input", "cell", "forget", "output"),
    ("input", "output", "forget", "cell"),
)
"""Also those of cells in JAX, of TensorFlow 1, and of ONNX."""
BOTH, FIRST, SECOND, NONE = "both biases", "the first bias alone", "the second bias alone", "no bias"
OF_GATES = ("sigmoid", "hard sigmoid (x / 6 + 1/2)", "hard sigmoid (x / 5 + 1/2)")
OF_CELL = ("tanh", "ReLU", "sigmoid", "no activation", "softplus")
ONWARD, BACK, BACK_REVERSED = "from the first step", "from the last step, in that order", "from the last step"


def _lstm(place: Place, settings: Settings) -> Array | None:
    """Return the outputs of all steps, in the order of axes of the input."""
    x, first, second = place.inputs["input"], place.tensors.get("input kernel"), place.tensors.get("hidden kernel")
    if first is None or second is None or x.ndim != 3 or x.shape[-1] != first.shape[1]:
        return None
    steps = x if settings["time"] == "first" else np.swapaxes(x, 0, 1)
    given = steps[::-1] if settings["direction"] != ONWARD else steps
    gate, cell_of = FUNCTIONS[settings["gates by"]], FUNCTIONS[settings["cell by"]]
    order = [settings["order"].index(name) for name in GATES]
    projected = given @ first.T + _bias(place, settings)
    size = second.shape[1]
    hidden, cell = np.zeros((given.shape[1], size)), np.zeros((given.shape[1], size))
    found = []
    for step in projected:
        parts = np.split(step + hidden @ second.T, 4, -1)
        i, f, c, o = (parts[number] for number in order)
        cell = gate(f + settings["added"]) * cell + gate(i) * cell_of(c)
        hidden = gate(o) * cell_of(cell)
        found.append(hidden)
    result = np.stack(found[::-1] if settings["direction"] == BACK_REVERSED else found)
    return result if settings["time"] == "first" else np.swapaxes(result, 0, 1)


def _bias(place: Place, settings: Settings) -> Array | float:
    used = {BOTH: ("first bias", "second bias"), FIRST: ("first bias",), SECOND: ("second bias",), NONE: ()}
    total: Array | float = 0.0
    for name in used[settings["biases"]]:
        total = total + place.tensors.get(name, np.zeros(1))
    return total


def _values(place: Place) -> Mapping[str, Sequence[Any]]:
    del place
    return {
        "order": (*KNOWN, *itertools.permutations(GATES)),
        "biases": (BOTH, FIRST, SECOND, NONE),
        "cell by": OF_CELL,
        "gates by": OF_GATES,
        "direction": (ONWARD, BACK, BACK_REVERSED),
        "added": (0, 1),
        "time": ("second", "first"),
    }


def _words(name: str, value: Any) -> str:
    if name == "order":
        return f"gates in the order {', '.join(value)}"
    if name == "added":
        return "1 added to the forget gate" if value else "nothing added to the forget gate"
    return {"biases": "{}", "direction": "steps {}", "time": "time along the {} axis"}.get(name, f"{name} {{}}").format(
        value
    )


FAMILIES = {"lstm": (Family("LSTM", _lstm, _values, _words),)}
