"""Images -> uint8 (N, C, H, W), and a table that maps pixels to normalised float32."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from steelyard.files import atomic
from steelyard.inputs.data.cifar import read_cifar
from steelyard.inputs.data.digits import read_digits
from steelyard.inputs.data.image_folders import read_image_folders
from steelyard.inputs.data.inventory import Inventory, accepted, attempted
from steelyard.inputs.data.options import ImageOptions
from steelyard.inputs.data.raw_samples import FileSplit, ImageSplit, Ints, RawSamples
from steelyard.inputs.data.splits import add_positions, choose_samples, describe_samples
from steelyard.inputs.data.transforms import ImageTransform, Pixels
from steelyard.inputs.data.work import Known, Work
from steelyard_worker.tensors import Writer

READERS: dict[str, Callable[[Work[Any]], RawSamples[ImageSplit] | RawSamples[FileSplit]]] = {
    "cifar": read_cifar,
    "digits": read_digits,
    "folders": read_image_folders,
}
COPIED_PER_BLOCK = 1024
REPORT_IMAGES = 128


def write_images(work: Work[ImageOptions]) -> None:
    """Write `train/` and `test/` image uint8 (N, C, H, W) and label int32 (N), `lookup` float32 (C, 256), and `position/`.

    Padding has pixel value 0. Of an odd number of padding rows or columns, the extra one is at the end.
    """
    data_set, options = work.source.data, work.options
    channels, *size = data_set.shape
    transform = ImageTransform(channels, tuple(size), options)
    samples: RawSamples[Any] = READERS[data_set.reader](work)
    chosen = choose_samples(samples, options)
    needed_bytes = sum(len(rows) for _, rows in chosen.values()) * math.prod(transform.shape)
    atomic.check_space(work.folder, f"The prepared data set '{data_set.name}'", needed_bytes)
    facts = describe_samples(samples, chosen)
    facts["lookup"] = {"scale": 1 / 255, "mean": list(options.mean), "std": list(options.std)}
    with work.writer(facts) as writer:
        for name, (split, positions) in chosen.items():
            _write_split(writer, name, split, positions, transform, work)
        writer.add("lookup", lookup_table(options, channels))
        add_positions(writer, chosen)


def open_images(work: Work[ImageOptions]) -> Known:
    """Read the names or records of all images, and decode some image files. UserError: one cannot be read.

    Labels are numbered by the classes of the training split, from 0.
    """
    data_set, options = work.source.data, work.options
    transform = ImageTransform(data_set.shape[0], data_set.shape[1:], options)
    samples: RawSamples[Any] = READERS[data_set.reader](work)
    chosen = choose_samples(samples, options)
    for split, positions in chosen.values():
        if isinstance(split, FileSplit):
            apply = attempted(partial(transform.apply, split, False))
            for _, notes, name in accepted(map(apply, work.sample(sorted(positions.tolist())))):
                for note in notes:
                    work.inventory.change(note, name)
    train, test = (len(positions) for _, positions in chosen.values())
    return Known(train, test, 1 + int(samples.train.labels.max()))


def lookup_table(options: ImageOptions, channels: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return float32 (channels, 256): (v / 255 - mean) / std, computed in float64 and rounded once."""
    values = np.arange(256, dtype=np.float64) / 255
    mean, std = (
        np.broadcast_to(np.array(number, np.float64), channels)[:, None] for number in (options.mean, options.std)
    )
    return ((values - mean) / std).astype(np.float32)


def _write_split(
    writer: Writer,
    name: str,
    split: ImageSplit | FileSplit,
    positions: Ints,
    transform: ImageTransform,
    work: Work[ImageOptions],
) -> None:
    channels, *sizes = transform.shape
    missing = [max(work.options.pad_to - size, 0) for size in sizes]
    margins = [(0, 0), (0, 0), *((pad // 2, pad - pad // 2) for pad in missing)]
    padded = [size + pad for size, pad in zip(sizes, missing, strict=True)]
    writer.begin(f"{name}/image", "|u1", (len(positions), channels, *padded))
    done = 0
    for pixels in _blocks(split, positions, transform, name == "train", work.inventory):
        writer.extend(np.pad(pixels, margins) if any(missing) else pixels)
        done += len(pixels)
        if done % REPORT_IMAGES == 0 or done == len(positions):
            work.say(f"Writing {name} images", done, len(positions))
    writer.add(f"{name}/label", split.labels[positions])


def _blocks(
    split: ImageSplit | FileSplit, positions: Ints, transform: ImageTransform, training: bool, inventory: Inventory
) -> Iterator[Pixels]:
    """Yield (n, C, H, W): many images at a time if the pixels are only copied, otherwise one."""
    if isinstance(split, ImageSplit) and transform.is_identity:
        for start in range(0, len(positions), COPIED_PER_BLOCK):
            yield split.take(positions[start : start + COPIED_PER_BLOCK]).reshape(-1, *transform.shape)
    else:
        yield from (pixels[None] for pixels in transform.apply_all(split, positions, training, inventory))
