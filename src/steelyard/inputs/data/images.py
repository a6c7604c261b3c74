"""Decode images, and write them as uint8 (N, C, H, W) with a table that maps pixels to normalised float32."""

from __future__ import annotations

import io
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, UnidentifiedImageError

from steelyard.errors import UserError
from steelyard.inputs.data.raw_samples import ImageSplit
from steelyard.inputs.data.request import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.inputs.data.options import ImageOptions
    from steelyard.inputs.data.raw_samples import FileSplit, Ints
    from steelyard.inputs.data.request import Report
    from steelyard.inputs.data.transforms import ImageTransform
    from steelyard_worker.tensors import Writer

    Pixels = np.ndarray[Any, np.dtype[np.uint8]]

COPIED_PER_BLOCK = 1024
REPORT_IMAGES = 128


def decode_image(content: bytes, mode: str, where: str) -> Image.Image:
    """Return an encoded image in a Pillow mode; UserError names `where` an image comes from that cannot be fully decoded."""
    try:
        with Image.open(io.BytesIO(content)) as image:
            return image.convert(mode)
    # Pillow has no exception of its own for damaged files: its decoders raise these.
    except (OSError, ValueError, SyntaxError, EOFError, zlib.error, Image.DecompressionBombError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        why = "no image format is recognised" if isinstance(error, UnidentifiedImageError) else str(error)
        raise UserError(f"{where} is damaged or not an image ({why}); download it again, or remove it.") from error


def lookup_table(options: ImageOptions, channels: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return float32 (channels, 256): (v / 255 - mean) / std, computed in float64 and rounded once."""
    values = np.arange(256, dtype=np.float64) / 255
    mean, std = (
        np.broadcast_to(np.array(number, np.float64), channels)[:, None] for number in (options.mean, options.std)
    )
    return ((values - mean) / std).astype(np.float32)


def write_images(
    writer: Writer, name: str, split: ImageSplit | FileSplit, positions: Ints, transform: ImageTransform, report: Report
) -> None:  # fmt: skip
    """Append `name/image` uint8 (N, C, H, W) and `name/label` int32 (N).

    Padding has pixel value 0. Of an odd number of padding rows or columns, the extra one is at the end.
    """
    channels, *sizes = transform.shape
    missing = [max(transform.options.pad_to - size, 0) for size in sizes]
    margins = [(0, 0), (0, 0), *((pad // 2, pad - pad // 2) for pad in missing)]
    padded = [size + pad for size, pad in zip(sizes, missing, strict=True)]
    writer.begin(f"{name}/image", "|u1", (len(positions), channels, *padded))
    done = 0
    for pixels in _blocks(split, positions, transform, name == "train"):
        writer.extend(np.pad(pixels, margins) if any(missing) else pixels)
        done += len(pixels)
        if done % REPORT_IMAGES == 0 or done == len(positions):
            report(Progress(f"Writing {name} images", done, len(positions)))
    writer.add(f"{name}/label", split.labels[positions])


def _blocks(
    split: ImageSplit | FileSplit, positions: Ints, transform: ImageTransform, training: bool
) -> Iterator[Pixels]:  # fmt: skip
    """Yield (n, C, H, W): many images at a time if the pixels are only copied, otherwise one."""
    if isinstance(split, ImageSplit) and transform.is_identity:
        for start in range(0, len(positions), COPIED_PER_BLOCK):
            yield split.take(positions[start : start + COPIED_PER_BLOCK]).reshape(-1, *transform.shape)
    else:
        yield from (pixels[None] for pixels in transform.apply_all(split, positions, training))
