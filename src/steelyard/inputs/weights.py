"""Seeded initial values of every parameter, in canonical layout: generated once here, then loaded by every framework."""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.errors import UserError, nearest
from steelyard.files import atomic
from steelyard.files.paths import cache_folder
from steelyard_worker.network import Parameter

Block = np.ndarray[Any, np.dtype[np.float32]]
Values = float | np.ndarray[Any, np.dtype[np.float64]]
Fill = Callable[[np.random.Generator, Block], None]

METHOD = 1  # part of the cache key; increase it when a change alters a value
SPREAD = 0.25  # of values around a constant: variances around 1 stay positive
BLOCK_ELEMENTS = 1 << 21  # 8 MiB of float32; large tensors are generated in blocks to limit memory


def initialise(parameters: Sequence[Parameter], seed: int) -> Path:
    """Return a tensors folder with one float32 array per parameter; the first call writes it.

    The values depend on `seed` and on the parameter's name, shape and distribution, not on the order of the parameters.
    UserError names a parameter that is declared twice, or whose distribution is unknown or does not fit its shape.
    """
    declared = [(parameter.name, tuple(parameter.shape), parameter.initial) for parameter in parameters]
    fills = check(parameters)
    folder = cache_folder() / "weights" / atomic.key("weights", METHOD, seed, declared)

    def write(unfinished: Path) -> None:
        atomic.check_space(unfinished, "The file of initial weights", sum(4 * each.count for each in parameters))
        meta = {"seed": seed, "method": METHOD, "numpy": np.__version__}
        with atomic.tensors_writer(unfinished, meta) as writer:
            for name, shape, fill in fills:
                writer.begin(name, "<f4", shape)
                for block in _blocks(shape, fill, child_generator(seed, name)):
                    writer.extend(block)

    return atomic.place(folder, write)


def as_if_trained(parameters: Sequence[Parameter]) -> tuple[Parameter, ...]:
    """Return the parameters with values around each constant instead of the constant itself.

    In a new network running means and shifts are 0, running variances and scales are 1. An inference that swapped, ignored or did
    not load them would give the same outputs.
    """
    return tuple(replace(each, initial=each.initial.replace("constant:", "around:")) for each in parameters)


def check(parameters: Sequence[Parameter]) -> list[tuple[str, tuple[int, ...], Fill | None]]:
    """Return name, shape and the function that fills each parameter, without making a value. UserError as in `initialise`."""
    repeated = [name for name, count in Counter(parameter.name for parameter in parameters).items() if count > 1]
    if repeated:
        raise UserError(f"The parameter '{min(repeated)}' is declared twice; give every parameter a unique name.")
    shapes = [(parameter, tuple(parameter.shape)) for parameter in parameters]
    return [(each.name, shape, _find_fill(each.name, shape, each.initial)) for each, shape in shapes]


