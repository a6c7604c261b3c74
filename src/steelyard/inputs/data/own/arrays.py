"""Arrays of the user's own, one for each input of the network -> the same arrays, checked, in the dtypes of the network.

A file `tokens.npy` holds the input `tokens` of all samples, (samples, ...); an archive `any.npz` holds several, by name. Files in
`train` and `test` are those splits. Without these folders, one sample in five, chosen by the seed, is for testing.
"""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np

from steelyard.errors import UserError, nearest
from steelyard.files import atomic
from steelyard.inputs.data.archives import list_files
from steelyard.inputs.data.damage import check_regular, refusing, too_large
from steelyard.inputs.data.inventory import accepted, attempted
from steelyard.inputs.data.own.split_folders import by_split, has_splits
from steelyard.inputs.data.splits import SAMPLES_PER_TEST_SAMPLE
from steelyard.inputs.data.work import Known

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from steelyard.inputs.data.options import SeededOptions
    from steelyard.inputs.data.raw_samples import Ints
    from steelyard.inputs.data.work import Work
    from steelyard_worker.network import Input
    from steelyard_worker.tensors import Writer

    Array = np.ndarray[Any, Any]
    Splits = dict[str, dict[str, "Held"]]

ROWS = 1024  # are converted and written at a time
MOST_MEMBER_BYTES = 1 << 34  # of an archive; it is read into memory, an .npy file is not
UNREADABLE = (
    ValueError,
    EOFError,
    OSError,
    KeyError,
    zipfile.BadZipFile,
    zlib.error,
    NotImplementedError,
    RuntimeError,
    MemoryError,
    OverflowError,
)
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
NO_INPUT = "arrays that are no input of the network"
ROUNDED = "arrays whose numbers are rounded to float32"
CONVERTED = "arrays whose numbers are converted to float32"


@dataclass(frozen=True)
class Held:
    """One array in a file. `member`: its name in an archive; empty for an .npy file, whose values begin at `offset` (bytes)."""

    path: Path
    member: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    is_fortran: bool = False
    offset: int = 0

    @property
    def where(self) -> str:
        """The file, and the array in it, for messages."""
        return f"{self.path}: '{self.member}'" if self.member else str(self.path)

    def open(self) -> Array:
        """Return the array: of an .npy file memory-mapped, of an archive read. UserError: it is damaged."""
        check_regular(self.path)
        with refusing(f"{self.where} cannot be read as an array", *UNREADABLE):
            if self.member:
                with np.load(self.path, allow_pickle=False) as archive:
                    return np.asarray(archive[self.member])
            order: Literal["F", "C"] = "F" if self.is_fortran else "C"
            return np.memmap(self.path, self.dtype, "r", self.offset, self.shape, order)


def write_arrays(work: Work[SeededOptions]) -> None:
    """Write `train/` and `test/` arrays (N, ...) in the dtypes that the network declares, and `position/` int32 (N).

    UserError: an input has no array, or one of another shape; arrays differ in their number of samples; a number is not finite,
    too large, or not a whole one where the network declares whole numbers.
    """
    splits = _splits(work)
    chosen = _chosen(splits, work)
    needed = [len(rows) * _bytes(each) for rows in (each for _, each in chosen.values()) for each in work.inputs]
    atomic.check_space(work.folder, "The prepared data", sum(needed))
    with work.writer({f"{name}_count": len(rows) for name, (_, rows) in chosen.items()}) as writer:
        for name, (split, rows) in chosen.items():
            for declared in work.inputs:
                _write(writer, work, f"{name}/{declared.name}", split[declared.name], rows, declared)
            writer.add(f"position/{name}", rows.astype(np.int32))


def open_arrays(work: Work[SeededOptions]) -> Known:
    """Read the headers of all arrays; return the number of samples of each split. UserError as in `write_arrays`, of headers."""
    splits = _splits(work)
    chosen = _chosen(splits, work)
    return Known(*(len(chosen[name][1]) for name in ("train", "test")))


