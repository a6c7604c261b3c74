"""The options in the `[data]` table of a preset, one class per form of data set, with their checks.

The names and defaults of options are part of the cache key of prepared data: changing one makes all caches stale.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from steelyard.errors import UserError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from steelyard.inputs.data.catalogue import DataSet

Checks = list[tuple[bool, str]]  # (does the error apply, the sentence that describes it)
MAX_ID = 2**31 - 1
VOCABULARY_TOO_LARGE = "vocabulary does not fit 32-bit ids."
ODD_WINDOW = "window must be an even number of samples."


@dataclass(frozen=True)
class ImageOptions:
    """How images are normalised, resized and augmented.

    mean, std: per channel, after division by 255. pad_to: height and width after padding with pixel 0.
    resize: length of the short side in pixels (bilinear). crop: side of the centre square, for images of different sizes.
    augment changes the training images once, during preparation. Images of one size are shifted by up to 4 pixels, and
    the border is filled with zeros. From images of different sizes a random part (8 to 100 % of the area, aspect
    ratio 3:4 to 4:3) is resized to `crop`. Half of the images are mirrored.
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

    def checks(self, shape: tuple[int, ...]) -> Checks:
        """Return the checks for images of a shape: (channels, height, width), or (channels,) if sizes differ."""
        channels, *size = shape
        return [
            (min(self.resize, self.crop, self.pad_to) < 0, "resize, crop and pad_to must not be negative."),
            (len(self.mean) not in (1, channels), f"mean needs one number, or one for each of {channels} channels."),
            (len(self.std) not in (1, channels), f"std needs one number, or one for each of {channels} channels."),
            (min(self.std) <= 0, "std must be above 0."),
            *(self._fixed_size_checks(*size) if size else self._varying_size_checks()),
        ]

    def _fixed_size_checks(self, height: int, width: int) -> Checks:
        final = (self.resize, self.resize) if self.resize else (height, width)
        return [
            (self.crop > 0, f"crop is for images of different sizes; these are all {height}x{width}."),
            (self.resize > 0 and height != width, "resize is for square images."),
            (0 < self.pad_to < max(final), f"pad_to is below the image size, {final[0]}x{final[1]}."),
        ]

    def _varying_size_checks(self) -> Checks:
        return [
            (self.crop < 1, "crop must be at least 1, because the images have different sizes."),
            (self.resize < self.crop, "resize, the short side, must not be below crop."),
            (self.pad_to > 0, "pad_to is for images of one size."),
        ]


@dataclass(frozen=True)
class TextOptions:
    """Token ids as in Keras: 0 is padding; rank r (from 1) becomes r + index_from if that is below `vocabulary`.

    padding: the side on which reviews are padded and truncated, "front" or "end". embedding: width of a frozen
    embedding; 0 for none.
    """

    vocabulary: int = 5000
    length: int = 500
    padding: str = "front"
    embedding: int = 0
    start_char: int = 1
    oov_char: int = 2
    index_from: int = 3
    train_limit: int = 0
    test_limit: int = 0
    seed: int = 0

    def checks(self) -> Checks:
        """Return the checks for reviews."""
        reserved = max(self.start_char, self.oov_char, self.index_from)
        return [
            (
                self.vocabulary <= reserved + 1,
                f"vocabulary must be above {reserved + 1}: the reserved ids and one word.",
            ),
            (self.vocabulary > MAX_ID, VOCABULARY_TOO_LARGE),
            (min(self.start_char, self.oov_char) < 1, "start_char and oov_char must be above the padding id 0."),
            (self.index_from < 0, "index_from must not be negative."),
            (self.length < 1, "length must be at least 1."),
            (self.padding not in ("front", "end"), f"padding is '{self.padding}'; it must be 'front' or 'end'."),
            (self.embedding < 0, "embedding must not be negative."),
        ]


@dataclass(frozen=True)
class SpeechOptions:
    """Folders of the two splits, and the size of a prepared utterance in frames and letters. Longer ones are left out.

    window, hop: of the Fourier transform, in samples of 1/16,000 s. A spectrogram has window / 2 + 1 bins.
    """

    train_split: str = "train-clean-100"
    test_split: str = "test-clean"
    frames: int = 1270
    transcript: int = 256
    window: int = 320
    hop: int = 160
    train_limit: int = 0
    test_limit: int = 0

    def checks(self) -> Checks:
        """Return the checks for speech."""
        splits = (self.train_split, self.test_split)
        return [
            (not all(splits) or any(set(name) & set("/\\") for name in splits), "a split is the name of one folder."),
            (min(self.frames, self.transcript, self.hop) < 1, "frames, transcript and hop must be at least 1."),
            (self.window < 2 or self.window % 2 == 1, ODD_WINDOW),
        ]


