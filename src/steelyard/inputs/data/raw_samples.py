"""Samples on disk between an official layout and the prepared arrays: written once, then read in any order.

Rows are stored in the order in which they were read; every split knows its rows in official order.
"""

import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Self, TypeVar
from zipfile import BadZipFile, ZipFile

import numpy as np

from steelyard.inputs.data.damage import check_regular, refusing
from steelyard.inputs.data.inventory import shown

Ints = np.ndarray[Any, np.dtype[np.int64]]
Labels = np.ndarray[Any, np.dtype[np.int32]]
Ids = np.ndarray[Any, np.dtype[np.int32]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]

MAX_IMAGE_BYTES = 1 << 26  # of one encoded image; the largest of ImageNet has 16 MB


@dataclass(frozen=True)
class ImageSplit:
    """`records` uint8 (N, 1 + C*H*W), label byte first; `rows` int64 (N): the records in official order."""

    records: Bytes
    rows: Ints

    @property
    def labels(self) -> Labels:
        """Labels int32 (N) in official order."""
        return np.asarray(self.records[self.rows, 0], np.int32)

    def take(self, positions: Ints) -> Bytes:
        """Return the pixels uint8 (n, C*H*W) at positions of the official order."""
        return self.records[self.rows[positions], 1:]


@dataclass(frozen=True)
class FileSplit:
    """Image files of a folder or of an open archive, in official order: name i is `names[ends[i - 1] : ends[i]]`."""

    path: Path
    archive: ZipFile | None
    names: Bytes
    ends: Ints
    labels: Labels

    def name(self, position: int) -> str:
        """Return the name of one file, with forward slashes."""
        start = self.ends[position - 1] if position else 0
        return os.fsdecode(self.names[start : self.ends[position]].tobytes())

    def read(self, position: int) -> bytes:
        """Return the content of one file; threads may call this. UserError: it is damaged, too large, or no regular file."""
        name = self.name(position)
        if not self.archive:
            check_regular(self.path / name, MAX_IMAGE_BYTES)
            return (self.path / name).read_bytes()
        # An encrypted member is a RuntimeError, one that was packed by an unknown method a NotImplementedError.
        kinds = (BadZipFile, EOFError, zlib.error, RuntimeError, NotImplementedError)
        with refusing(f"{self.path}: {shown(name)} is damaged or cannot be unpacked", *kinds):
            return self.archive.read(name)


@dataclass(frozen=True)
class TextSplit:
    """Concatenated token lists: review i is `ids[starts[i] : starts[i] + lengths[i]]`, in official order."""

    ids: Ids
    starts: Ints
    lengths: Ints
    labels: Labels

    def review(self, position: int) -> Ids:
        """Return the ids int32 of one review."""
        return self.ids[self.starts[position] : self.starts[position] + self.lengths[position]]


S = TypeVar("S", ImageSplit, FileSplit, TextSplit)


@dataclass(frozen=True)
class RawSamples(Generic[S]):
    """All samples of a layout. If `test` is None, there is no official test split, and one is made during preparation.

    words[i] belongs to id i. ranked: ids are frequency ranks from 1. is_sorted: by label, so the samples must be
    shuffled. verified: see `Source.verified`, updated after the content was read.
    """

    train: S
    test: S | None
    verified: str
    is_sorted: bool
    words: tuple[str, ...] = ()
    ranked: bool = False


class Spool:
    """A temporary append-only file of one dtype; `finish` maps it read-only."""

    def __init__(self, path: Path, dtype: Any) -> None:
        self._path = path
        self._dtype = np.dtype(dtype)
        self._file = path.open("wb")
        self.count = 0

    def __enter__(self) -> Self:
        """Return the spool; the end of the block closes the file."""
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, values: np.ndarray[Any, Any]) -> None:
        """Append the values' bytes (C order)."""
        flat = np.ascontiguousarray(values, self._dtype).reshape(-1)
        self._file.write(flat.data)
        self.count += flat.size

    def finish(self) -> np.ndarray[Any, Any]:
        """Close the file and return it as a one-dimensional array."""
        self._file.close()
        if not self.count:
            return np.zeros(0, self._dtype)
        return np.memmap(self._path, dtype=self._dtype, mode="r")