def child_generator(seed: int, name: str) -> np.random.Generator:
    """Return the generator of one tensor: PCG64, seeded by the SHA-256 of seed and canonical name."""
    digest = hashlib.sha256(f"{seed}:{name}".encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little")))


def fans(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return (fan_in, fan_out) of a dense (out, in), LSTM (4H, in) or convolution (O, I, kh, kw) kernel."""
    receptive = math.prod(shape[2:])
    return shape[1] * receptive, shape[0] * receptive


def orthogonal(shape: tuple[int, ...], generator: np.random.Generator) -> Block:
    """Return a (rows, columns) matrix whose shorter side is orthonormal.

    It is the Q of a float64 QR decomposition of a Gaussian (larger side, smaller side), with signs fixed by diag(R) so
    that the matrix is uniform over the orthogonal group (Mezzadri 2007), rounded to float32. For a recurrent kernel
    `w_hh` (4H, H) the columns are orthonormal over all four gates together: the transpose of what Keras'
    `orthogonal` gives for its (H, 4H) recurrent kernel, not one orthogonal block per gate.
    """
    rows, columns = shape[0], math.prod(shape[1:])
    gaussian = generator.standard_normal((max(rows, columns), min(rows, columns)))
    q, r = np.linalg.qr(gaussian)
    q *= np.where(np.diagonal(r) < 0, -1.0, 1.0)
    return np.ascontiguousarray(q if rows >= columns else q.T, dtype=np.float32).reshape(shape)


def _blocks(shape: tuple[int, ...], fill: Fill | None, generator: np.random.Generator) -> Iterator[Block]:
    if fill is None:
        yield orthogonal(shape, generator)
        return
    size = math.prod(shape)
    buffer = np.empty(min(size, BLOCK_ELEMENTS), np.float32)
    for start in range(0, size, BLOCK_ELEMENTS):
        block = buffer[: min(BLOCK_ELEMENTS, size - start)]
        fill(generator, block)
        yield block


def _find_fill(name: str, shape: tuple[int, ...], initial: str) -> Fill | None:
    """Return the function that fills the next block; None for an orthogonal matrix, which cannot be made in blocks."""
    kind, _, text = initial.partition(":")
    if kind not in _DISTRIBUTIONS:
        raise UserError(
            f"Parameter '{name}' has unknown initial value '{initial}'.{nearest(kind, list(_DISTRIBUTIONS))}"
        )
    try:
        return _DISTRIBUTIONS[kind](shape, float(text) if text else None)
    except (ValueError, TypeError, IndexError, ZeroDivisionError) as error:
        raise UserError(
            f"Parameter '{name}' of shape {list(shape)} cannot be initialised as '{initial}' ({error}); "
            "check the shape and the number after the colon."
        ) from error


def _normal(std: float, generator: np.random.Generator, block: Block) -> None:
    generator.standard_normal(out=block, dtype=np.float32)
    block *= np.float32(std)


def _uniform(bound: float, generator: np.random.Generator, block: Block) -> None:
    generator.random(out=block, dtype=np.float32)
    block -= np.float32(0.5)
    block *= np.float32(2 * bound)


def _around(value: float, generator: np.random.Generator, block: Block) -> None:
    _uniform(SPREAD, generator, block)
    block += np.float32(value)


def _trunc_normal(std: float, generator: np.random.Generator, block: Block) -> None:
    generator.standard_normal(out=block, dtype=np.float32)
    outside = np.flatnonzero(np.abs(block) > 2)
    while outside.size:
        fresh = generator.standard_normal(outside.size, dtype=np.float32)
        block[outside] = fresh
        outside = outside[np.abs(fresh) > 2]
    block *= np.float32(std)


def _values(values: Values, _: np.random.Generator, block: Block) -> None:
    block[:] = values


def _forget_one(shape: tuple[int, ...]) -> Values:
    if len(shape) != 1 or shape[0] % 4 or shape[0] > BLOCK_ELEMENTS:
        message = "the shape must be a bias of four gate blocks"
        raise ValueError(message)
    return np.repeat([0.0, 1.0, 0.0, 0.0], shape[0] // 4)


def _ramp(shape: tuple[int, ...], top: float) -> Values:
    """Return values from -top/4 (first element) to top (last), evenly spaced: most are above zero, and all are different."""
    if len(shape) != 1 or shape[0] > BLOCK_ELEMENTS:
        message = "the shape must be a vector"
        raise ValueError(message)
    return np.linspace(-top / 4, top, shape[0])


def _orthogonal(shape: tuple[int, ...]) -> None:
    if len(shape) < 2:
        message = "the shape must be a matrix"
        raise ValueError(message)


def _required(number: float | None) -> float:
    if number is None or not math.isfinite(number):
        message = "a finite number is required after the colon"
        raise ValueError(message)
    return number


# Each takes the shape and the number after the colon, or None.
_DISTRIBUTIONS: dict[str, Callable[[tuple[int, ...], float | None], Fill | None]] = {
    "kaiming_normal_fan_out": lambda shape, _: partial(_normal, math.sqrt(2 / fans(shape)[1])),
    "glorot_uniform": lambda shape, gain: partial(_uniform, (gain or 1.0) * math.sqrt(6 / sum(fans(shape)))),
    "lecun_uniform_in": lambda shape, fan_in: partial(_uniform, 1 / math.sqrt(fan_in or fans(shape)[0])),
    "uniform": lambda _, bound: partial(_uniform, _required(bound)),
    "normal": lambda _, std: partial(_normal, _required(std)),
    "trunc_normal": lambda _, std: partial(_trunc_normal, _required(std)),
    "constant": lambda _, value: partial(_values, _required(value)),
    "around": lambda _, value: partial(_around, _required(value)),
    "forget_one": lambda shape, _: partial(_values, _forget_one(shape)),
    "ramp": lambda shape, top: partial(_values, _ramp(shape, _required(top))),
    "orthogonal": lambda shape, _: _orthogonal(shape),
}
