"""Seeded initial values of every parameter, in canonical layout: drawn once here, loaded by every framework.

Distributions as in section 2.5 of the workload specification; `METHOD` changes whenever a value would.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import UserError, nearest
from steelyard.files import atomic
from steelyard.files.paths import cache_folder
from steelyard_worker.tensors import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from steelyard_worker.network import Parameter

    Block = np.ndarray[Any, np.dtype[np.float32]]
    Draw = Callable[[np.random.Generator, Block], None]

METHOD = 1
BLOCK_ELEMENTS = 1 << 21  # 8 MiB of float32: memory stays flat however large the network is


def initialise(parameters: Sequence[Parameter], seed: int) -> Path:
    """Return a tensors folder with one float32 array per parameter; drawn on the first call, reused after.

    The same (parameters, seed) give the same values in any order of the parameters. UserError names the
    parameter whose distribution is not known or does not fit its shape.
    """
    recipes = [(each.name, tuple(each.shape), each.initial) for each in parameters]
    twice = {name for name, _, _ in recipes if sum(name == other for other, _, _ in recipes) > 1}
    if twice:
        raise UserError(f"The parameter '{min(twice)}' is declared twice; every canonical name must be unique.")
    draws = [(name, shape, _recipe(name, shape, initial)) for name, shape, initial in recipes]
    folder = cache_folder() / "weights" / atomic.key("weights", METHOD, seed, recipes)

    def fill(partial: Path) -> None:
        writer = Writer(partial, {"seed": seed, "method": METHOD, "numpy": np.__version__})
        for name, shape, draw in draws:
            writer.begin(name, "<f4", shape)
            for block in _blocks(shape, draw, child_generator(seed, name)):
                writer.extend(block)
        writer.close()

    return atomic.place(folder, fill)


def child_generator(seed: int, name: str) -> np.random.Generator:
    """Return the generator of one tensor: PCG64 seeded by the SHA-256 of seed and canonical name."""
    digest = hashlib.sha256(f"{seed}:{name}".encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little")))


def fans(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return (fan_in, fan_out) of a dense (out, in), LSTM (4H, in) or convolution (O, I, kh, kw) kernel."""
    receptive = math.prod(shape[2:])
    return shape[1] * receptive, shape[0] * receptive


def orthogonal(shape: tuple[int, ...], generator: np.random.Generator) -> Block:
    """Return a (rows, columns) matrix whose shorter side is orthonormal.

    QR in float64 of a Gaussian (larger side, smaller side), the signs fixed by diag(R) so that the matrix
    is uniform over the orthogonal group (Mezzadri 2007), rounded to float32. For a recurrent kernel
    `w_hh` (4H, H) the columns are orthonormal over all four gates together: the transpose of what Keras'
    `orthogonal` gives for its (H, 4H) recurrent kernel, not one orthogonal block per gate.
    """
    rows, columns = shape[0], math.prod(shape[1:])
    gaussian = generator.standard_normal((max(rows, columns), min(rows, columns)))
    q, r = np.linalg.qr(gaussian)
    q *= np.where(np.diagonal(r) < 0, -1.0, 1.0)
    return np.ascontiguousarray(q if rows >= columns else q.T, dtype=np.float32).reshape(shape)


def _blocks(shape: tuple[int, ...], draw: Draw | None, generator: np.random.Generator) -> Iterator[Block]:
    if draw is None:
        yield orthogonal(shape, generator)
        return
    size = math.prod(shape)
    buffer = np.empty(min(size, BLOCK_ELEMENTS), np.float32)
    for start in range(0, size, BLOCK_ELEMENTS):
        block = buffer[: min(BLOCK_ELEMENTS, size - start)]
        draw(generator, block)
        yield block


