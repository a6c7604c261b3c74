"""Choose the samples of a prepared data set and their order: seeded and balanced over the classes."""

from typing import Any, TypeVar

import numpy as np

from steelyard.errors import UserError
from steelyard.inputs.data.options import ImageOptions, TextOptions
from steelyard.inputs.data.raw_samples import FileSplit, ImageSplit, Ints, Labels, RawSamples, TextSplit
from steelyard_worker.tensors import Writer

SAMPLES_PER_TEST_SAMPLE = 5  # where there is no official test split, one sample in five is for testing

S = TypeVar("S", ImageSplit, FileSplit, TextSplit)


def choose_samples(samples: RawSamples[S], options: ImageOptions | TextOptions) -> dict[str, tuple[S, Ints]]:
    """Return {"train" and "test": (official split, chosen positions int64 in it)}.

    Without an official test split the test samples are taken from `samples.train`. Data sorted by label is shuffled; other
    data stays in the official order. Limits preserve the proportions of the classes.
    """
    generator = np.random.Generator(np.random.PCG64(options.seed))
    labels = samples.train.labels
    train = _ordered(len(labels), samples.is_sorted, generator)
    if samples.test is None:
        held_out = balanced_mask(labels[train], len(train) // SAMPLES_PER_TEST_SAMPLE)
        # The mask takes the first samples of each class, so the classes are no longer evenly spread over either part.
        train, test = (generator.permutation(train[mask]) for mask in (~held_out, held_out))
    else:
        test = _ordered(len(samples.test.labels), samples.is_sorted, generator)
    test_split = samples.test or samples.train
    chosen = {
        "train": (samples.train, _limited(train, labels, options.train_limit)),
        "test": (test_split, _limited(test, test_split.labels, options.test_limit)),
    }
    for name, (_, positions) in chosen.items():
        if not positions.size:
            title = "training" if name == "train" else name
            raise UserError(f"The {title} split is empty, because the data has only {len(labels):,} samples; add more.")
    return chosen


def describe_samples(samples: RawSamples[S], chosen: dict[str, tuple[S, Ints]]) -> dict[str, Any]:
    """Return the metadata of the chosen samples."""
    counts = {f"{name}_count": len(positions) for name, (_, positions) in chosen.items()}
    return {"verified": samples.verified, **counts}


def add_positions(writer: Writer, chosen: dict[str, tuple[S, Ints]]) -> None:
    """Append `position/train` and `position/test` int32 (N)."""
    for name, (_, positions) in chosen.items():
        writer.add(f"position/{name}", positions.astype(np.int32))


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
