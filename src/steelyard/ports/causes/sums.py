"""Residual connections between two layers: what is added, and whether the activation comes before or after the sum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steelyard.ports.causes import Family, Place, Settings
from steelyard.ports.causes.activations import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from steelyard.ports.given_inputs import Array

FACTORS = (1.0, 0.5, 2.0, 0.0)
AFTER, BEFORE, BEFORE_IN_IT = "after the sum", "before the sum", "before the sum, in the connection"
USED = ("no activation", "ReLU", "GELU by the error function", "GELU by its tanh approximation", "SiLU")


def _sum(place: Place, settings: Settings) -> Array | None:
    first, second = place.inputs["input"], place.inputs.get(settings["with"])
    if second is None:
        return None
    function = FUNCTIONS[settings["activation"]]
    first, second = settings["own factor"] * first, settings["factor"] * second
    if settings["order"] == AFTER:
        found: Array = function(first + second)
    else:
        found = function(first) + second if settings["order"] == BEFORE else first + function(second)
    return found


def _values(place: Place) -> Mapping[str, Sequence[Any]]:
    return {
        "with": tuple(name for name in place.inputs if name != "input"),
        "factor": FACTORS,
        "activation": USED,
        "order": (AFTER, BEFORE, BEFORE_IN_IT),
        "own factor": (1.0, 0.5, 2.0),
    }


def _words(name: str, value: Any) -> str:
    if name == "factor":
        return {0.0: "nothing added", 1.0: "the connection added"}.get(value, f"the connection added {value:g} times")
    if name == "own factor":
        return "the last layer as it is" if value == 1 else f"the last layer {value:g} times"
    return {
        "with": f"{value} added",
        "order": f"the activation {value}",
    }.get(name, str(value))


FAMILY = Family("residual connection", _sum, _values, _words)
