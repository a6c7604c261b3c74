"""A described network as JSON, between the process that runs the user's code and the one that asks it.

Everything of a network is data but its functions. Of these, the ones that draw batches are called in such a process as well, by
their names; the others are called by workers alone, which load them themselves.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
from functools import cache
from typing import Any, get_type_hints

from steelyard_worker import network as described
from steelyard_worker import records
from steelyard_worker.network import Adversarial, Input, Isolation, Network, Parameter

# The functions that draw batches, as they are found from a network.
DRAWING = ("draw", "draw_set", "adversarial.draw")
# Those that only workers call.
OF_WORKERS = ("predictions", "write")
# Fields that are built by themselves: functions, and what consists of further dataclasses.
BUILT = ("parameters", "inputs", "adversarial", "isolation")
# What JSON has in place of the annotated type: sizes are at least one, and the names in an object are text.
IN_JSON = {"shape": tuple[records.Positive, ...], "lengths": dict[str, str]}


def to_text(network: Network) -> str:
    """Return a network as JSON, with the names of the functions that draw. TypeError: it holds what is no data."""
    plain = {each.name: getattr(network, each.name) for each in fields(Network) if each.name not in OF_WORKERS}
    functions = [name for name in DRAWING if function(network, name)]
    functions += [name for name in OF_WORKERS if getattr(network, name)]
    adversarial = network.adversarial
    isolation = adversarial.isolation and asdict(adversarial.isolation)
    own = {"scale": adversarial.scale, "factors": adversarial.factors, "clip": adversarial.clip, "isolation": isolation}
    listed = {name: [asdict(each) for each in plain[name]] for name in ("parameters", "inputs")}
    found = plain | listed | {"adversarial": own, "functions": functions}
    return json.dumps({name: value for name, value in found.items() if name not in DRAWING}, default=_plain)


def from_text(text: str, drawing: Callable[[str], Callable[..., Any]]) -> Network:
    """Return the network of a JSON text. `drawing` gives a function that draws, by its name. ValueError: it is no network."""
    raw = records.convert(dict[str, Any], records.parse(text), "the network")
    try:
        functions: dict[str, Any] = {name: drawing(name) for name in raw["functions"] if name in DRAWING}
        functions |= {name: _elsewhere for name in raw["functions"] if name in OF_WORKERS}
        adversarial = _adversarial(raw["adversarial"])
        found = Network(
            parameters=tuple(Parameter(**_fields(Parameter, each, "a parameter")) for each in raw["parameters"]),
            inputs=tuple(_input(each) for each in raw["inputs"]),
            adversarial=replace(adversarial, draw=functions.pop("adversarial.draw", None)),
            **_fields(Network, raw, "the network"),
            **functions,
        )
    except (KeyError, TypeError) as error:
        message = f"it is incomplete ({type(error).__name__}: {error})"
        raise ValueError(message) from None
    return found


def wrong_shape(network: Network) -> str:
    """Return which tensor's shape is impossible; empty if none is."""
    shapes = {parameter.name: parameter.shape for parameter in network.parameters}
    shapes |= {each.name: each.shape for each in network.inputs}
    for name, shape in shapes.items():
        if not all(isinstance(extent, int) and extent > 0 for extent in shape):
            return f"'{name}' the shape {shape}; sizes must be whole numbers from 1."
    return ""


def function(network: Network, name: str) -> Callable[..., Any] | None:
    """Return a function that draws, by its name; None where the network has none."""
    if name not in DRAWING:
        message = f"a network has no function '{name}'"
        raise ValueError(message)
    holder, last = (network.adversarial, "draw") if "." in name else (network, name)
    found: Callable[..., Any] | None = getattr(holder, last)
    return found


def _fields(kind: type, raw: Any, where: str) -> dict[str, Any]:
    return {name: records.convert(hint, raw[name], f"'{name}' of {where}") for name, hint in _hints(kind).items()}


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """Return the types of the fields that are data, from the annotations in `steelyard_worker.network`."""
    left = (*BUILT, *OF_WORKERS, *(name.rpartition(".")[2] for name in DRAWING))
    annotated = {each.name: each.type for each in fields(kind) if each.name not in left}
    plain = type(kind.__name__, (), {"__annotations__": annotated})
    # An annotated mapping is an object in JSON, which becomes a dict.
    return get_type_hints(plain, vars(described), {"Mapping": dict}) | {
        name: hint for name, hint in IN_JSON.items() if name in annotated
    }


def _input(raw: Any) -> Input:
    found = _fields(Input, raw, "an input")
    return Input(**found | {"lengths": {int(axis): name for axis, name in found["lengths"].items()}})


def _adversarial(raw: Any) -> Adversarial:
    where = "the adversarial step"
    isolation = raw["isolation"]
    isolated = Isolation(**_fields(Isolation, isolation, "the isolation")) if isolation is not None else None
    return Adversarial(isolation=isolated, **_fields(Adversarial, raw, where))


def _elsewhere(*_: Any) -> Any:
    """Stand for a function of the user's network that only workers call, so that its presence is known."""
    message = "a function of a network that only workers call was called elsewhere"
    raise RuntimeError(message)


def _plain(value: Any) -> Any:
    """Return a number of NumPy, or a mapping of another kind, as JSON has it."""
    if isinstance(value, Mapping):
        return dict(value)
    if callable(item := getattr(value, "item", None)):
        return item()
    message = f"a network is data, and {type(value).__name__} is none"
    raise TypeError(message)