def _splits(work: Work[Any]) -> Splits:
    """Return split -> name -> array of the files in a folder, or of one archive; `all` where there are no splits.

    UserError names files that are no arrays, names that two files have, and arrays that do not fit the network.
    """
    path = work.source.path
    names = list_files(path, work.source.layout.files) if path.is_dir() else [""]
    if has_splits(work.source.layout):
        by_split(path, names, ".npy or .npz")
    splits: Splits = {}
    files = [path / name if name else path for name in names]
    for name, held in zip(names, accepted(map(attempted(_headers), files)), strict=True):
        split = name.partition("/")[0] if "/" in name else "all"
        for key, array in held.items():
            other = splits.setdefault(split, {}).setdefault(key, array)
            if other is not array:
                raise UserError(f"{other.where} and {array.where} both hold '{key}' of one split; remove one of them.")
    _check_splits(work, splits)
    names_of_inputs = {each.name for each in work.inputs}
    for held in splits.values():
        for name in sorted(held.keys() - names_of_inputs):
            work.inventory.leave_out(NO_INPUT, held.pop(name).where)
    return splits


def _check_splits(work: Work[Any], splits: Splits) -> None:
    """Compare the headers of arrays with the inputs of the network. UserError names all that do not fit."""
    pairs = [(split, held, declared) for split, held in splits.items() for declared in work.inputs]
    list(accepted(map(attempted(partial(_check_header, work)), pairs)))
    for name, held in splits.items():
        counts = {each.name: held[each.name].shape[0] for each in work.inputs}
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"'{key}' {count:,}" for key, count in counts.items())
            raise UserError(
                f"{_place(work, name)}: the arrays have different numbers of samples ({listed}); they must be equal."
            )
        if not next(iter(counts.values())):
            raise UserError(f"{_place(work, name)}: the arrays have no samples; add some.")


def _check_header(work: Work[Any], item: tuple[str, dict[str, Held], Input]) -> None:
    split, held, declared = item
    array = held.get(declared.name)
    if array is None:
        raise UserError(
            f"{_place(work, split)} holds no array '{declared.name}', which the network reads as {declared.dtype} "
            f"{declared.shape} per sample; add {declared.name}.npy.{nearest(declared.name, sorted(held))}"
        )
    if len(array.shape) != 1 + len(declared.shape) or array.shape[1:] != tuple(declared.shape):
        raise UserError(
            f"{array.where} has the shape {array.shape}; the network reads {declared.shape} per sample, so it must be "
            f"{('samples', *declared.shape)}. Change the array or the sizes of the preset.".replace(
                "'samples'", "samples"
            )
        )
    whole = np.dtype(declared.dtype).kind in "iu"
    if array.dtype.kind not in ("biu" if whole else "biuf"):
        kinds = "whole numbers" if whole else "numbers"
        raise UserError(f"{array.where} holds {array.dtype}, but the network reads {kinds}; convert the array.")


def _headers(path: Path) -> dict[str, Held]:
    """Return the arrays of a file by name, without reading them. UserError: it is no file of arrays, or holds Python objects."""
    size = check_regular(path).st_size
    with refusing(f"{path} cannot be read as a file of arrays", *UNREADABLE):
        if path.suffix == ".npz":
            return dict(_members(path))
        with path.open("rb") as file:
            held = _header(file, path, "")
        if size < held.offset + int(np.prod(held.shape, dtype=object)) * held.dtype.itemsize:
            message = f"it ends before the {held.shape} values that its header announces"
            raise ValueError(message)
        return {path.stem: held}


def _members(path: Path) -> Iterator[tuple[str, Held]]:
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            name = entry.filename.removesuffix(".npy")
            if entry.file_size > MOST_MEMBER_BYTES:
                raise too_large(f"{path}: {name}", entry.file_size, MOST_MEMBER_BYTES)
            with archive.open(entry) as file:
                yield name, _header(file, path, name)


