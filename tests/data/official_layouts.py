"""Write small files in the official layouts, with random or hand-written content."""

from __future__ import annotations

import dataclasses
import gzip
import pickle
import struct
import tarfile
import zlib
from typing import TYPE_CHECKING

import numpy as np

from steelyard.inputs.data.catalogue import DataSet, find

if TYPE_CHECKING:
    from pathlib import Path

BATCHES = [f"data_batch_{number}" for number in range(1, 6)] + ["test_batch"]


def cifar_records(count: int, seed: int) -> np.ndarray:
    """Return `count` records of one label byte and 3,072 pixel bytes."""
    generator = np.random.default_rng(seed)
    records = generator.integers(0, 256, (count, 3073), dtype=np.uint8)
    records[:, 0] = np.arange(count) % 10
    return records


def write_cifar_binary(folder: Path, count: int = 20) -> Path:
    """Write the six files of the binary version."""
    folder.mkdir(parents=True)
    for seed, name in enumerate(BATCHES):
        (folder / f"{name}.bin").write_bytes(cifar_records(count, seed).tobytes())
    (folder / "batches.meta.txt").write_text("airplane\n")
    return folder


def write_cifar_python(folder: Path, count: int = 20) -> Path:
    """Write the same images as the six pickles of the python version."""
    folder.mkdir(parents=True)
    for seed, name in enumerate(BATCHES):
        records = cifar_records(count, seed)
        batch = {b"labels": records[:, 0].tolist(), b"data": np.ascontiguousarray(records[:, 1:])}
        (folder / name).write_bytes(pickle.dumps(batch, protocol=2))
    return folder


def write_archive(folder: Path, archive: Path) -> Path:
    """Pack a folder under its own name, last file first, so that no test can depend on the order."""
    with tarfile.open(archive, "w:gz") as file:
        for path in sorted(folder.rglob("*"), reverse=True):
            if path.is_file():
                file.add(path, f"{folder.name}/{path.relative_to(folder).as_posix()}")
    return archive


def write_reviews(folder: Path, train: list[str], test: list[str]) -> Path:
    """Write reviews into `train|test/neg|pos`, alternating between the classes."""
    for split, texts in (("train", train), ("test", test)):
        for number, text in enumerate(texts):
            path = folder / split / ("neg", "pos")[number % 2] / f"{number}_{number % 10}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return folder


def write_ranks(path: Path, train: list[list[int]], test: list[list[int]]) -> Path:
    """Write reviews in the format of Keras: arrays of lists, pickled inside an .npz."""
    arrays = {}
    for name, reviews in (("train", train), ("test", test)):
        lists = np.empty(len(reviews), dtype=object)
        lists[:] = reviews
        arrays[f"x_{name}"] = lists
        arrays[f"y_{name}"] = np.arange(len(reviews)) % 2
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)
    return path


def write_digits(path: Path, per_class: int = 10) -> Path:
    """Write a table of digits sorted by label; the first pixel is the number of the digit within its class."""
    rows = np.zeros((10 * per_class, 785), np.uint8)
    rows[:, 0] = np.tile(np.arange(per_class), 10)
    rows[:, -1] = np.repeat(np.arange(10), per_class)
    with gzip.open(path, "wt") as file:
        np.savetxt(file, rows, fmt="%d", delimiter=",")
    return path


def write_png(pixels: np.ndarray, filters: list[int]) -> bytes:
    """Encode uint8 (height, width, 3) with the given line filter of each row (PNG, section 9)."""
    height, width, _ = pixels.shape
    flat = pixels.reshape(height, -1).astype(int)
    lines = []
    for row, kind in enumerate(filters):
        above = flat[row - 1] if row else np.zeros_like(flat[0])
        left = np.concatenate([[0, 0, 0], flat[row][:-3]])
        corner = np.concatenate([[0, 0, 0], above[:-3]])
        guess = [0, left, above, (left + above) // 2, _paeth(left, above, corner)][kind]
        lines.append(bytes([kind]) + ((flat[row] - guess) % 256).astype(np.uint8).tobytes())
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"".join(lines))), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


def _paeth(left: np.ndarray, above: np.ndarray, corner: np.ndarray) -> np.ndarray:
    estimate = left + above - corner
    far = [np.abs(estimate - each) for each in (left, above, corner)]
    take_left = (far[0] <= far[1]) & (far[0] <= far[2])
    return np.where(take_left, left, np.where(far[1] <= far[2], above, corner))


def with_layout(name: str, index: int, **changes: object) -> DataSet:
    """Return a known data set with changed official figures of one layout, to match a small file."""
    known = find(name)
    layouts = list(known.layouts)
    layouts[index] = dataclasses.replace(layouts[index], **changes)
    return dataclasses.replace(known, layouts=tuple(layouts))
