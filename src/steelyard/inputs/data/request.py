"""What is asked of a data set, and what comes back: the options of a preset's `[data]` table, checked."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from steelyard.errors import UserError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from steelyard.inputs.data.catalogue import DataSet

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
    """Normalisation per channel, after division by 255; `pad_to`: height and width, padded with pixel 0.

    `resize`: pixels of the short side, bilinear; `crop`: the square in the centre, for images of different extents.
    `augment` changes the training images, once, when they are prepared: images of one extent are shifted by up to 4 pixels
    into zeros, of others a random part (8 to 100 % of the area, 3:4 to 4:3) is resized to `crop`; half of them are mirrored.
    """

    mean: tuple[float, ...] = (0.5,)
    std: tuple[float, ...] = (0.5,)
    pad_to: int = 0
    resize: int = 0
    crop: int = 0
    augment: bool = False
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


@dataclass(frozen=True)
class SpeechOptions:
    """Folders of the two splits; the size of a prepared utterance in frames and letters (longer ones are left out).

    window, hop: of the Fourier transform, in samples of 1/16,000 s; a spectrogram has window / 2 + 1 bins.
    """

    train_split: str = "train-clean-100"
    test_split: str = "test-clean"
    frames: int = 1270
    transcript: int = 256
    window: int = 320
    hop: int = 160
    train_limit: int = 0
    test_limit: int = 0


@dataclass(frozen=True)
class PairOptions:
    """Word pieces of both languages together, and the most that a source and a target sentence may have, both marks counted."""

    vocabulary: int = 32320
    source: int = 50
    target: int = 50
    train_limit: int = 0
    test_limit: int = 0


@dataclass(frozen=True)
class ClipOptions:
    """The size of a prepared clip in characters and frames (longer ones are left out), and how its mel spectrogram is made.

    rate: samples per second that every recording must have; window, hop: of the Fourier transform, in samples.
    """

    characters: int = 190
    frames: int = 870
    rate: int = 22050
    mels: int = 80
    window: int = 1024
    hop: int = 256
    train_limit: int = 0
    test_limit: int = 0
    seed: int = 0


@dataclass(frozen=True)
class LanguageOptions:
    """Word pieces, and the samples for BERT made of them: `length` pieces, at most `masked` of them to be guessed.

    short_share: samples that are to have fewer pieces than fit. copies: times that the training text is gone through, with other
    pairs and masks every time; BERT was published with 10. train_split, test_split: names of official splits.
    """

    vocabulary: int = 30522
    length: int = 128
    masked: int = 20
    short_share: float = 0.1
    copies: int = 1
    train_split: str = "train"
    test_split: str = "test"
    train_limit: int = 0
    test_limit: int = 0
    seed: int = 0


Options = ImageOptions | TextOptions | SpeechOptions | PairOptions | ClipOptions | LanguageOptions
KINDS: dict[str, type[Options]] = {
    "image": ImageOptions, "text": TextOptions, "speech": SpeechOptions, "pairs": PairOptions, "clips": ClipOptions,
    "language": LanguageOptions,
}  # fmt: skip


def parse_options(known: DataSet, options: Mapping[str, Any]) -> Options:
    """Return the checked options; UserError names the option that is unknown or impossible."""
    kind = KINDS[known.form]
    names = [each.name for each in fields(kind)]
    for name in options:
        if name not in names:
            raise UserError(f"The data set '{known.name}' has no option '{name}'.{nearest(name, names)}")
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
    _check_types(known, kind, values)
    build: Callable[..., Options] = kind
    parsed = build(**values)
    for wrong, sentence in _checks(known, parsed):
        if wrong:
            raise UserError(f"The data set '{known.name}': {sentence}")
    return parsed


def as_json(options: Options) -> dict[str, Any]:
    """Return the options as plain values."""
    return asdict(options)


def _check_types(known: DataSet, kind: type[Options], values: dict[str, Any]) -> None:
    defaults = {each.name: each.default for each in fields(kind)}
    for name, value in values.items():
        wanted = type(defaults[name])
        numbers = value if isinstance(value, tuple) else ()
        whole = all(isinstance(each, int | float) for each in numbers)
        if isinstance(value, bool) != (wanted is bool) or not isinstance(value, wanted) or not whole:
            raise UserError(f"The data set '{known.name}' got {name} = {value!r}; it must be like {defaults[name]!r}.")


def _checks(known: DataSet, options: Options) -> list[tuple[bool, str]]:
    limits = [
        (options.train_limit < 0, "train_limit must not be negative."),
        (options.test_limit < 0, "test_limit must not be negative."),
    ]
    if isinstance(options, SpeechOptions):
        return limits + _speech_checks(options)
    if isinstance(options, PairOptions):
        return limits + _pair_checks(options)
    limits.append((options.seed < 0, "seed must not be negative."))
    if isinstance(options, ClipOptions):
        return limits + _clip_checks(options)
    if isinstance(options, LanguageOptions):
        return limits + _language_checks(options)
    return limits + (_image_checks(known, options) if isinstance(options, ImageOptions) else _text_checks(options))


def _image_checks(known: DataSet, options: ImageOptions) -> list[tuple[bool, str]]:
    channels, *extent = known.shape
    return [
        (min(options.resize, options.crop, options.pad_to) < 0, "resize, crop and pad_to must not be negative."),
        (
            len(options.mean) not in (1, channels),
            f"mean needs one number, or one for each of {channels} channels.",
        ),
        (
            len(options.std) not in (1, channels),
            f"std needs one number, or one for each of {channels} channels.",
        ),
        (min(options.std) <= 0, "std must be above 0."),
        *(_fixed_checks(options, extent) if extent else _varying_checks(options)),
    ]


def _fixed_checks(options: ImageOptions, extent: list[int]) -> list[tuple[bool, str]]:
    height, width = extent
    own = [options.resize] * 2 if options.resize else extent
    return [
        (options.crop > 0, "crop is for images of different extents; these are all " + f"{height}x{width}."),
        (options.resize > 0 and height != width, "resize is for square images."),
        (0 < options.pad_to < max(own), f"pad_to is below the image's own size, {own[0]}x{own[1]}."),
    ]


def _varying_checks(options: ImageOptions) -> list[tuple[bool, str]]:
    return [
        (options.crop < 1, "crop must be at least 1: the images are of different extents."),
        (options.resize < options.crop, "resize, the short side, must not be below crop."),
        (options.pad_to > 0, "pad_to is for images of one extent."),
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


def _pair_checks(options: PairOptions) -> list[tuple[bool, str]]:
    return [
        (options.vocabulary < 5, "vocabulary must be at least 5: four marks and a piece."),
        (options.vocabulary > 2**31 - 1, "vocabulary does not fit 32-bit ids."),
        (min(options.source, options.target) < 3, "source and target must be at least 3: a piece between two marks."),
    ]


def _speech_checks(options: SpeechOptions) -> list[tuple[bool, str]]:
    splits = (options.train_split, options.test_split)
    return [
        (not all(splits) or any(set(each) & set("/\\") for each in splits), "a split is the name of one folder."),
        (min(options.frames, options.transcript, options.hop) < 1, "frames, transcript and hop must be at least 1."),
        (options.window < 2 or options.window % 2 == 1, "window must be an even number of samples."),
    ]


def _clip_checks(options: ClipOptions) -> list[tuple[bool, str]]:
    smallest = min(options.characters, options.frames, options.mels, options.hop)
    return [
        (smallest < 1, "characters, frames, mels and hop must be at least 1."),
        (options.window < 2 or options.window % 2 == 1, "window must be an even number of samples."),
        (options.rate < 16_000, "rate must be at least 16000: the bands reach up to 8000 Hz."),
    ]


def _language_checks(options: LanguageOptions) -> list[tuple[bool, str]]:
    return [
        (options.vocabulary < 100, "vocabulary must be at least 100: five marks, characters and pieces."),
        (options.vocabulary > 2**31 - 1, "vocabulary does not fit 32-bit ids."),
        (options.length < 8, "length must be at least 8: three marks, and words on both sides."),
        (not 1 <= options.masked <= options.length - 3, "masked must be from 1 to length less three marks."),
        (not 0 <= options.short_share <= 1, "short_share must be from 0 to 1."),
        (options.copies < 1, "copies must be at least 1."),
        (options.seed < 0, "seed must not be negative."),
    ]
