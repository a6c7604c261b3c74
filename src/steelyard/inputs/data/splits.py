"""Choose the samples of a prepared data set and their order: seeded and balanced over the classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import UserError

if TYPE_CHECKING:
    from steelyard.inputs.data.options import ImageOptions, TextOptions
    from steelyard.inputs.data.raw_samples import Ints, Labels, RawSamples

SAMPLES_PER_TEST_SAMPLE = 5  # where there is no official test split, one sample in five is for testing


def split_positions(samples: RawSamples[Any], options: ImageOptions | TextOptions) -> tuple[Ints, Ints]:
    """Return (training, test) positions int64 in the official order.

    Test positions refer to `samples.test`, or to `samples.train` if there is no official test split. Data sorted by
    label is shuffled; other data stays in the official order. Limits preserve the proportions of the classes.
    """
    generator = np.random.Generator(np.random.PCG64(options.seed))
    train = _ordered(len(samples.train.labels), samples.is_sorted, generator)
    labels = samples.train.labels
    if samples.test is None:
        held_out = balanced_mask(labels[train], len(train) // SAMPLES_PER_TEST_SAMPLE)
        # The mask takes the first samples of each class, so the classes are no longer evenly spread over either part.
        train, test = (generator.permutation(train[mask]) for mask in (~held_out, held_out))
        test_labels = labels
    else:
        test_labels = samples.test.labels
        test = _ordered(len(test_labels), samples.is_sorted, generator)
    chosen = _limited(train, labels, options.train_limit), _limited(test, test_labels, options.test_limit)
    for name, positions in zip(("training", "test"), chosen, strict=True):
        if not positions.size:
            raise UserError(f"The {name} split is empty, because the data has only {len(labels):,} samples; add more.")
    return chosen


def balanced_mask(labels: Labels, count: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return a mask of `count` samples: the first of each class, in proportion to the classes (largest remainder)."""
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


def _ordered(count: int, shuffle: bool, generator: np.random.Generator) -> Ints:
    return generator.permutation(count) if shuffle else np.arange(count)


def _limited(positions: Ints, labels: Labels, limit: int) -> Ints:
    return positions[balanced_mask(labels[positions], limit)] if limit else positions