@dataclass(frozen=True)
class PairOptions:
    """The shared vocabulary of both languages, and the largest number of pieces in a source and a target sentence.

    source and target include the begin and end tokens.
    """

    vocabulary: int = 32320
    source: int = 50
    target: int = 50
    train_limit: int = 0
    test_limit: int = 0

    def checks(self) -> Checks:
        """Return the checks for parallel text."""
        return [
            (self.vocabulary < 5, "vocabulary must be at least 5: four special tokens and one piece."),
            (self.vocabulary > MAX_ID, VOCABULARY_TOO_LARGE),
            (min(self.source, self.target) < 3, "source and target must be at least 3: begin, one piece, end."),
        ]


@dataclass(frozen=True)
class ClipOptions:
    """The size of a prepared clip in characters and frames (longer ones are left out), and its mel spectrogram.

    rate: samples per second that every recording must have. window, hop: of the Fourier transform, in samples.
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

    def checks(self) -> Checks:
        """Return the checks for clips."""
        smallest = min(self.characters, self.frames, self.mels, self.hop)
        return [
            (smallest < 1, "characters, frames, mels and hop must be at least 1."),
            (self.window < 2 or self.window % 2 == 1, ODD_WINDOW),
            (self.rate < 16_000, "rate must be at least 16000, because the mel bands reach up to 8000 Hz."),
        ]


@dataclass(frozen=True)
class LanguageOptions:
    """The vocabulary, and the BERT samples: `length` word pieces, at most `masked` of them masked.

    short_share: share of the samples that are made shorter than `length`. copies: passes over the training text, each
    with other pairs and masks (BERT was published with 10). train_split, test_split: names of official splits.
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

    def checks(self) -> Checks:
        """Return the checks for running text."""
        return [
            (self.vocabulary < 100, "vocabulary must be at least 100: five special tokens, characters and pieces."),
            (self.vocabulary > MAX_ID, VOCABULARY_TOO_LARGE),
            (self.length < 8, "length must be at least 8: three special tokens, and words on both sides."),
            (not 1 <= self.masked <= self.length - 3, "masked must be from 1 to length minus three special tokens."),
            (not 0 <= self.short_share <= 1, "short_share must be from 0 to 1."),
            (self.copies < 1, "copies must be at least 1."),
        ]


Options = ImageOptions | TextOptions | SpeechOptions | PairOptions | ClipOptions | LanguageOptions
OPTIONS_OF_FORM: dict[str, type[Options]] = {
    "image": ImageOptions, "text": TextOptions, "speech": SpeechOptions, "pairs": PairOptions, "clips": ClipOptions,
    "language": LanguageOptions,
}  # fmt: skip


def parse_options(data_set: DataSet, options: Mapping[str, Any]) -> Options:
    """Return the checked options; UserError names an unknown option or an invalid value."""
    kind = OPTIONS_OF_FORM[data_set.form]
    names = [option.name for option in fields(kind)]
    for name in options:
        if name not in names:
            raise UserError(f"The data set '{data_set.name}' has no option '{name}'.{nearest(name, names)}")
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
    _check_types(data_set, kind, values)
    build: Callable[..., Options] = kind
    parsed = build(**values)
    checks = parsed.checks(data_set.shape) if isinstance(parsed, ImageOptions) else parsed.checks()
    for wrong, sentence in _not_negative(parsed) + checks:
        if wrong:
            raise UserError(f"The data set '{data_set.name}': {sentence}")
    return parsed


def _check_types(data_set: DataSet, kind: type[Options], values: dict[str, Any]) -> None:
    defaults = {option.name: option.default for option in fields(kind)}
    for name, value in values.items():
        expected = type(defaults[name])
        all_numbers = all(isinstance(number, int | float) for number in (value if isinstance(value, tuple) else ()))
        # bool is a subclass of int, so `True` would pass as a number.
        if isinstance(value, bool) != (expected is bool) or not isinstance(value, expected) or not all_numbers:
            raise UserError(
                f"The data set '{data_set.name}' got {name} = {value!r}; use a value of the same type as {defaults[name]!r}."
            )


def _not_negative(options: Options) -> Checks:
    names = ("train_limit", "test_limit", "seed")
    return [(getattr(options, name, 0) < 0, f"{name} must not be negative.") for name in names]
