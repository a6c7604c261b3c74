"""Image records -> uint8 (N, C, H, W), with the table that turns pixels into normalised float32."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.inputs.data.request import Progress
from steelyard.inputs.data.tables import ImageSplit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.inputs.data.framing import Framing
    from steelyard.inputs.data.request import ImageOptions, Report
    from steelyard.inputs.data.tables import FileSplit, Ints
    from steelyard_worker.tensors import Writer

    Pixels = np.ndarray[Any, np.dtype[np.uint8]]

CHUNK_IMAGES = 1024
REPORT_IMAGES = 128


def lookup_table(options: ImageOptions, channels: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return float32 (channels, 256): (v / 255 - mean) / std, computed in float64, rounded once."""
    values = np.arange(256, dtype=np.float64) / 255
    mean, std = (np.broadcast_to(np.array(each, np.float64), channels)[:, None] for each in (options.mean, options.std))
    return ((values - mean) / std).astype(np.float32)


def write_images(
    writer: Writer, name: str, split: ImageSplit | FileSplit, positions: Ints, framing: Framing, report: Report
) -> None:  # fmt: skip
    """Append `name/image` uint8 (N, C, H, W) and `name/label` int32 (N); pads with pixel 0, odd rows last."""
    channels, *extents = framing.shape
    missing = [max(framing.options.pad_to - extent, 0) for extent in extents]
    margins = [(0, 0), (0, 0), *((gap // 2, gap - gap // 2) for gap in missing)]
    whole = [extent + gap for extent, gap in zip(extents, missing, strict=True)]
    writer.begin(f"{name}/image", "|u1", (len(positions), channels, *whole))
    done = 0
    for pixels in _blocks(split, positions, framing, name == "train"):
        writer.extend(np.pad(pixels, margins) if any(missing) else pixels)
        done += len(pixels)
        if done % REPORT_IMAGES == 0 or done == len(positions):
            report(Progress(f"Writing {name} images", done, len(positions)))
    writer.add(f"{name}/label", split.labels[positions])


def _blocks(split: ImageSplit | FileSplit, positions: Ints, framing: Framing, training: bool) -> Iterator[Pixels]:
    """Yield (n, C, H, W): many at a time where pixels are only copied."""
    if isinstance(split, ImageSplit) and framing.as_it_is:
        for start in range(0, len(positions), CHUNK_IMAGES):
            yield split.take(positions[start : start + CHUNK_IMAGES]).reshape(-1, *framing.shape)
    else:
        yield from (pixels[None] for pixels in framing.frame_all(split, positions, training))
