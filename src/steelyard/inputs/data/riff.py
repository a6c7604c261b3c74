"""Whether a WAV file holds all the samples that its header announces.

A WAV file is a list of chunks, each a name of four bytes and a length of four bytes (RIFF; RF64, EBU Tech 3306, for files above
4 GB). Libraries correct the length of the samples by the size of the file, so a truncated file reads as a short one.
"""

import struct
from pathlib import Path

from steelyard.errors import UserError

SAMPLES, LENGTHS = b"data", b"ds64"
# Lengths that programs write which do not know the length, as they write to a pipe.
UNSTATED = 0x7FFF_0000


def check_complete(path: Path) -> None:
    """Check that the samples of a WAV file end within the file. UserError: they do not, or there are none."""
    size = path.stat().st_size
    long_length = 0
    with path.open("rb") as file:
        order = ">" if file.read(12)[:4] == b"RIFX" else "<"
        while len(head := file.read(8)) == 8:
            name, length = head[:4], struct.unpack(f"{order}I", head[4:])[0]
            begin = file.tell()
            if name == LENGTHS:
                long_length = struct.unpack("<8xQ", file.read(16).ljust(16, b"\0"))[0]
            if name == SAMPLES:
                _check_length(path, long_length or length, size - begin)
                return
            file.seek(begin + length + length % 2)
    raise UserError(f"{path} is damaged or truncated (it has no samples); replace it, or remove it.")


def _check_length(path: Path, stated: int, present: int) -> None:
    is_unstated = UNSTATED <= stated <= 0xFFFF_FFFF and stated > present
    if stated > present and not is_unstated:
        raise UserError(
            f"{path} is damaged or truncated (its header announces {stated:,} bytes of samples, and it holds {present:,}); "
            "replace it, or remove it."
        )
