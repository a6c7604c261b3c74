"""A described network as JSON, between the process that runs the user's code and the one that asks it.

Everything of a network is data but its functions. Of these, the ones that draw batches are called in such a process as well, by
their names; the others are called by workers alone, which load them themselves.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from steelyard_worker import records
from steelyard_worker.network import Adversarial, Input, Isolation, Network, Parameter

# The functions that draw batches, as they are found from a network.
DRAWING = ("draw", "draw_set", "adversarial.draw")
# Those that only workers call.
OF_WORKERS = ("predictions", "write")
FACTORS = dict[str, float]
SHAPE = tuple[records.Positive, ...]
# The types of the fields.
PARAMETER = {
    "name": str, "shape": SHAPE, "kind": str, "initial": str, "trainable": bool, "zero_gradient": bool,
}  # fmt: skip
INPUT = {"name": str, "shape": SHAPE, "dtype": str, "high": int, "lengths": dict[str, str]}
ISOLATION = {"tensors": tuple[str, ...], "factors": FACTORS, "ramps": FACTORS}
ADVERSARIAL = {"scale": float, "factors": FACTORS, "clip": float}
NETWORK = {
    "macs": int, "activations": int, "frozen_macs": int | None, "recursion": int, "loop_reads": int, "probes": tuple[str, ...],
    "dropout": bool, "blocks": tuple[str, ...], "mean_over": str, "likelihood": bool, "norm_epsilon": float,
    "small_variances": FACTORS,
}  # fmt: skip


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
    """Return the network of a JSON text. `drawing` gives a function that draws, by its name. ValueError: it is none."""
    raw = records.convert(dict[str, Any], records.parse(text), "the network")
    try:
        functions: dict[str, Any] = {name: drawing(name) for name in raw["functions"] if name in DRAWING}
        functions |= {name: _elsewhere for name in raw["functions"] if name in OF_WORKERS}
        adversarial = _adversarial(raw["adversarial"])
        found = Network(
            parameters=tuple(Parameter(**_fields(PARAMETER, each, "a parameter")) for each in raw["parameters"]),
            inputs=tuple(_input(each) for each in raw["inputs"]),
            adversarial=replace(adversarial, draw=functions.pop("adversarial.draw", None)),
            **_fields(NETWORK, raw, "the network"), **functions,
        )  # fmt: skip
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


def _fields(hints: Mapping[str, Any], raw: Any, where: str) -> dict[str, Any]:
    return {name: records.convert(hint, raw[name], f"'{name}' of {where}") for name, hint in hints.items()}


def _input(raw: Any) -> Input:
    found = _fields(INPUT, raw, "an input")
    return Input(**found | {"lengths": {int(axis): name for axis, name in found["lengths"].items()}})


def _adversarial(raw: Any) -> Adversarial:
    where = "the adversarial step"
    isolation = raw["isolation"]
    isolated = Isolation(**_fields(ISOLATION, isolation, "the isolation")) if isolation is not None else None
    return Adversarial(isolation=isolated, **_fields(ADVERSARIAL, raw, where))


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
