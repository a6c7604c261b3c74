"""Which samples a prepared data set has, in which order: seeded, balanced positions in the official order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import UserError

if TYPE_CHECKING:
    from steelyard.inputs.data.request import ImageOptions, TextOptions
    from steelyard.inputs.data.tables import Ints, Labels, Table

TEST_SHARE = 5  # one sample in five, where there is no official test split


def choose(table: Table[Any], options: ImageOptions | TextOptions) -> tuple[Ints, Ints]:
    """Return (training, test) positions int64.

    Training positions count in `table.train`; test positions too, where there is no official test split. Data
    sorted by label is shuffled, the rest keeps the official order; limits keep the classes' shares.
    """
    generator = np.random.Generator(np.random.PCG64(options.seed))
    train = _arrange(len(table.train.labels), table.is_sorted, generator)
    labels = table.train.labels
    if table.test is None:
        held_out = take_balanced(labels[train], len(train) // TEST_SHARE)
        # What is left begins with the classes whose share was full first, so both parts are shuffled again.
        train, test = (generator.permutation(train[mask]) for mask in (~held_out, held_out))
        test_labels = labels
    else:
        test_labels = table.test.labels
        test = _arrange(len(test_labels), table.is_sorted, generator)
    chosen = _limit(train, labels, options.train_limit), _limit(test, test_labels, options.test_limit)
    for name, positions in zip(("training", "test"), chosen, strict=True):
        if not positions.size:
            raise UserError(f"The {name} split is empty: the data has only {len(labels):,} samples.")
    return chosen


def take_balanced(labels: Labels, count: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return a mask of the first samples of each class, `count` in all, shared out by largest remainder."""
    if count >= len(labels):
        return np.ones(len(labels), bool)
    classes, inverse, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    exact = sizes * count / max(len(labels), 1)
    quotas = np.floor(exact).astype(np.int64)
    largest = np.argsort(quotas - exact, kind="stable")
    quotas[largest[: count - quotas.sum()]] += 1
    mask = np.zeros(len(labels), bool)
    for index in range(len(classes)):
        mask[np.flatnonzero(inverse == index)[: quotas[index]]] = True
    return mask


def _arrange(count: int, shuffle: bool, generator: np.random.Generator) -> Ints:
    return generator.permutation(count) if shuffle else np.arange(count)


def _limit(positions: Ints, labels: Labels, limit: int) -> Ints:
    return positions[take_balanced(labels[positions], limit)] if limit else positions
