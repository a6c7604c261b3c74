"""Seeded batches of random inputs, the same values in every framework: for pure speed measurements, and for certificates."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard.files.paths import cache_folder
from steelyard.inputs.weights import child_generator
from steelyard_worker.network import Input, Network

Arrays = dict[str, np.ndarray[Any, Any]]

METHOD = 1  # part of the cache key; increase it when a change alters a value


def synthesise(network: Network, batch: int, seed: int, specification: str = "") -> Path:
    """Return the tensors folder of one batch, {input: (batch, *shape)}; the first call writes it.

    If the network has its own generator of batches, that is used, and `specification`, the hash of the workload's
    specification, is part of the cache key. Otherwise floats are N(0, 1) and integers are uniform below `high`: from 0
    for labels (shape ()), and from 1 for sequences, because id 0 is padding. UserError names an input whose type or
    bound is invalid.
    """
    if batch < 1:
        raise UserError(f"A synthetic batch cannot have {batch} samples; the batch size must be at least 1.")
    recipe: list[Any] = [
        (declared.name, list(declared.shape), declared.dtype, declared.high) for declared in network.inputs
    ]
    recipe += [specification] if network.draw else []
    folder = cache_folder() / "data" / "synthetic" / atomic.key("synthetic", METHOD, recipe, batch, seed)
    meta = {"batch": batch, "seed": seed, "method": METHOD}
    return atomic.place_tensors(folder, lambda: _random_batch(network, batch, seed), meta)


def synthesise_set(network: Network, count: int, seed: int, specification: str) -> Path:
    """Return the tensors folder of `count` training samples in the form of prepared data, without test samples.

    They are drawn by the network's `draw_set`, or as a synthetic batch of that size; the first call writes them. Arguments and
    errors as for `synthesise`.
    """
    folder = cache_folder() / "data" / "synthetic" / atomic.key("set", METHOD, specification, count, seed)

    def arrays() -> Arrays:
        draw = network.draw_set
        drawn = _drawn(network, draw, count, seed, "set") if draw else _random_batch(network, count, seed)
        train = {f"train/{name}": array for name, array in drawn.items()}
        test = {f"test/{name}": array[:0] for name, array in drawn.items()}
        return {**train, **test, "position/train": np.arange(count, dtype=np.int32)}

    meta = {"data": "synthetic", "train_count": count, "test_count": 0, "seed": seed, "method": METHOD}
    return atomic.place_tensors(folder, arrays, meta)


def check_inputs(network: Network, batch: int, seed: int) -> None:
    """Check that the inputs of a network can be generated. UserError as in `synthesise`.

    A network's own generator is called; other inputs are checked from their declarations.
    """
    if network.draw:
        _random_batch(network, batch, seed)
        return
    for declared in network.inputs:
        _check_input(declared)


def synthesise_adversarial(network: Network, batch: int, seed: int, specification: str) -> Path:
    """Return the tensors folder of the network's adversarial batch (`Adversarial`); the first call writes it.

    `specification`, the hash of the workload's specification, is part of the cache key. UserError as for `synthesise`.
    """
    folder = cache_folder() / "data" / "synthetic" / atomic.key("adversarial", METHOD, specification, batch, seed)
    meta = {"batch": batch, "seed": seed, "method": METHOD}
    return atomic.place_tensors(folder, lambda: _adversarial_batch(network, batch, seed), meta)


def _adversarial_batch(network: Network, batch: int, seed: int) -> Arrays:
    if network.adversarial.draw:
        return _drawn(network, network.adversarial.draw, batch, seed, "adversarial")
    return {
        declared.name: _extreme_input(declared, batch, seed, network.adversarial.scale) for declared in network.inputs
    }


def _extreme_input(declared: Input, batch: int, seed: int, scale: float) -> np.ndarray[Any, Any]:
    array = random_input(declared, batch, seed + 1)
    if array.dtype.kind == "f":
        return np.asarray(array * array.dtype.type(scale))
    return np.where(array % 2, declared.high - 1, 1 if declared.shape else 0).astype(array.dtype)


def _random_batch(network: Network, batch: int, seed: int) -> Arrays:
    if network.draw is None:
        return {declared.name: random_input(declared, batch, seed) for declared in network.inputs}
    return _drawn(network, network.draw, batch, seed, "synthetic")


def _drawn(
    network: Network, draw: Callable[[np.random.Generator, int], Arrays], batch: int, seed: int, name: str
) -> Arrays:
    try:
        arrays = draw(child_generator(seed, name), batch)
    except UserError:  # of the user's code, which runs in another process
        raise
    except Exception as error:  # the sizes are the user's, and can make it raise anything
        message = " ".join(str(error).split())
        sentence = f"network.py cannot draw a batch of {batch} at these sizes: {type(error).__name__}: {message}."
        raise UserError(sentence) from None
    for declared in network.inputs:
        array = arrays.get(declared.name, np.empty(0))
        if array.shape != (batch, *declared.shape) or array.dtype != np.dtype(declared.dtype):
            raise UserError(
                f"The network generates '{declared.name}' as {array.dtype} {array.shape}, but declares it as "
                f"{declared.dtype} {(batch, *declared.shape)}; change one of the two."
            )
    return {declared.name: arrays[declared.name] for declared in network.inputs}


def random_input(declared: Input, batch: int, seed: int) -> np.ndarray[Any, Any]:
    """Return (batch, *shape) of one input. Each input has its own seed, so that it does not depend on the others."""
    generator = child_generator(seed, f"synthetic:{declared.name}")
    dtype, lowest = _check_input(declared)
    shape = (batch, *declared.shape)
    if dtype.kind == "f":
        return generator.standard_normal(shape, dtype=np.float32).astype(dtype, copy=False)
    return generator.integers(lowest, declared.high, shape, dtype=np.int32).astype(dtype, copy=False)


def _check_input(declared: Input) -> tuple[np.dtype[Any], int]:
    """Return the type of an input and the lowest whole number in it. UserError: it cannot be generated."""
    lowest = 1 if declared.shape else 0
    try:
        dtype = np.dtype(declared.dtype)
    except TypeError:
        dtype = np.dtype(object)
    if dtype.kind not in "if" or (dtype.kind == "i" and declared.high <= lowest):
        raise UserError(
            f"The input '{declared.name}' of type {declared.dtype} and bound {declared.high} cannot be generated; "
            f"it must be a float, or a whole number with a bound above {lowest}."
        )
    return dtype, lowest
