"""The arrays on which both sides compute: read from files, or drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from steelyard.ports.definition import InputSpec, Port

Array = np.ndarray[Any, Any]
KINDS = "iufb"


def arrays(port: Port, specs: Iterable[InputSpec]) -> dict[str, Array]:
    """Return inputs or targets by name. UserError: a file holds no array of numbers, or a dtype is unknown."""
    return {spec.name: _from_file(port.folder / spec.file) if spec.file else _drawn(spec) for spec in specs}


def _from_file(path: Path) -> Array:
    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise UserError(f"{path} is not an array of numbers that NumPy has saved ({error}).") from None
    if not isinstance(found, np.ndarray) or found.dtype.kind not in KINDS:
        raise UserError(f"{path} does not hold one array of numbers. Save one with numpy.save.")
    return found


def _drawn(spec: InputSpec) -> Array:
    try:
        dtype = np.dtype(spec.dtype)
    except TypeError:
        raise UserError(f"The dtype '{spec.dtype}' of '{spec.name}' is unknown. Use one such as float32.") from None
    generator = np.random.default_rng(spec.seed)
    if dtype.kind == "b":
        return generator.integers(0, 2, spec.shape).astype(bool)
    if dtype.kind in "iu":
        return generator.integers(int(spec.low), int(spec.high), spec.shape).astype(dtype)
    return generator.uniform(spec.low, spec.high, spec.shape).astype(dtype)
