"""What a file of weights is by its first bytes, whatever it is called."""

import zipfile
from pathlib import Path

EMPTY, TEXT, PICKLE = "an empty file", "a text file", "a Python pickle"
NUMPY, SAFETENSORS = "a NumPy archive", "a safetensors file"
TORCH, HDF5, MXNET, INDEX = (
    "a file of PyTorch",
    "an HDF5 file of Keras",
    "a file of MXNet",
    "a checkpoint of TensorFlow",
)
OTHER = ""
# The framework whose file it is.
FRAMEWORKS = {TORCH: "pytorch", HDF5: "tensorflow", MXNET: "mxnet", INDEX: "tensorflow"}
HEAD_BYTES = 512
# MXNet's list of arrays (src/ndarray/ndarray.cc), and the last bytes of TensorFlow's index, a table of LevelDB.
MXNET_MAGIC, TABLE_MAGIC = b"\x12\x01\0\0\0\0\0\0", bytes.fromhex("57fb808b247547db")


def recognised(path: Path) -> str:
    """Return one of the formats above; OTHER where the bytes do not tell."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        file.seek(max(0, size - len(TABLE_MAGIC)))
        tail = file.read()
    if not head:
        return EMPTY
    if head.startswith(b"PK"):
        return _of_archive(path)
    beginnings = {b"\x89HDF\r\n\x1a\n": HDF5, b"\x80": PICKLE, MXNET_MAGIC: MXNET}
    for beginning, found in beginnings.items():
        if head.startswith(beginning):
            return found
    if tail == TABLE_MAGIC:
        return INDEX
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") <= size:
        return SAFETENSORS
    return TEXT if _is_text(head) else OTHER


def _of_archive(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError):
        return OTHER
    if any(name.endswith("data.pkl") for name in names):
        return TORCH
    return NUMPY if names and all(name.endswith(".npy") for name in names) else OTHER


def _is_text(head: bytes) -> bool:
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4:  # otherwise a character may be cut
            return False
        text = head[: error.start].decode("utf-8")
    return all(letter.isprintable() or letter in "\r\n\t" for letter in text)
