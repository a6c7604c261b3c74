"""Read the pickles of official data sets without running code from them.

Only NumPy arrays and plain Python values are loaded; any other name in a pickle is rejected.
"""

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.errors import UserError
from steelyard.inputs.data.damage import DOWNLOAD, refusing, too_large

# The official pickles have up to 31 MB. One byte can make a list, which takes 64 bytes of memory.
MAX_BYTES = 40_000_000


class _SafeUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if name == "_reconstruct" and module in ("numpy.core.multiarray", "numpy._core.multiarray"):
            return np.zeros(0).__reduce__()[0]  # this function, whose module name depends on the NumPy version
        if module == "numpy" and name in ("ndarray", "dtype"):
            return getattr(np, name)
        if (module, name) == ("_codecs", "encode"):
            return _encode_latin1
        message = f"it requests {module}.{name}"
        raise pickle.UnpicklingError(message)


def load_pickle(content: bytes, where: str) -> Any:
    """Return the value, with byte strings of Python 2 as bytes; UserError names `where` a bad or too large pickle comes from."""
    if len(content) > MAX_BYTES:
        raise too_large(where, len(content), MAX_BYTES)
    # A damaged pickle can raise anything.
    with refusing(f"{where} is not a data file that can be read safely", Exception):
        return _SafeUnpickler(io.BytesIO(content), encoding="bytes").load()


def load_arrays(path: Path, names: tuple[str, ...], most_bytes: int) -> dict[str, np.ndarray[Any, Any]]:
    """Return the named arrays of an .npz file, arrays of objects included.

    UserError names an array that is missing, or that unpacks to more than `most_bytes`.
    """
    damage = refusing(f"{path} is damaged or truncated", zipfile.BadZipFile, EOFError, ValueError, remedy=DOWNLOAD)
    with damage, zipfile.ZipFile(path) as archive:
        present = {name.removesuffix(".npy") for name in archive.namelist()}
        if missing := [name for name in names if name not in present]:
            raise UserError(f"{path} holds no array '{missing[0]}', so it is not the official file; {DOWNLOAD}.")
        for name in names:
            if (found_bytes := archive.getinfo(name + ".npy").file_size) > most_bytes:
                raise too_large(f"{path} ({name})", found_bytes, most_bytes)
        return {name: _load_array(archive.read(name + ".npy"), f"{path} ({name})") for name in names}


def _load_array(content: bytes, where: str) -> np.ndarray[Any, Any]:
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    _, _, dtype = read_header(stream)
    if not dtype.hasobject:
        return np.load(io.BytesIO(content), allow_pickle=False)  # type: ignore[no-any-return]
    value = load_pickle(content[stream.tell() :], where)
    if not isinstance(value, np.ndarray):
        raise UserError(f"{where} does not hold an array, so it is not the official file; {DOWNLOAD}.")
    return value


def _encode_latin1(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        message = f"it requests the encoding {encoding}"
        raise pickle.UnpicklingError(message)
    return text.encode("latin1")
