"""One image -> the pixels uint8 (C, H, W) that every framework is given.

What is left to chance is drawn once per training image, from the seed and the image's place in the official order, when the
data is prepared: every framework and every epoch sees the same pixels, where the training programs of the field draw anew.
Resampling is bilinear, with the triangle widened when an image is made smaller (antialiasing), as Pillow does it.
"""

from __future__ import annotations

import io
import math
import zlib
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np
from PIL import Image, UnidentifiedImageError

from steelyard.errors import UserError
from steelyard.host import usable_cores
from steelyard.inputs.data.tables import FileSplit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.inputs.data.request import ImageOptions
    from steelyard.inputs.data.tables import ImageSplit, Ints

    Pixels = np.ndarray[Any, np.dtype[np.uint8]]

# Random resized crop (Szegedy et al. 2015, section 6): share of the area, width to height, attempts until the centre is taken.
AREAS, RATIOS, ATTEMPTS = (0.08, 1.0), (3 / 4, 4 / 3), 10
# Random crop of small images (He et al. 2016, section 4.2): pixels of zero on every side.
SHIFT = 4
WAITING_PER_CORE = 4


@dataclass(frozen=True)
class Framing:
    """How images of one data set become pixels; `extent`: height and width of every image, empty if they differ."""

    channels: int
    extent: tuple[int, ...]
    options: ImageOptions

    @property
    def shape(self) -> tuple[int, int, int]:
        """(C, H, W) of the pixels."""
        if not self.extent:
            return self.channels, self.options.crop, self.options.crop
        height, width = resized(self.extent[0], self.extent[1], self.options.resize)
        return self.channels, height, width

    @property
    def as_it_is(self) -> bool:
        """Whether pixels are taken over unchanged."""
        return bool(self.extent) and not self.options.resize and not self.options.augment

    def frame_all(self, split: ImageSplit | FileSplit, positions: Ints, training: bool) -> Iterator[Pixels]:
        """Yield the pixels at positions of the official order, one image after the other, decoded on every core."""
        cores = usable_cores()
        waiting: deque[Any] = deque()
        with ThreadPoolExecutor(cores) as pool:
            for position in positions:
                waiting.append(pool.submit(self._frame, split, int(position), training))
                if len(waiting) > WAITING_PER_CORE * cores:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

    def _frame(self, split: ImageSplit | FileSplit, position: int, training: bool) -> Pixels:
        if isinstance(split, FileSplit):
            image = decode(split, position, "L" if self.channels == 1 else "RGB")
        else:
            image = _picture(split.take(np.array([position])).reshape(self.channels, *self.extent))
        chance = np.random.Generator(np.random.PCG64([self.options.seed, position]))
        by_chance = training and self.options.augment
        image = self._cut(image, chance if by_chance else None)
        if by_chance and chance.random() < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        pixels = np.asarray(image)
        return np.ascontiguousarray(pixels[None] if self.channels == 1 else pixels.transpose(2, 0, 1))

    def _cut(self, image: Image.Image, chance: np.random.Generator | None) -> Image.Image:
        """Bring an image to its extent; with `chance`, from a part of it."""
        height, width = self.shape[1:]
        if self.extent:
            if chance is not None:
                left, upper = chance.integers(-SHIFT, SHIFT + 1, 2).tolist()
                image = image.crop((left, upper, left + image.width, upper + image.height))  # what lies outside is zero
        elif chance is not None:
            image = image.crop(random_box(image.width, image.height, chance))
        else:
            return _centre(image, self.options.resize, self.options.crop)
        return image.resize((width, height), Image.Resampling.BILINEAR) if image.size != (width, height) else image


def decode(split: FileSplit, position: int, mode: str) -> Image.Image:
    """Return one image file in a Pillow mode; UserError names a file that cannot be decoded whole."""
    try:
        with Image.open(io.BytesIO(split.read(position))) as image:
            return image.convert(mode)
    # Pillow has no error of its own for damaged files: its decoders raise these.
    except (OSError, ValueError, SyntaxError, EOFError, zlib.error, BadZipFile, Image.DecompressionBombError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        why = "no image format is recognised" if isinstance(error, UnidentifiedImageError) else str(error)
        raise UserError(
            f"{split.path}: {split.name(position)} is damaged or no image ({why}); fetch it again, or take it away."
        ) from error


def resized(height: int, width: int, short: int) -> tuple[int, int]:
    """Return (height, width) with a short side of `short` pixels, the long one rounded down; 0: as they are."""
    if not short:
        return height, width
    return (short, short * width // height) if height <= width else (short * height // width, short)


def random_box(width: int, height: int, generator: np.random.Generator) -> tuple[int, int, int, int]:
    """Return (left, upper, right, lower) of a random resized crop; after ATTEMPTS that do not fit, the largest in the centre."""
    for _ in range(ATTEMPTS):
        area = width * height * generator.uniform(*AREAS)
        ratio = math.exp(generator.uniform(math.log(RATIOS[0]), math.log(RATIOS[1])))
        wide, high = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < wide <= width and 0 < high <= height:
            left, upper = int(generator.integers(width - wide + 1)), int(generator.integers(height - high + 1))
            return left, upper, left + wide, upper + high
    ratio = min(max(width / height, RATIOS[0]), RATIOS[1])
    wide, high = min(width, round(height * ratio)), min(height, round(width / ratio))
    left, upper = (width - wide) // 2, (height - high) // 2
    return left, upper, left + wide, upper + high


def _centre(image: Image.Image, short: int, crop: int) -> Image.Image:
    """Resize the short side, then take the square in the centre."""
    height, width = resized(image.height, image.width, short)
    left, upper = (width - crop) // 2, (height - crop) // 2
    return image.resize((width, height), Image.Resampling.BILINEAR).crop((left, upper, left + crop, upper + crop))


def _picture(pixels: Pixels) -> Image.Image:
    return Image.fromarray(pixels[0] if len(pixels) == 1 else np.ascontiguousarray(pixels.transpose(1, 2, 0)))
