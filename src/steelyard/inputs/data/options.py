"""The options in the `[data]` table of a preset, one class per form of data set, with their checks.

The names and defaults of options are part of the cache key of prepared data: changing one makes all caches stale. A new
option that does nothing by default has `newer` in its metadata, and then it does not.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from steelyard.errors import UserError, nearest
from steelyard.files.ranges import Range
from steelyard.inputs.data.catalogue import DataSet

Checks = list[tuple[bool, str]]  # (does the error apply, the sentence that describes it)
MAX_ID = 2**31 - 1
# Shifts beyond one standard deviation of all colours leave little of an image.
MAX_SHIFT = 1.0
ODD_WINDOW = "window must be an even number of samples."


def _at_least(least: int, default: int, why: str = "") -> Any:
    """Return a field for a number with a smallest value; `why` explains it in the error message."""
    return field(default=default, metadata={"range": Range(least, why=why)})


@dataclass(frozen=True)
class Options:
    """What all forms have in common: the largest number of samples of each split (0: all).

    A number must not be negative, unless `_at_least` gives it another smallest value.
    """

    train_limit: int = 0
    test_limit: int = 0

    @property
    def key(self) -> dict[str, Any]:
        """The options by name, for the key of prepared data; newer ones that do nothing are left out."""
        newer = {
            each.name
            for each in fields(self)
            if each.metadata.get("newer") and getattr(self, each.name) == each.default
        }
        return {name: value for name, value in asdict(self).items() if name not in newer}

    def checks(self) -> Checks:
        """Return the checks of this form, apart from those of types and smallest values."""
        return []


@dataclass(frozen=True)
class SeededOptions(Options):
    """The options of forms whose preparation is partly random, such as the choice of the test samples."""

    seed: int = 0


@dataclass(frozen=True)
class ImageOptions(SeededOptions):
    """How images are normalised, resized and augmented.

    mean, std: per channel, after division by 255. pad_to: height and width after padding with pixel 0.
    resize: length of the short side in pixels (bilinear). crop: side of the centre square, for images of different sizes.
    augment changes the training images once, during preparation. Images of one size are shifted by up to 4 pixels, and
    the border is filled with zeros. From images of different sizes a random part (8 to 100 % of the area, aspect
    ratio 3:4 to 4:3) is resized to `crop`. Half of the images are mirrored.
    colour_shift: standard deviation of a random shift of the colours of each training image, also drawn once; published with 0.1.
    """

    mean: tuple[float, ...] = (0.5,)
    std: tuple[float, ...] = (0.5,)
    pad_to: int = 0
    resize: int = 0
    crop: int = 0
    augment: bool = False
    colour_shift: float = field(default=0.0, metadata={"newer": True})

    def checks_for(self, shape: tuple[int, ...]) -> Checks:
        """Return the checks for images of a shape: (channels, height, width), or (channels,) if sizes differ."""
        channels, *size = shape
        found: Checks = [
            (len(self.mean) not in (1, channels), f"mean needs one number, or one for each of {channels} channels."),
            (len(self.std) not in (1, channels), f"std needs one number, or one for each of {channels} channels."),
            (min(self.std) <= 0, "std must be above 0."),
            (not 0 <= self.colour_shift <= MAX_SHIFT, f"colour_shift must be from 0 to {MAX_SHIFT:g}."),
            (self.colour_shift > 0 and channels != 3, "colour_shift is for images of three colours."),
        ]
        if not size:
            return [
                *found,
                (self.crop < 1, "crop must be at least 1, because the images have different sizes."),
                (self.resize < self.crop, "resize, the short side, must not be below crop."),
                (self.pad_to > 0, "pad_to is for images of one size."),
            ]
        height, width = size
        final = (self.resize, self.resize) if self.resize else (height, width)
        return [
            *found,
            (self.crop > 0, f"crop is for images of different sizes; these are all {height}x{width}."),
            (self.resize > 0 and height != width, "resize is for square images."),
            (0 < self.pad_to < max(final), f"pad_to is below the image size, {final[0]}x{final[1]}."),
        ]


@dataclass(frozen=True)
class TextOptions(SeededOptions):
    """Token ids as in Keras: 0 is padding; rank r (from 1) becomes r + index_from if that is below `vocabulary`.

    padding: the side on which reviews are padded and truncated, "front" or "end". embedding: width of a frozen
    embedding; 0 for none.
    """

    vocabulary: int = 5000
    length: int = _at_least(1, 500)
    padding: str = "front"
    embedding: int = 0
    start_char: int = _at_least(1, 1, "0 is the padding id")
    oov_char: int = _at_least(1, 2, "0 is the padding id")
    index_from: int = 3

    def checks(self) -> Checks:
        least = max(self.start_char, self.oov_char, self.index_from) + 1
        return [
            (self.vocabulary <= least, f"vocabulary must be above {least}: the reserved ids and one word."),
            (self.padding not in ("front", "end"), f"padding is '{self.padding}'; it must be 'front' or 'end'."),
        ]


@dataclass(frozen=True)
class SpeechOptions(Options):
    """Folders of the two splits, and the size of a prepared utterance in frames and letters. Longer ones are left out.

    window, hop: of the Fourier transform, in samples of 1/16,000 s. A spectrogram has window / 2 + 1 bins.
    """

    train_split: str = "train-clean-100"
    test_split: str = "test-clean"
    frames: int = _at_least(1, 1270)
    transcript: int = _at_least(1, 256)
    window: int = _at_least(2, 320)
    hop: int = _at_least(1, 160)

    def checks(self) -> Checks:
        splits = (self.train_split, self.test_split)
        return [
            (not all(splits) or any(set(name) & set("/\\") for name in splits), "a split is the name of one folder."),
            (self.window % 2 == 1, ODD_WINDOW),
        ]


@dataclass(frozen=True)
class PairOptions(Options):
    """The shared vocabulary of both languages, and the largest number of pieces in a source and a target sentence.

    source and target include the begin and end tokens.
    """

    vocabulary: int = _at_least(5, 32320, "four special tokens and one piece")
    source: int = _at_least(3, 50, "begin, one piece, end")
    target: int = _at_least(3, 50, "begin, one piece, end")


@dataclass(frozen=True)
class ClipOptions(SeededOptions):
    """The size of a prepared clip in characters and frames (longer ones are left out), and its mel spectrogram.

    rate: samples per second that every recording must have. window, hop: of the Fourier transform, in samples.
    """

    characters: int = _at_least(1, 190)
    frames: int = _at_least(1, 870)
    rate: int = _at_least(16_000, 22050, "the mel bands reach up to 8000 Hz")
    mels: int = _at_least(1, 80)
    window: int = _at_least(2, 1024)
    hop: int = _at_least(1, 256)

    def checks(self) -> Checks:
        return [(self.window % 2 == 1, ODD_WINDOW)]


@dataclass(frozen=True)
class LanguageOptions(SeededOptions):
    """The vocabulary, and the BERT samples: `length` word pieces, at most `masked` of them masked.

    short_share: share of the samples that are made shorter than `length`. copies: passes over the training text, each
    with other pairs and masks (BERT was published with 10). train_split, test_split: names of official splits.
    """

    vocabulary: int = _at_least(100, 30522, "five special tokens, characters and pieces")
    length: int = _at_least(8, 128, "three special tokens, and words on both sides")
    masked: int = 20
    short_share: float = 0.1
    copies: int = _at_least(1, 1)
    train_split: str = "train"
    test_split: str = "test"

    def checks(self) -> Checks:
        return [
            (not 1 <= self.masked <= self.length - 3, "masked must be from 1 to length minus three special tokens."),
            (not 0 <= self.short_share <= 1, "short_share must be from 0 to 1."),
        ]


CHARACTERS, BYTES = "characters", "bytes"


@dataclass(frozen=True)
class RunningTextOptions(Options):
    """Samples for the prediction of the next token: `length` tokens, and the same text one token later.

    tokenizer: "characters", "bytes" of UTF-8, or the name of a file of the library `tokenizers` (JSON) beside the text.
    vocabulary: ids are below it. Characters are numbered from 1 by how often the training text has them; 0 stands for those that
    it lacks, and for the rarest where there are more than `vocabulary` allows. tokens, targets: the names of the two inputs.
    """

    length: int = _at_least(1, 64)
    vocabulary: int = _at_least(2, 256, "an unknown character and another one")
    tokenizer: str = CHARACTERS
    tokens: str = "tokens"
    targets: str = "targets"

    @property
    def tokenizer_file(self) -> str:
        """The name of the file beside the text that cuts it into tokens; empty if none does."""
        return "" if self.tokenizer in (CHARACTERS, BYTES) else self.tokenizer

    def checks(self) -> Checks:
        return [
            (self.tokenizer == BYTES and self.vocabulary < 256, "vocabulary must be at least 256 for bytes."),
            (
                bool(self.tokenizer_file) and not self.tokenizer_file.endswith(".json"),
                f"tokenizer is '{self.tokenizer}'; it must be '{CHARACTERS}', '{BYTES}' or the name of a .json file.",
            ),
            (self.tokens == self.targets or not (self.tokens and self.targets), "tokens and targets need two names."),
        ]


OPTIONS_OF_FORM: dict[str, type[Options]] = {
    "image": ImageOptions,
    "text": TextOptions,
    "speech": SpeechOptions,
    "pairs": PairOptions,
    "clips": ClipOptions,
    "language": LanguageOptions,
    "arrays": SeededOptions,
    "running": RunningTextOptions,
    "code": SeededOptions,
}


def parse_options(data_set: DataSet, options: Mapping[str, Any]) -> Options:
    """Return the checked options; UserError names an unknown option or an invalid value."""
    kind = OPTIONS_OF_FORM[data_set.form]
    known = {option.name: option for option in fields(kind)}
    for name in options:
        if name not in known:
            raise UserError(f"The data set '{data_set.name}' has no option '{name}'.{nearest(name, list(known))}")
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
    for name, value in values.items():
        if not _has_type_of(known[name].default, value):
            raise UserError(
                f"The data set '{data_set.name}' got {name} = {value!r}; use a value of the same type as "
                f"{known[name].default!r}."
            )
    build: Callable[..., Options] = kind
    parsed = build(**values)
    checks = [*_number_checks(parsed), *parsed.checks()]
    if isinstance(parsed, ImageOptions):
        checks += parsed.checks_for(data_set.shape)
    for wrong, sentence in checks:
        if wrong:
            raise UserError(f"The data set '{data_set.name}': {sentence}")
    return parsed


def _has_type_of(default: Any, value: Any) -> bool:
    all_numbers = all(isinstance(number, int | float) for number in (value if isinstance(value, tuple) else ()))
    # bool is a subclass of int, so `True` would pass as a number.
    return isinstance(value, type(default)) and isinstance(value, bool) == isinstance(default, bool) and all_numbers


def _number_checks(options: Options) -> Checks:
    found = [(getattr(options, "vocabulary", 0) > MAX_ID, "vocabulary does not fit 32-bit ids.")]
    for option in fields(options):
        value, allowed = getattr(options, option.name), option.metadata.get("range", Range(0))
        if isinstance(value, int) and not allowed.holds(value):
            found.append((True, f"{option.name} must be {allowed.words}."))
    return found
