"""The partner of an array on the other side, by the map of tensors: gradients, updates and statistics follow their tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from steelyard.ports.given_inputs import Array
    from steelyard.ports.mapping import Pair


class Files(Mapping[str, "Array"]):
    """Arrays by name that are read when they are asked for, as float64: those of a whole model need not fit into memory."""

    def __init__(self, paths: Mapping[str, str]) -> None:
        self.paths = paths

    def __getitem__(self, name: str) -> Array:
        found: Array = np.load(self.paths[name], allow_pickle=False).astype(np.float64)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.paths)

    def __len__(self) -> int:
        return len(self.paths)


class Partners(NamedTuple):
    """Two arrays that belong together, both in the layout of the left side, and the tensors that they belong to."""

    left_name: str
    right_name: str
    left: Array
    right: Array


def partners(pair: Pair, left: Mapping[str, Array], right: Mapping[str, Array]) -> Iterator[Partners]:
    """Yield the arrays of one pair of the map; of a fused tensor its parts, of a sum each summand with the whole."""
    if pair.is_sum:
        whole = np.concatenate([right[name].reshape(-1) for name in pair.right])
        for name in pair.left:
            yield Partners(name, pair.right[0], left[name].reshape(-1), pair.transform.reverse(whole, whole.shape))
    elif len(pair.left) > 1:
        pieces = np.split(right[pair.right[0]], len(pair.left), pair.along)
        for name, piece in zip(pair.left, pieces, strict=True):
            yield Partners(name, pair.right[0], left[name], pair.transform.apply(np.ascontiguousarray(piece)))
    else:
        pieces = (
            np.split(left[pair.left[0]], len(pair.right), pair.along) if len(pair.right) > 1 else [left[pair.left[0]]]
        )
        for name, piece in zip(pair.right, pieces, strict=True):
            yield Partners(pair.left[0], name, piece, pair.transform.reverse(right[name], piece.shape))


def paired(pairs: Iterable[Pair], left: Mapping[str, Array], right: Mapping[str, Array]) -> Iterator[Partners]:
    """Yield the arrays of all pairs of the map that both sides have."""
    for pair in pairs:
        if all(name in left for name in pair.left) and all(name in right for name in pair.right):
            yield from partners(pair, left, right)


def given_to_right(pair: Pair, left: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Array]:
    """Return the left side's arrays of a pair as those of the right side. `shapes`: of the tensors of the right side.

    Of summands the first one is given: gradients of both are equal.
    """
    first = left[pair.left[0]]
    if pair.is_sum:
        parts = np.split(pair.transform.apply(first.reshape(-1)), len(pair.right))
        return {name: part.reshape(shapes[name]) for name, part in zip(pair.right, parts, strict=True)}
    if len(pair.left) > 1:
        shape = list(shapes[pair.right[0]])
        shape[pair.along] //= len(pair.left)
        pieces = [pair.transform.reverse(left[name], tuple(shape)) for name in pair.left]
        return {pair.right[0]: np.concatenate(pieces, pair.along)}
    parts = np.split(first, len(pair.right), pair.along) if len(pair.right) > 1 else [first]
    return {
        name: pair.transform.apply(np.ascontiguousarray(part)) for name, part in zip(pair.right, parts, strict=True)
    }
