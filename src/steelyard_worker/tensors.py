"""Named arrays in one folder: `index.json` and one flat little-endian file, which is memory-mapped.

Weights, prepared data and dumped tensors are exchanged in this form between interpreters with different versions of NumPy.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from steelyard_worker import records
from steelyard_worker.records import Count  # noqa: TC001 - read when an index is checked

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Format 2: index.json = {"format": 2, "sha256", "meta_sha256", "meta": {...}, "tensors": {name: {"dtype", "shape", "offset"}}};
# offsets in bytes. `sha256` covers the data file, then `tensors`. Format 1 had no hashes.
FORMAT = 2
BLOCK_BYTES = 1 << 22
ALIGNMENT = 64
TILE = (64, 256)
INDEX = "index.json"
BYTES = "tensors.bin"


class Entry(TypedDict):
    """One array: its dtype as NumPy writes it, its shape, and where it begins in the data file, in bytes."""

    dtype: str
    shape: list[Count]
    offset: Count


class Index(TypedDict):
    """The contents of index.json."""

    format: int
    sha256: str
    meta_sha256: str
    meta: dict[str, Any]
    tensors: dict[str, Entry]


def transposed(matrix: np.ndarray[Any, Any], dtype: str = "") -> np.ndarray[Any, Any]:
    """Return the transpose of a matrix as a contiguous copy, aligned so that frameworks can share its memory.

    It is copied tile by tile, so that each tile stays in the cache; NumPy reads a large matrix across its rows.
    """
    found = aligned(matrix.shape[::-1], dtype or matrix.dtype)
    rows, columns = TILE
    for top in range(0, matrix.shape[0], rows):
        for left in range(0, matrix.shape[1], columns):
            found[left : left + columns, top : top + rows] = matrix[top : top + rows, left : left + columns].T
    return found


def aligned(shape: tuple[int, ...], dtype: np.dtype[Any] | str) -> np.ndarray[Any, Any]:
    """Return an uninitialised array at an address that is a multiple of `ALIGNMENT`; NumPy guarantees a multiple of 16 only."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.empty(size + ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % ALIGNMENT
    return memory[begin : begin + size].view(dtype).reshape(shape)


class Writer:
    """Append arrays of any size. `close` writes the index last, so an incomplete folder has no index and is not readable."""

    def __init__(self, folder: Path, meta: Mapping[str, Any] | None = None) -> None:
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / INDEX).unlink(missing_ok=True)
        self._file = (self._folder / BYTES).open("wb")
        self._meta = dict(meta or {})
        self._entries: dict[str, Entry] = {}
        self._hash = hashlib.sha256()

    def add(self, name: str, array: np.ndarray[Any, Any]) -> None:
        """Append one array of any dtype and shape."""
        little = np.asarray(array)
        little = np.ascontiguousarray(little, dtype=little.dtype.newbyteorder("<")).reshape(little.shape)
        self.begin(name, little.dtype.str, little.shape)
        self.extend(little)

    def begin(self, name: str, dtype: str, shape: Iterable[int]) -> None:
        """Start an array whose rows are appended by `extend`, so that it need not fit into memory."""
        self._append(b"\0" * (-self._file.tell() % ALIGNMENT))
        self._entries[name] = {"dtype": dtype, "shape": list(shape), "offset": self._file.tell()}

    def extend(self, rows: np.ndarray[Any, Any]) -> None:
        """Append rows, in C order, to the array started last."""
        self._append(np.ascontiguousarray(rows).reshape(-1).data)

    def _append(self, data: bytes | memoryview) -> None:
        self._file.write(data)
        self._hash.update(data)

    def close(self) -> Path:
        """Flush the bytes, then write the index; return the folder."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        index = {
            "format": FORMAT,
            "sha256": _sealed(self._hash, self._entries),
            "meta_sha256": _json_hash(self._meta),
            "meta": self._meta,
            "tensors": self._entries,
        }
        partial = self._folder / (INDEX + ".partial")
        partial.write_text(json.dumps(index), encoding="utf-8")
        partial.replace(self._folder / INDEX)
        return self._folder

    def abandon(self) -> None:
        """Close without an index, so that the folder is not readable."""
        self._file.close()


def write(folder: Path, tensors: Mapping[str, np.ndarray[Any, Any]], meta: Mapping[str, Any] | None = None) -> Path:
    """Write a set of arrays; return the folder."""
    writer = Writer(folder, meta)
    for name, array in tensors.items():
        writer.add(name, array)
    return writer.close()


def read(folder: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Map every array of a folder read-only, in the order in which they were written; ValueError: the folder is damaged."""
    index = read_index(folder)
    path = Path(folder) / BYTES
    whole = np.memmap(path, dtype=np.uint8, mode="r") if path.stat().st_size else np.zeros(0, np.uint8)
    return {name: _view(whole, entry) for name, entry in index["tensors"].items()}


def identity(folder: Path) -> str:
    """Return the SHA-256 of the arrays, their names, types and shapes, as the index has it."""
    return read_index(folder)["sha256"]


def is_unchanged(folder: Path) -> bool:
    """Read a folder completely and report whether arrays and `meta` are those that were written."""
    index, found = read_index(folder), hashlib.sha256()
    with (Path(folder) / BYTES).open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            found.update(block)
    return (_sealed(found, index["tensors"]), _json_hash(index["meta"])) == (index["sha256"], index["meta_sha256"])


def _sealed(data: Any, entries: Mapping[str, Any]) -> str:
    data.update(_json_hash(entries).encode())
    found: str = data.hexdigest()
    return found


def _json_hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def read_meta(folder: Path) -> dict[str, Any]:
    """Return the writer's `meta` of the arrays."""
    return read_index(folder)["meta"]


def read_index(folder: Path) -> Index:
    """Return the index; ValueError with the folder's name if it is missing, damaged or of an unknown format."""
    try:
        raw = records.parse(records.read_text(Path(folder) / INDEX))
        if isinstance(raw, dict) and raw.get("format") == FORMAT:
            index: Index = records.convert(Index, raw, INDEX)
            return index
    except (OSError, ValueError) as error:
        message = f"{folder} has no readable tensor index ({error})."
        raise ValueError(message) from error
    found = raw.get("format") if isinstance(raw, dict) else None
    message = f"{folder} has tensor format {found!r}; this version reads format {FORMAT}."
    raise ValueError(message)


def _view(whole: np.ndarray[Any, Any], entry: Entry) -> np.ndarray[Any, Any]:
    try:
        dtype = np.dtype(entry["dtype"])
        count = math.prod(entry["shape"]) * dtype.itemsize
        found: np.ndarray[Any, Any] = whole[entry["offset"] : entry["offset"] + count].view(dtype)
        return found.reshape(entry["shape"])
    except (TypeError, ValueError) as error:
        message = f"{BYTES} does not hold what {INDEX} says of it ({error})."
        raise ValueError(message) from None
