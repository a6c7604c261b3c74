"""Decode one picture, and say what of it is not used as it is.

JPEG and PNG are read, whatever the name says. Pictures of 16 bits are scaled to 8. Transparency is dropped: the colours behind
it are used. The rotation that a camera notes (EXIF) is not applied, as in the usual preparation of ImageNet. Of several pictures
in one file the first is used.
"""

import io
import zlib
from typing import Any

import numpy as np
from PIL import Image, UnidentifiedImageError

from steelyard.errors import UserError

# Checked before an image is decoded or enlarged, so that a small file cannot fill the memory. The largest image of ImageNet has
# 61 million pixels. Pillow's own limit would print a warning up to twice its value.
MAX_PIXELS = 100_000_000
Image.MAX_IMAGE_PIXELS = None
FORMATS = ("JPEG", "PNG")
PNG_BEGIN, PNG_BITS = b"\x89PNG\r\n\x1a\n", 24  # how a PNG begins, and the place of its byte with the bits per channel
# The first bytes of formats that are not read, from which byte on, and their names.
OTHERS = (
    (0, b"GIF8", "GIF"),
    (0, b"BM", "BMP"),
    (0, b"II*\0", "TIFF"),
    (0, b"MM\0*", "TIFF"),
    (8, b"WEBP", "WebP"),
    (4, b"ftyp", "HEIC or AVIF"),
)
ORIENTATION, UPRIGHT = 0x0112, 1  # the EXIF tag, and its value without a rotation

SCALED = "pictures of 16 bits, scaled to 8"
TRANSPARENT = "pictures with transparency, which is dropped"
ROTATED = "pictures with a rotation in their EXIF data, which is not applied"
SEVERAL = "files with several pictures, of which the first is used"


def decode_image(content: bytes, mode: str, where: str) -> Image.Image:
    """Return an encoded picture in a Pillow mode, as `decode_picture` does."""
    return decode_picture(content, mode, where)[0]


def decode_picture(content: bytes, mode: str, where: str) -> tuple[Image.Image, tuple[str, ...]]:
    """Return an encoded picture in a Pillow mode, and what of it is not used as it is.

    UserError names `where` a picture comes from that is damaged, of another format, or too large.
    """
    if other := next((name for place, begin, name in OTHERS if content[place:].startswith(begin)), ""):
        raise UserError(f"{where} is a picture in the format {other}; convert it to JPEG or PNG, or remove it.")
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            check_pixels(image.height, image.width, where)
            image.load()
            return _in_8_bits(image).convert(mode), tuple(_notes(image, content))
    # Pillow has no exception of its own for damaged files: its decoders raise these.
    except (OSError, ValueError, SyntaxError, EOFError, zlib.error) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        why = "no image format is recognised" if isinstance(error, UnidentifiedImageError) else str(error)
        raise UserError(f"{where} is damaged or not an image ({why}); replace it, or remove it.") from error


def check_pixels(height: int, width: int, where: str) -> None:
    """Check the size of a picture when decoded and resized. UserError: it would fill the memory."""
    if height * width > MAX_PIXELS:
        raise UserError(
            f"{where} has {width:,} x {height:,} pixels when decoded and resized; at most {MAX_PIXELS:,} are read. Make it "
            "smaller, or remove it."
        )


def _in_8_bits(image: Image.Image) -> Image.Image:
    """Return grey of 16 bits, which Pillow would clip at 255, divided by 257. Pillow itself scales colours of 16 bits."""
    if not image.mode.startswith("I"):
        return image
    values = np.asarray(image).astype(np.int64)
    return Image.fromarray(((values + 128) // 257).clip(0, 255).astype(np.uint8))


def _notes(image: Image.Image, content: bytes) -> list[str]:
    is_deep = content.startswith(PNG_BEGIN) and content[PNG_BITS] == 16
    notes = {
        SCALED: is_deep,
        TRANSPARENT: _is_transparent(image),
        ROTATED: _orientation(image) != UPRIGHT,
        SEVERAL: getattr(image, "n_frames", 1) > 1,
    }
    return [reason for reason, holds in notes.items() if holds]


def _is_transparent(image: Image.Image) -> bool:
    if image.mode in ("RGBA", "LA"):
        lowest: Any = image.getchannel("A").getextrema()[0]
        return bool(lowest < 255)
    return "transparency" in image.info


def _orientation(image: Image.Image) -> int:
    """Return the EXIF orientation; damaged EXIF data has none."""
    if "exif" not in image.info:
        return UPRIGHT
    try:
        return int(image.getexif().get(ORIENTATION, UPRIGHT)) or UPRIGHT
    except Exception:  # of many kinds: Pillow parses what a camera wrote, and lets what its parts raise through
        return UPRIGHT
