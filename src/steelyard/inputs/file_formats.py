"""What a file of weights is by its first and last bytes, whatever it is called."""

import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

from steelyard.catalog import frameworks

NUMPY, SAFETENSORS = "a NumPy archive", "a safetensors file"
EMPTY, TEXT = "an empty file", "a text file"
HEAD_BYTES, TAIL_BYTES = 512, 8


@dataclass(frozen=True)
class Format:
    """What a file is, in words, and the framework whose file it is; both empty where its bytes do not tell.

    is_read: whether that framework's adapter reads such files.
    """

    title: str = ""
    framework: str = ""
    is_read: bool = False

    @property
    def is_weightless(self) -> bool:
        """Whether no file of this format holds weights."""
        return self.title in (EMPTY, TEXT)


def recognised(path: Path) -> Format:
    """Return the format of a file."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        file.seek(max(0, size - TAIL_BYTES))
        tail = file.read()
    text = head.decode("latin-1") + tail.decode("latin-1")
    for name, known in frameworks.listed().items():
        for title, sign in {**known.file_signs, **known.unread_signs}.items():
            if re.search(sign, text):
                return Format(title, name, is_read=title in known.file_signs)
    if not head:
        return Format(EMPTY)
    if head.startswith(b"PK"):
        return Format(NUMPY if _is_of_arrays(path) else "")
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") <= size:
        return Format(SAFETENSORS)
    return Format(TEXT if _is_text(head) else "")


def _is_of_arrays(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError):
        return False
    return bool(names) and all(name.endswith(".npy") for name in names)


def _is_text(head: bytes) -> bool:
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4:  # otherwise the last character may be cut
            return False
        text = head[: error.start].decode("utf-8")
    return all(letter.isprintable() or letter in "\r\n\t" for letter in text)