def _recipe(name: str, shape: tuple[int, ...], initial: str) -> Draw | None:
    """Return the function that fills the next block; None for a matrix that must be drawn whole."""
    kind, _, text = initial.partition(":")
    if kind not in _RECIPES:
        raise UserError(f"Parameter '{name}' has unknown initial value '{initial}'.{nearest(kind, list(_RECIPES))}")
    try:
        return _RECIPES[kind](shape, float(text) if text else None)
    except (ValueError, TypeError, IndexError, ZeroDivisionError) as error:
        raise UserError(
            f"Parameter '{name}' of shape {list(shape)} cannot start as '{initial}' ({error}); "
            "check the shape and the number after the colon."
        ) from error


def _normal(std: float) -> Draw:
    def draw(generator: np.random.Generator, block: Block) -> None:
        generator.standard_normal(out=block, dtype=np.float32)
        block *= np.float32(std)

    return draw


def _uniform(bound: float) -> Draw:
    def draw(generator: np.random.Generator, block: Block) -> None:
        generator.random(out=block, dtype=np.float32)
        block -= np.float32(0.5)
        block *= np.float32(2 * bound)

    return draw


def _trunc_normal(std: float) -> Draw:
    def draw(generator: np.random.Generator, block: Block) -> None:
        generator.standard_normal(out=block, dtype=np.float32)
        outside = np.flatnonzero(np.abs(block) > 2)
        while outside.size:
            fresh = generator.standard_normal(outside.size, dtype=np.float32)
            block[outside] = fresh
            outside = outside[np.abs(fresh) > 2]
        block *= np.float32(std)

    return draw


def _constant(value: float) -> Draw:
    def draw(generator: np.random.Generator, block: Block) -> None:  # noqa: ARG001 - one signature for all
        block.fill(value)

    return draw


def _forget_one(shape: tuple[int, ...]) -> Draw:
    if len(shape) != 1 or shape[0] % 4 or shape[0] > BLOCK_ELEMENTS:
        message = "a bias of four gate blocks is needed"
        raise ValueError(message)
    quarter = shape[0] // 4

    def draw(generator: np.random.Generator, block: Block) -> None:  # noqa: ARG001 - one signature for all
        block.fill(0.0)
        block[quarter : 2 * quarter] = 1.0

    return draw


def _ramp(shape: tuple[int, ...], top: float) -> Draw:
    """Evenly from -top/4 for the first element to top for the last: some channels mostly above zero, none alike."""
    if len(shape) != 1 or shape[0] > BLOCK_ELEMENTS:
        message = "a vector is needed"
        raise ValueError(message)

    def draw(generator: np.random.Generator, block: Block) -> None:  # noqa: ARG001 - one signature for all
        block[:] = np.linspace(-top / 4, top, shape[0])

    return draw


def _whole_matrix(shape: tuple[int, ...]) -> None:
    if len(shape) < 2:
        message = "a matrix is needed"
        raise ValueError(message)


def _given(number: float | None) -> float:
    if number is None or not math.isfinite(number):
        message = "a finite number is needed after the colon"
        raise ValueError(message)
    return number


# Each takes (shape, number after the colon or None).
_RECIPES: dict[str, Callable[[tuple[int, ...], float | None], Draw | None]] = {
    "kaiming_normal_fan_out": lambda shape, _: _normal(math.sqrt(2 / fans(shape)[1])),
    "glorot_uniform": lambda shape, gain: _uniform((gain or 1.0) * math.sqrt(6 / sum(fans(shape)))),
    "lecun_uniform_in": lambda shape, fan_in: _uniform(1 / math.sqrt(fan_in or fans(shape)[0])),
    "uniform": lambda _, bound: _uniform(_given(bound)),
    "normal": lambda _, std: _normal(_given(std)),
    "trunc_normal": lambda _, std: _trunc_normal(_given(std)),
    "constant": lambda _, value: _constant(_given(value)),
    "forget_one": lambda shape, _: _forget_one(shape),
    "ramp": lambda shape, top: _ramp(shape, _given(top)),
    "orthogonal": lambda shape, _: _whole_matrix(shape),
}