def _header(file: IO[bytes], path: Path, member: str) -> Held:
    """Return what the header of one array says. ValueError: there is none, or the array holds Python objects."""
    version = np.lib.format.read_magic(file)
    if version not in HEADERS:
        message = f"version {version} of NumPy's format is not read"
        raise ValueError(message)
    shape, is_fortran, dtype = HEADERS[version](file)
    if dtype.hasobject:
        message = f"'{member or path.stem}' holds Python objects"
        raise ValueError(message)
    return Held(path, member, shape, dtype, is_fortran, file.tell())


def _chosen(splits: Splits, work: Work[SeededOptions]) -> dict[str, tuple[dict[str, Held], Ints]]:
    """Return the arrays of both splits and the rows int64 that are taken of them. UserError: a split would be empty."""
    options = work.options
    if "all" not in splits:
        rows, arrays = {name: np.arange(_count(held)) for name, held in splits.items()}, splits
    else:
        whole = splits["all"]
        order = np.random.Generator(np.random.PCG64(options.seed)).permutation(_count(whole))
        held_out = max(1, len(order) // SAMPLES_PER_TEST_SAMPLE)
        rows = {"train": np.sort(order[held_out:]), "test": np.sort(order[:held_out])}
        arrays = {"train": whole, "test": whole}
    limits = {"train": options.train_limit, "test": options.test_limit}
    chosen = {name: (arrays[name], each[: limits[name] or None]) for name, each in rows.items()}
    for name in ("train", "test"):
        if name not in chosen or not len(chosen[name][1]):
            raise UserError(f"{work.source.path}: the {name} split has no samples; add some.")
    return chosen


def _write(writer: Writer, work: Work[Any], name: str, held: Held, rows: Ints, declared: Input) -> None:
    """Append one array in the dtype of the network, after it was checked. UserError: a number cannot be used."""
    target, array = np.dtype(declared.dtype), held.open()
    if array.dtype.kind != target.kind:
        work.inventory.change(CONVERTED, held.where)
    elif target.kind == "f" and array.dtype.itemsize > target.itemsize:
        work.inventory.change(ROUNDED, held.where)
    writer.begin(name, target.newbyteorder("<").str, (len(rows), *declared.shape))
    for start in range(0, len(rows), ROWS):
        block = np.asarray(array[rows[start : start + ROWS]])
        _check_values(block, rows[start : start + ROWS], held, declared)
        writer.extend(block.astype(target))
        work.say(f"Writing {name}", min(start + ROWS, len(rows)), len(rows))


def _check_values(block: Array, rows: Ints, held: Held, declared: Input) -> None:
    if block.dtype.kind == "f":
        limit = np.finfo(declared.dtype).max
        wrong, why = ~(np.abs(block) <= limit), f"a number that is not finite in {declared.dtype}"
    else:
        lowest, highest = _bounds(declared)
        wrong, why = (block < lowest) | (block > highest), f"a number that is not from {lowest:,} to {highest:,}"
    if wrong.any():
        place = tuple(int(index) for index in np.argwhere(wrong)[0])
        raise UserError(
            f"{held.where} has {why}: {block[place]!s} in sample {int(rows[place[0]]):,} (counted from 0), which the network "
            f"does not allow for '{declared.name}'; change it, or the sizes of the preset."
        )


def _bounds(declared: Input) -> tuple[int, int]:
    """Return the lowest and the highest whole number that an input may have."""
    if np.dtype(declared.dtype).kind == "f":
        return -(2**53), 2**53
    return (0, declared.high - 1) if declared.high else (0, int(np.iinfo(declared.dtype).max))


def _bytes(declared: Input) -> int:
    return int(np.prod(declared.shape, dtype=np.int64)) * np.dtype(declared.dtype).itemsize


def _count(held: dict[str, Held]) -> int:
    return next(iter(held.values())).shape[0]


def _place(work: Work[Any], split: str) -> str:
    return str(work.source.path if split == "all" else work.source.path / split)
