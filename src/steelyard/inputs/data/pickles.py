"""Read the pickles that official data sets come in, without running what a pickle could run.

Only NumPy arrays and plain Python values can come out; any other name in the pickle is refused.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if name == "_reconstruct" and module in ("numpy.core.multiarray", "numpy._core.multiarray"):
            return np.zeros(0).__reduce__()[0]  # the same function, whatever this NumPy calls its module
        if module == "numpy" and name in ("ndarray", "dtype"):
            return getattr(np, name)
        if (module, name) == ("_codecs", "encode"):
            return _encode_latin1
        message = f"it asks for {module}.{name}"
        raise pickle.UnpicklingError(message)


def load_pickle(content: bytes, where: str) -> Any:
    """Return the value, byte strings of Python 2 as bytes; UserError names `where` it came from."""
    try:
        return _Reader(io.BytesIO(content), encoding="bytes").load()
    except Exception as error:  # a damaged pickle can raise anything
        raise UserError(f"{where} is not a data file that can be read safely ({error}).") from error


def load_arrays(path: Path, names: tuple[str, ...]) -> dict[str, np.ndarray[Any, Any]]:
    """Return the named arrays of an .npz file, arrays of objects included; UserError names a missing one."""
    try:
        with zipfile.ZipFile(path) as archive:
            held = {name.removesuffix(".npy") for name in archive.namelist()}
            if missing := [name for name in names if name not in held]:
                raise UserError(f"{path} holds no array '{missing[0]}'; it is not the official file.")
            return {name: _load_array(archive.read(name + ".npy"), f"{path} ({name})") for name in names}
    except (zipfile.BadZipFile, EOFError, ValueError) as error:
        raise UserError(f"{path} is damaged or cut short ({error}); fetch it again.") from error


def _load_array(content: bytes, where: str) -> np.ndarray[Any, Any]:
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    _, _, dtype = read_header(stream)
    if not dtype.hasobject:
        return np.load(io.BytesIO(content), allow_pickle=False)  # type: ignore[no-any-return]
    value = load_pickle(content[stream.tell() :], where)
    if not isinstance(value, np.ndarray):
        raise UserError(f"{where} holds no array; it is not the official file.")
    return value


def _encode_latin1(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        message = f"it asks for the encoding {encoding}"
        raise pickle.UnpicklingError(message)
    return text.encode("latin1")
