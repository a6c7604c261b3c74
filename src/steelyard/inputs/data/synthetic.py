"""One seeded batch of made-up inputs, for pure speed: the same values in every framework."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard.files.paths import cache_folder
from steelyard.inputs.weights import child_generator
from steelyard_worker import tensors

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard_worker.network import Input, Network

METHOD = 1


def synthesise(network: Network, batch: int, seed: int, specification: str = "") -> Path:
    """Return the tensors folder of one batch, {input: (batch, *shape)}, written on the first call.

    A network that draws its own batch is asked for it; `specification`, the hash of what it is, tells such batches apart.
    Otherwise floats are N(0, 1), and integers are uniform below `high`, from 0 for labels (shape ()) and from 1 for
    sequences, whose id 0 is the padding. UserError names an input whose type or bound makes no sense.
    """
    if batch < 1:
        raise UserError(f"A synthetic batch of {batch} samples cannot be made; the batch must be at least 1.")
    recipe: list[Any] = [(each.name, list(each.shape), each.dtype, each.high) for each in network.inputs]
    recipe += [specification] if network.draw else []
    folder = cache_folder() / "data" / "synthetic" / atomic.key("synthetic", METHOD, recipe, batch, seed)
    meta = {"batch": batch, "seed": seed, "method": METHOD}
    return atomic.place(folder, lambda partial: _write(partial, _batch(network, batch, seed), meta))


def _batch(network: Network, batch: int, seed: int) -> dict[str, np.ndarray[Any, Any]]:
    if network.draw is None:
        return {each.name: draw(each, batch, seed) for each in network.inputs}
    drawn = network.draw(child_generator(seed, "synthetic"), batch)
    for each in network.inputs:
        found = drawn.get(each.name, np.empty(0))
        if found.shape != (batch, *each.shape) or found.dtype != np.dtype(each.dtype):
            raise UserError(
                f"The network draws '{each.name}' as {found.dtype} {found.shape}, but names it {each.dtype} "
                f"{(batch, *each.shape)}; one of the two must change."
            )
    return {each.name: drawn[each.name] for each in network.inputs}


def draw(wanted: Input, batch: int, seed: int) -> np.ndarray[Any, Any]:
    """Return (batch, *shape) of one input, from its own seed: the other inputs do not change it."""
    generator = child_generator(seed, f"synthetic:{wanted.name}")
    shape, dtype = (batch, *wanted.shape), np.dtype(wanted.dtype)
    if dtype.kind == "f":
        return generator.standard_normal(shape, dtype=np.float32).astype(dtype, copy=False)
    lowest = 1 if wanted.shape else 0
    if dtype.kind != "i" or wanted.high <= lowest:
        raise UserError(
            f"The input '{wanted.name}' of type {wanted.dtype} and bound {wanted.high} cannot be made up; "
            f"it must be a float, or a whole number with a bound above {lowest}."
        )
    return generator.integers(lowest, wanted.high, shape, dtype=np.int32).astype(dtype, copy=False)


def _write(partial: Path, arrays: dict[str, np.ndarray[Any, Any]], meta: dict[str, int]) -> None:
    tensors.write(partial, arrays, meta)
