"""The order of the training samples, the same for every framework: a seeded permutation per epoch, written once."""

from pathlib import Path
from typing import Any

import numpy as np

from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard.files.paths import cache_folder

METHOD = 1  # part of the cache key; increase it when a change alters the order


def batch_order(count: int, batch: int, steps: int, seed: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Return int32 (steps, batch): the indices, from 0 to count - 1, of the samples of each training step.

    Each epoch is a new permutation, cut into full batches; the remaining samples are dropped in that epoch. A longer order
    with the same seed begins with the shorter one. UserError: there are fewer samples than one batch needs.
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
    """Return the tensors folder that holds `order`; the first call writes it."""
    folder = cache_folder() / "data" / "orders" / atomic.key("order", METHOD, count, batch, steps, seed)
    meta = {"count": count, "batch": batch, "steps": steps, "seed": seed, "method": METHOD}
    return atomic.place_tensors(folder, lambda: {"order": batch_order(count, batch, steps, seed)}, meta)
