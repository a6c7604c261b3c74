"""The order in which every framework sees the samples: seeded permutations, epoch by epoch, made once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard.files.paths import cache_folder
from steelyard_worker import tensors

if TYPE_CHECKING:
    from pathlib import Path

METHOD = 1


def batch_order(count: int, batch: int, steps: int, seed: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Return int32 (steps, batch): the samples, of 0..count-1, of each training step.

    Each epoch is a fresh permutation cut into whole batches; the samples left over are dropped in that epoch.
    More steps with the same seed begin with the same steps. UserError when not even one batch can be filled.
    """
    if not 0 < batch <= count:
        raise UserError(f"A batch of {batch} cannot be filled from {count} training samples; choose a smaller batch.")
    generator = np.random.Generator(np.random.PCG64(seed))
    per_epoch = count // batch
    order = np.empty((steps, batch), np.int32)
    for start in range(0, steps, per_epoch):
        epoch = generator.permutation(count)[: per_epoch * batch].reshape(per_epoch, batch)
        order[start : start + per_epoch] = epoch[: steps - start]
    return order


def write_order(count: int, batch: int, steps: int, seed: int) -> Path:
    """Return the tensors folder that holds `order`, written on the first call."""
    folder = cache_folder() / "data" / "orders" / atomic.key("order", METHOD, count, batch, steps, seed)
    meta = {"count": count, "batch": batch, "steps": steps, "seed": seed, "method": METHOD}
    return atomic.place(folder, lambda partial: _write(partial, batch_order(count, batch, steps, seed), meta))


def _write(partial: Path, order: np.ndarray[Any, Any], meta: dict[str, int]) -> None:
    tensors.write(partial, {"order": order}, meta)
