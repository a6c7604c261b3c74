"""Decode, resize, crop and augment one image -> the pixels uint8 (C, H, W) that every framework receives.

Random augmentation is applied once per training image, when the data is prepared. It depends only on the seed and on the
image's position in the official order. Every framework and every epoch therefore gets the same pixels, whereas usual
training programs augment anew in every epoch. Resampling is bilinear with antialiasing, as in Pillow.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from PIL import Image

from steelyard.inputs.data.inventory import Inventory, accepted, attempted, shown
from steelyard.inputs.data.options import ImageOptions
from steelyard.inputs.data.parallel import threaded_map
from steelyard.inputs.data.pictures import check_pixels, decode_picture
from steelyard.inputs.data.raw_samples import FileSplit, ImageSplit, Ints

Pixels = np.ndarray[Any, np.dtype[np.uint8]]

# Random resized crop (Szegedy et al. 2015, section 6): share of the area; width to height; attempts before the centre is used.
AREAS, RATIOS, ATTEMPTS = (0.08, 1.0), (3 / 4, 4 / 3), 10
# Shift of colours (Krizhevsky et al. 2012, section 4.1): the principal components of the colours of ImageNet's training images as
# columns, and the factor of each, on a scale of colours from 0 to 1: the numbers of fb.resnet.torch, imagenet.lua.
COMPONENTS = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])
FACTORS = np.array([0.2175, 0.0188, 0.0045])
# Random crop of small images (He et al. 2016, section 4.2): pixels of zero padding on every side.
SHIFT = 4


@dataclass(frozen=True)
class ImageTransform:
    """The transform of one data set; `size`: height and width of every image, empty if the images have different sizes."""

    channels: int
    size: tuple[int, ...]
    options: ImageOptions

    @property
    def shape(self) -> tuple[int, int, int]:
        """(C, H, W) of the resulting pixels, before padding."""
        if not self.size:
            return self.channels, self.options.crop, self.options.crop
        height, width = scaled_size(self.size[0], self.size[1], self.options.resize)
        return self.channels, height, width

    @property
    def is_identity(self) -> bool:
        """Whether the pixels stay unchanged."""
        options = self.options
        return bool(self.size) and not (options.resize or options.augment or options.colour_shift)

    def apply_all(
        self, split: ImageSplit | FileSplit, positions: Ints, training: bool, inventory: Inventory
    ) -> Iterator[Pixels]:
        """Yield the pixels at positions of the official order, one image at a time, decoded on all processors.

        `inventory` counts pictures that are not used as they are. UserError names all files that cannot be decoded.
        """
        # Pillow releases the interpreter lock while it decodes and resizes.
        apply = attempted(partial(self.apply, split, training))
        for pixels, notes, name in accepted(threaded_map(apply, map(int, positions))):
            for note in notes:
                inventory.change(note, name)
            yield pixels

    def apply(
        self, split: ImageSplit | FileSplit, training: bool, position: int
    ) -> tuple[Pixels, tuple[str, ...], str]:
        """Return the pixels of one image, what of it is not used as it is, and the name of its file, if it has one."""
        notes: tuple[str, ...] = ()
        name = ""
        if isinstance(split, FileSplit):
            name = split.name(position)
            mode, where = "L" if self.channels == 1 else "RGB", f"{split.path}: {shown(name)}"
            image, notes = decode_picture(split.read(position), mode, where)
            check_pixels(*scaled_size(image.height, image.width, self.options.resize), where)
        else:
            image = _to_image(split.take(np.array([position])).reshape(self.channels, *self.size))
        generator = np.random.Generator(np.random.PCG64([self.options.seed, position]))
        if training and self.options.augment:
            image = self._resize(self._random_crop(image, generator))
            if generator.random() < 0.5:
                image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        elif self.size:
            image = self._resize(image)
        else:
            image = _centre_crop(image, self.options.resize, self.options.crop)
        pixels = np.asarray(image)
        if training and self.options.colour_shift:
            pixels = shifted(pixels, generator.normal(0.0, self.options.colour_shift, 3))
        return np.ascontiguousarray(pixels[None] if self.channels == 1 else pixels.transpose(2, 0, 1)), notes, name

    def _random_crop(self, image: Image.Image, generator: np.random.Generator) -> Image.Image:
        """Shift an image of fixed size; take a random part of any other image."""
        if not self.size:
            return image.crop(random_crop_box(image.width, image.height, generator))
        left, upper = generator.integers(-SHIFT, SHIFT + 1, 2).tolist()
        # Pillow fills the outside with zeros.
        return image.crop((left, upper, left + image.width, upper + image.height))

    def _resize(self, image: Image.Image) -> Image.Image:
        height, width = self.shape[1:]
        return image.resize((width, height), Image.Resampling.BILINEAR) if image.size != (width, height) else image


def shifted(pixels: Pixels, amounts: np.ndarray[Any, np.dtype[np.float64]]) -> Pixels:
    """Return pixels uint8 (H, W, 3) moved along each principal component of colours by an amount of its factor, float64 (3,)."""
    moved = pixels + 255 * COMPONENTS @ (amounts * FACTORS)
    found: Pixels = np.rint(moved).clip(0, 255).astype(np.uint8)
    return found


def scaled_size(height: int, width: int, short: int) -> tuple[int, int]:
    """Return (height, width) with a short side of `short` pixels and the long side rounded down; 0: unchanged."""
    if not short:
        return height, width
    return (short, short * width // height) if height <= width else (short * height // width, short)


def random_crop_box(width: int, height: int, generator: np.random.Generator) -> tuple[int, int, int, int]:
    """Return (left, upper, right, lower) of a random resized crop.

    If no attempt fits into the image, this is the largest centred box with an allowed aspect ratio.
    """
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


def _centre_crop(image: Image.Image, short: int, crop: int) -> Image.Image:
    """Resize the short side, then take the square in the centre."""
    height, width = scaled_size(image.height, image.width, short)
    left, upper = (width - crop) // 2, (height - crop) // 2
    return image.resize((width, height), Image.Resampling.BILINEAR).crop((left, upper, left + crop, upper + crop))


def _to_image(pixels: Pixels) -> Image.Image:
    return Image.fromarray(pixels[0] if len(pixels) == 1 else np.ascontiguousarray(pixels.transpose(1, 2, 0)))
