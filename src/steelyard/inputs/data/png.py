"""Decode a PNG image with the standard library and NumPy (W3C PNG, 3rd edition): 8-bit RGB, no interlace."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

    Bytes = np.ndarray[Any, np.dtype[np.uint8]]

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = 3


def decode_rgb(content: bytes, where: str) -> Bytes:
    """Return the pixels uint8 (height, width, 3); UserError names `where` they came from."""
    try:
        width, height, packed = _read(content)
        lines = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + width * CHANNELS)
        return _unfilter(lines).reshape(height, width, CHANNELS)
    except (struct.error, zlib.error, ValueError) as error:
        raise UserError(f"{where} is not a PNG image that can be read ({error}).") from error


def _read(content: bytes) -> tuple[int, int, bytes]:
    if not content.startswith(SIGNATURE):
        message = "no PNG signature"
        raise ValueError(message)
    size, packed = (0, 0), []
    for kind, data in _chunks(content):
        if kind == b"IHDR":
            width, height, *rest = struct.unpack(">IIBBBBB", data)
            if rest != [8, 2, 0, 0, 0]:
                message = "not 8-bit RGB without interlace"
                raise ValueError(message)
            size = (width, height)
        elif kind == b"IDAT":
            packed.append(data)
    return *size, b"".join(packed)


def _chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    position = len(SIGNATURE)
    while position < len(content):
        (length,) = struct.unpack_from(">I", content, position)
        kind, data = content[position + 4 : position + 8], content[position + 8 : position + 8 + length]
        (checksum,) = struct.unpack_from(">I", content, position + 8 + length)
        if zlib.crc32(kind + data) != checksum:
            message = f"chunk {kind!r} is damaged"
            raise ValueError(message)
        yield kind, data
        position += 12 + length


def _unfilter(lines: Bytes) -> Bytes:
    """Undo the line filters (section 9 of the standard); sums are modulo 256."""
    pixels = np.zeros((len(lines), lines.shape[1] - 1), np.uint8)
    above = np.zeros(lines.shape[1] - 1, np.uint8)
    for row, line in enumerate(lines):
        kind, values = int(line[0]), line[1:]
        if kind == 0:
            pixels[row] = values
        elif kind == 1:
            pixels[row] = np.cumsum(values.reshape(-1, CHANNELS), axis=0, dtype=np.uint8).reshape(-1)
        elif kind == 2:
            pixels[row] = values + above
        elif kind in (3, 4):
            pixels[row] = _predict(kind, values.tolist(), above.tolist())
        else:
            message = f"line filter {kind}"
            raise ValueError(message)
        above = pixels[row]
    return pixels


def _predict(kind: int, values: list[int], above: list[int]) -> Bytes:
    """Undo Average (3) or Paeth (4), where each value needs its decoded left neighbour."""
    decoded = [0] * CHANNELS
    corners = [0] * CHANNELS + above
    for index, value in enumerate(values):
        left, up, corner = decoded[index], above[index], corners[index]
        guess = (left + up) // 2 if kind == 3 else _paeth(left, up, corner)
        decoded.append((value + guess) & 255)
    return np.array(decoded[CHANNELS:], np.uint8)


def _paeth(left: int, up: int, corner: int) -> int:
    estimate = left + up - corner
    return min((left, up, corner), key=lambda value: abs(estimate - value))  # ties: left, then up
