"""The order of the training samples, the same for every framework: a seeded permutation per epoch, written once."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard.files.paths import cache_folder

Order = np.ndarray[Any, np.dtype[np.int32]]
Lengths = np.ndarray[Any, np.dtype[np.integer[Any]]]

METHOD = 1  # part of the cache key; increase it when a change alters the order


def batch_order(count: int, batch: int, steps: int, seed: int) -> Order:
    """Return int32 (steps, batch): the indices, from 0 to count - 1, of the samples of each training step.

    Each epoch is a new permutation, cut into full batches; the remaining samples are dropped in that epoch. A longer order
    with the same seed begins with the shorter one. UserError: there are fewer samples than one batch needs.
    """
    _check_batch(count, batch)
    generator = np.random.Generator(np.random.PCG64(seed))
    per_epoch = count // batch
    order = np.empty((steps, batch), np.int32)
    for start in range(0, steps, per_epoch):
        epoch = generator.permutation(count)[: per_epoch * batch].reshape(per_epoch, batch)
        order[start : start + per_epoch] = epoch[: steps - start]
    return order


def bucketed_order(lengths: Lengths, batch: int, steps: int, seed: int, buckets: int) -> Order:
    """Return int32 (steps, batch) as `batch_order` does, with samples of like length in every batch.

    lengths: int (count,). The samples, sorted by length, are divided into `buckets` with equally many whole batches, give or take
    one. In each epoch, the samples of a bucket are shuffled before its batches are cut, and then all batches are shuffled. With
    one bucket per batch, a batch has the same samples in every epoch. UserError: there are fewer batches than buckets.
    """
    count = len(lengths)
    _check_batch(count, batch)
    per_epoch = count // batch
    if buckets > per_epoch:
        raise UserError(f"{per_epoch} batches cannot be divided into {buckets} buckets; choose at most {per_epoch}.")
    generator, ranked = np.random.Generator(np.random.PCG64(seed)), np.argsort(lengths, kind="stable")
    parts = np.split(ranked, [place * per_epoch // buckets * batch for place in range(1, buckets)])
    order = np.empty((steps, batch), np.int32)
    for start in range(0, steps, per_epoch):
        shuffled = [generator.permutation(part)[: len(part) // batch * batch].reshape(-1, batch) for part in parts]
        order[start : start + per_epoch] = generator.permutation(np.concatenate(shuffled))[: steps - start]
    return order


def _check_batch(count: int, batch: int) -> None:
    if not 0 < batch <= count:
        raise UserError(f"A batch of {batch} cannot be filled from {count} training samples; choose a smaller batch.")


def write_order(
    count: int, batch: int, steps: int, seed: int, lengths: Lengths | None = None, buckets: int = 1
) -> Path:
    """Return the tensors folder that holds `order`; the first call writes it. Several buckets need `lengths` (count,)."""
    several = () if buckets == 1 or lengths is None else (buckets, hashlib.sha256(lengths.tobytes()).hexdigest())
    folder = cache_folder() / "data" / "orders" / atomic.key("order", METHOD, count, batch, steps, seed, *several)
    meta = {"count": count, "batch": batch, "steps": steps, "seed": seed, "buckets": buckets, "method": METHOD}

    def order() -> Order:
        if buckets == 1 or lengths is None:
            return batch_order(count, batch, steps, seed)
        return bucketed_order(lengths, batch, steps, seed, buckets)

    return atomic.place_tensors(folder, lambda: {"order": order()}, meta)
