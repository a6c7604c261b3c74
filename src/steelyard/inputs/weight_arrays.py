"""Files of named arrays: NumPy's `.npz` and `.safetensors`, of which names, shapes and dtypes are read before any value.

`.safetensors` is read here and not by its library, because that has no bfloat16 for NumPy; the format is a JSON header and bytes
(https://huggingface.co/docs/safetensors).
"""

import json
import math
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from steelyard.errors import UserError

Array = np.ndarray[Any, Any]

NPY = ".npy"
# What float32 holds exactly, of the types of `.safetensors`; of float64, single values are compared.
STORED = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
NAMES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
FLOATING = frozenset(NAMES.values())
LENGTH_BYTES, LONGEST_HEADER = 8, 100_000_000  # the latter is the limit of the format


@dataclass(frozen=True)
class Held:
    """One tensor of a file: its shape, and its dtype as NumPy calls it, or "bfloat16"."""

    shape: tuple[int, ...]
    dtype: str


class Npz:
    """An archive of `numpy.savez`. UserError: it is damaged, or has pickled objects."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.tensors: dict[str, Held] = {}
        try:
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    with archive.open(name) as member:
                        self.tensors[name.removesuffix(NPY)] = self._header(name, member)
        except (zipfile.BadZipFile, ValueError, EOFError, OSError, NotImplementedError, RuntimeError) as error:
            raise _damaged(path, error) from None

    def _header(self, name: str, member: IO[bytes]) -> Held:
        version = np.lib.format.read_magic(member)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(member)
        if dtype.hasobject:
            raise UserError(
                f"{self._path.name}: '{name.removesuffix(NPY)}' is a pickled object, which could run code and is not read; save "
                "arrays of floats."
            )
        return Held(shape, dtype.name)

    def values(self, name: str) -> Array:
        """Return the values of one tensor, as they are."""
        try:
            with np.load(self._path, allow_pickle=False) as archive:
                found: Array = archive[name]
        except (zipfile.BadZipFile, ValueError, EOFError, OSError) as error:
            raise _damaged(self._path, error) from None
        return found


class SafeTensors:
    """A `.safetensors` file. UserError: it is damaged, or has tensors of a type that holds no weights."""

    def __init__(self, path: Path) -> None:
        self._path = path
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(LENGTH_BYTES), "little")
            self._begin = LENGTH_BYTES + length
            if not 2 <= length <= LONGEST_HEADER or self._begin > size:
                raise _damaged(path, "its header is longer than the file")
            try:
                header = json.loads(file.read(length))
            except (ValueError, RecursionError):
                raise _damaged(path, "its header is no JSON") from None
        if not isinstance(header, dict):
            raise _damaged(path, "its header is no table")
        header.pop("__metadata__", None)
        self._places: dict[str, tuple[str, int, int]] = {}
        self.tensors = {name: self._entry(name, entry, size - self._begin) for name, entry in header.items()}

    def _entry(self, name: str, entry: Any, size: int) -> Held:
        try:
            kind, shape, (begin, end) = str(entry["dtype"]), tuple(map(int, entry["shape"])), entry["data_offsets"]
            stored = STORED.get(kind)
            fits = stored is None or end - begin == np.dtype(stored).itemsize * math.prod(shape)
        except (TypeError, KeyError, ValueError):
            raise _damaged(self._path, f"the entry of '{name}' is no tensor") from None
        if not (0 <= begin <= end <= size and fits and all(each >= 0 for each in shape)):
            raise _damaged(self._path, f"the values of '{name}' do not lie in it")
        self._places[name] = kind, begin, end
        return Held(shape, NAMES.get(kind, kind))

    def values(self, name: str) -> Array:
        """Return the values of one tensor; those of bfloat16 as float32."""
        kind, begin, end = self._places[name]
        with self._path.open("rb") as file:
            file.seek(self._begin + begin)
            raw = np.frombuffer(file.read(end - begin), STORED[kind]).reshape(self.tensors[name].shape)
        # bfloat16 is the upper half of float32.
        return (raw.astype("<u4") << 16).view("<f4") if kind == "BF16" else raw


def opened(path: Path) -> Npz | SafeTensors:
    """Return what a file holds, after its headers have been read. UserError: it is damaged."""
    return SafeTensors(path) if path.suffix.lower() == ".safetensors" else Npz(path)


def as_float32(name: str, values: Array, source: str) -> Array:
    """Return values as float32. UserError: one is not finite, or float32 cannot hold it. `source`: the name of the file."""
    if not np.isfinite(values).all():
        count = values.size - int(np.isfinite(values).sum())
        what = "a value that is" if count == 1 else f"{count:,} values that are"
        raise UserError(f"{source}: '{name}' has {what} not finite (NaN or infinite); the training has failed.")
    with np.errstate(over="ignore"):
        found = values.astype(np.float32)
    if not np.isfinite(found).all():
        raise UserError(f"{source}: '{name}' has values that are too large for float32.")
    if values.dtype.itemsize > found.dtype.itemsize and not np.array_equal(found, values):
        raise UserError(
            f"{source}: '{name}' is {values.dtype.name} with values that float32 cannot hold; round them before saving, "
            "with array.astype('float32')."
        )
    return found


def wrong_types(tensors: Mapping[str, Held]) -> list[str]:
    """Return the names of tensors whose dtype holds no weights, with it: `'x' (int64)`."""
    return [f"'{name}' ({held.dtype})" for name, held in tensors.items() if held.dtype not in FLOATING]


def _damaged(path: Path, reason: object) -> UserError:
    text = " ".join(str(reason).split()) or "it ends too early"
    return UserError(f"{path.name} is damaged or truncated ({text}); write it again, or copy it again.")
