"""Cut a traced computation into consecutive stages, so that each can run on a device of its own.

JAX traces the forward pass into a list of operations (a jaxpr). It is cut between two of them, where the work is divided evenly
and few values cross. Values that a stage computes and later stages use are its `outgoing`; their numbers are in that order.
A loop, such as that over the time steps of a recurrent layer, is one operation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, jaxpr_as_fun

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# Places that divide the work this much less evenly than the best one, as a share of all work, are still considered.
UNEVEN = 0.05


@dataclass(frozen=True)
class Stage:
    """Consecutive operations. It reads tensors and arrays of the batch, by name, and values of earlier stages, by number.

    `results`: what it computes of the traced function's results, by place in their flat list. `program` takes the values of
    `tensors`, `inputs` and `incoming`, and returns those of `outgoing` and `results`.
    """

    tensors: tuple[str, ...]
    inputs: tuple[str, ...]
    incoming: tuple[int, ...]
    outgoing: tuple[int, ...]
    results: tuple[int, ...]
    program: Any

    def run(
        self, tensors: Mapping[str, Any], inputs: Mapping[str, Any], incoming: Mapping[int, Any]
    ) -> tuple[dict[int, Any], dict[int, Any]]:
        """Return (outgoing values by number, results by place)."""
        given = [(tensors, self.tensors), (inputs, self.inputs), (incoming, self.incoming)]
        found = jaxpr_as_fun(self.program)(*(values[key] for values, keys in given for key in keys))
        split = len(self.outgoing)
        return dict(zip(self.outgoing, found[:split], strict=True)), dict(zip(self.results, found[split:], strict=True))


def stages(
    function: Callable[..., Any], tensors: Mapping[str, Any], inputs: Mapping[str, Any], parts: int
) -> tuple[list[Stage], Any]:
    """Trace function(tensors, inputs) and cut it; also return the structure of its results."""
    closed, shape = jax.make_jaxpr(function, return_shape=True)(dict(tensors), dict(inputs))
    jaxpr, (of_tensors, of_inputs) = closed.jaxpr, (sorted(tensors), sorted(inputs))
    weights = dict(zip(jaxpr.invars[: len(of_tensors)], of_tensors, strict=True))
    arrays = dict(zip(jaxpr.invars[len(of_tensors) :], of_inputs, strict=True))
    bounds = [0, *places(jaxpr, parts), len(jaxpr.eqns)]
    pieces = [jaxpr.eqns[first:last] for first, last in pairwise(bounds)]
    made_in = {each: part for part, piece in enumerate(pieces) for equation in piece for each in equation.outvars}
    numbers = {variable: number for number, variable in enumerate(made_in)}
    # A result that is not computed, such as a constant, belongs to the last stage.
    ends = [parts - 1 if isinstance(end, Literal) else made_in.get(end, parts - 1) for end in jaxpr.outvars]
    results = [[place for place, where in enumerate(ends) if where == part] for part in range(parts)]
    reads = [
        _read([atom for equation in piece for atom in equation.invars] + [jaxpr.outvars[place] for place in own])
        for piece, own in zip(pieces, results, strict=True)
    ]
    incoming = [[each for each in read if made_in.get(each, part) != part] for part, read in enumerate(reads)]
    crossing = {each for values in incoming for each in values}
    unread = [each for each in weights if not any(each in read for read in reads)]
    found = []
    for part, (piece, read) in enumerate(zip(pieces, reads, strict=True)):
        own = [each for each in read if each in weights] + (unread if part == 0 else [])
        given = [each for each in read if each in arrays]
        outgoing = [each for each in made_in if made_in[each] == part and each in crossing]
        constants = [pair for pair in zip(jaxpr.constvars, closed.consts, strict=True) if pair[0] in read]
        program = Jaxpr(
            [each for each, _ in constants],
            [*own, *given, *incoming[part]],
            [*outgoing, *(jaxpr.outvars[place] for place in results[part])],
            piece,
        )
        found.append(
            Stage(
                tuple(weights[each] for each in own),
                tuple(arrays[each] for each in given),
                tuple(numbers[each] for each in incoming[part]),
                tuple(numbers[each] for each in outgoing),
                tuple(results[part]),
                ClosedJaxpr(program, [value for _, value in constants]),
            )
        )
    return found, jax.tree.structure(shape)


def _read(atoms: Sequence[Any]) -> list[Any]:
    return list(dict.fromkeys(atom for atom in atoms if not isinstance(atom, Literal)))


def places(jaxpr: Any, parts: int) -> list[int]:
    """Return the operations before which the computation is cut."""
    work = [0, *accumulate(operations(equation) for equation in jaxpr.eqns)]
    crossing, found = _crossing_bytes(jaxpr), list[int]()
    for number in range(1, parts):
        first, last = (found[-1] if found else 0) + 1, len(jaxpr.eqns) - (parts - number)
        distance = {place: abs(work[place] / work[-1] - number / parts) for place in range(first, last + 1)}
        nearest = min(distance.values())
        near = [place for place in distance if distance[place] <= nearest + UNEVEN]
        found.append(min(near, key=lambda place: (crossing[place], distance[place])))
    return found


def _crossing_bytes(jaxpr: Any) -> list[int]:
    """Return, for every operation, the bytes of values that are computed before it and used by it or later."""
    made, used = dict[Any, int](), dict[Any, int]()
    for place, equation in enumerate(jaxpr.eqns):
        used |= dict.fromkeys(_read(equation.invars), place)
        made |= dict.fromkeys(equation.outvars, place)
    used |= dict.fromkeys(_read(jaxpr.outvars), len(jaxpr.eqns))
    changes = [0] * (len(jaxpr.eqns) + 2)
    for variable, place in made.items():
        size = math.prod(variable.aval.shape) * getattr(variable.aval.dtype, "itemsize", 1)
        if variable in used:
            changes[place + 1] += size
            changes[used[variable] + 1] -= size
    return list(accumulate(changes))


def operations(equation: Any) -> int:
    """Estimate the arithmetic operations of an equation: products by their sizes, everything else by the size of its results."""
    name, parameters = equation.primitive.name, equation.params
    size = sum(math.prod(variable.aval.shape) for variable in equation.outvars)
    if name == "dot_general":
        ((contracted, _), _) = parameters["dimension_numbers"]
        return 2 * size * math.prod(equation.invars[0].aval.shape[axis] for axis in contracted)
    if name == "conv_general_dilated":
        kernel = equation.invars[1].aval.shape
        return 2 * size * math.prod(kernel) // kernel[parameters["dimension_numbers"].rhs_spec[0]]
    inner = [getattr(value, "jaxpr", value) for value in parameters.values()]
    found = sum(operations(each) for body in inner if hasattr(body, "eqns") for each in body.eqns)
    return max(size, found * parameters.get("length", 1) if name == "scan" else found)


def differentiable(value: Any) -> bool:
    """Return whether a value has a gradient."""
    return bool(jnp.issubdtype(value.dtype, jnp.inexact))
