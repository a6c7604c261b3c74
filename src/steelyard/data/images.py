"""Image records -> uint8 (N, C, H, W), with the table that turns pixels into normalised float32."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.data.request import Progress

if TYPE_CHECKING:
    from steelyard.data.request import ImageOptions, Report
    from steelyard.data.tables import ImageSplit, Ints
    from steelyard_worker.tensors import Writer

CHUNK_IMAGES = 1024


def lookup_table(options: ImageOptions, channels: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return float32 (channels, 256): (v / 255 - mean) / std, computed in float64, rounded once."""
    values = np.arange(256, dtype=np.float64) / 255
    mean, std = (
        np.broadcast_to(np.array(each, np.float64), channels)[:, None] for each in (options.mean, options.std)
    )
    return ((values - mean) / std).astype(np.float32)


def write_images(
    writer: Writer,
    name: str,
    split: ImageSplit,
    positions: Ints,
    shape: tuple[int, ...],
    pad_to: int,
    report: Report,
) -> None:
    """Append `name/image` uint8 (N, C, H, W) and `name/label` int32 (N); pads with pixel 0, odd rows last."""
    channels, height, width = shape
    before = [(max(pad_to - extent, 0)) // 2 for extent in (height, width)]
    after = [max(pad_to - extent, 0) - first for extent, first in zip((height, width), before, strict=True)]
    margins = [(0, 0), (0, 0), (before[0], after[0]), (before[1], after[1])]
    whole = (len(positions), channels, max(pad_to, height), max(pad_to, width))
    writer.begin(f"{name}/image", "|u1", whole)
    for start in range(0, len(positions), CHUNK_IMAGES):
        pixels = split.take(positions[start : start + CHUNK_IMAGES]).reshape(-1, *shape)
        writer.extend(np.pad(pixels, margins) if pad_to else pixels)
        report(Progress(f"Writing {name} images", min(start + CHUNK_IMAGES, len(positions)), len(positions)))
    writer.add(f"{name}/label", split.labels[positions])
