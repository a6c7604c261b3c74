"""What is asked of a data set, and what comes back: the options of a preset's `[data]` table, checked."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from steelyard.errors import UserError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from steelyard.data.catalogue import DataSet

    Report = Callable[["Progress"], None]


@dataclass(frozen=True)
class Progress:
    """One sentence on what is being done; `done` of `total` bytes or samples, total 0 without a measure."""

    sentence: str
    done: int = 0
    total: int = 0


def silent(progress: Progress) -> None:
    """Report to nobody."""


@dataclass(frozen=True)
class DataRequest:
    """A data set by name, the user's folder (or file) that holds it, and a preset's options for its form.

    Options of images: mean, std (one number per channel), pad_to. Of text: vocabulary, length, padding
    ("front" or "end"), embedding, start_char, oov_char, index_from. Of both: train_limit, test_limit, seed.
    """

    name: str
    folder: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Prepared:
    """A tensors folder and what its writer said about it.

    Tensors: `train/image` uint8 (N, C, H, W) and `lookup` float32 (C, 256), or `train/tokens` int32 (N, T);
    `train/label` int32 (N); the same under `test/`; `position/train` and `position/test` int32 (N): the row
    of each sample in the official order; `embedding` float32 (V, width) where one was asked for.
    """

    folder: Path
    meta: dict[str, Any]


@dataclass(frozen=True)
class ImageOptions:
    """Normalisation per channel, after division by 255; `pad_to`: height and width, padded with pixel 0."""

    mean: tuple[float, ...] = (0.5,)
    std: tuple[float, ...] = (0.5,)
    pad_to: int = 0
    train_limit: int = 0
    test_limit: int = 0
    seed: int = 0


@dataclass(frozen=True)
class TextOptions:
    """Token ids as Keras has them: 0 pads, rank r (from 1) is r + index_from if below `vocabulary`."""

    vocabulary: int = 5000
    length: int = 500
    padding: str = "front"  # the side on which reviews are padded and cut
    embedding: int = 0  # width of a frozen embedding; 0: none
    start_char: int = 1
    oov_char: int = 2
    index_from: int = 3
    train_limit: int = 0
    test_limit: int = 0
    seed: int = 0


def parse_options(known: DataSet, options: Mapping[str, Any]) -> ImageOptions | TextOptions:
    """Return the checked options; UserError names the option that is unknown or impossible."""
    kind = ImageOptions if known.form == "image" else TextOptions
    names = [each.name for each in fields(kind)]
    for name in options:
        if name not in names:
            raise UserError(f"The data set '{known.name}' has no option '{name}'.{nearest(name, names)}")
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
    _check_types(known, kind, values)
    build: Callable[..., ImageOptions | TextOptions] = kind
    parsed = build(**values)
    for wrong, sentence in _checks(known, parsed):
        if wrong:
            raise UserError(f"The data set '{known.name}': {sentence}")
    return parsed


def as_json(options: ImageOptions | TextOptions) -> dict[str, Any]:
    """Return the options as plain values."""
    return asdict(options)


def _check_types(known: DataSet, kind: type[ImageOptions | TextOptions], values: dict[str, Any]) -> None:
    defaults = {each.name: each.default for each in fields(kind)}
    for name, value in values.items():
        wanted = type(defaults[name])
        numbers = value if isinstance(value, tuple) else ()
        whole = all(isinstance(each, int | float) for each in numbers)
        if isinstance(value, bool) or not isinstance(value, wanted) or not whole:
            raise UserError(
                f"The data set '{known.name}' got {name} = {value!r}; it must be like {defaults[name]!r}."
            )


def _checks(known: DataSet, options: ImageOptions | TextOptions) -> list[tuple[bool, str]]:
    limits = [
        (options.train_limit < 0, "train_limit must not be negative."),
        (options.test_limit < 0, "test_limit must not be negative."),
        (options.seed < 0, "seed must not be negative."),
    ]
    return limits + (
        _image_checks(known, options) if isinstance(options, ImageOptions) else _text_checks(options)
    )


def _image_checks(known: DataSet, options: ImageOptions) -> list[tuple[bool, str]]:
    channels, height, width = known.shape
    return [
        (
            len(options.mean) not in (1, channels),
            f"mean needs one number, or one for each of {channels} channels.",
        ),
        (
            len(options.std) not in (1, channels),
            f"std needs one number, or one for each of {channels} channels.",
        ),
        (min(options.std) <= 0, "std must be above 0."),
        (0 < options.pad_to < max(height, width), f"pad_to is below the image's own size, {height}x{width}."),
        (options.pad_to < 0, "pad_to must not be negative."),
    ]


def _text_checks(options: TextOptions) -> list[tuple[bool, str]]:
    reserved = max(options.start_char, options.oov_char, options.index_from)
    return [
        (
            options.vocabulary <= reserved + 1,
            f"vocabulary must be above {reserved + 1}, the reserved ids and a word.",
        ),
        (options.vocabulary > 2**31 - 1, "vocabulary does not fit 32-bit ids."),
        (
            min(options.start_char, options.oov_char) < 1,
            "start_char and oov_char must be above the padding id 0.",
        ),
        (options.index_from < 0, "index_from must not be negative."),
        (options.length < 1, "length must be at least 1."),
        (
            options.padding not in ("front", "end"),
            f"padding is '{options.padding}'; it must be 'front' or 'end'.",
        ),
        (options.embedding < 0, "embedding must not be negative."),
    ]
