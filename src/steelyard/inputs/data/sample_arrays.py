"""Which arrays a data set gives for each sample, known from its options before anything is read."""

from collections.abc import Iterable, Sequence

from steelyard.errors import UserError
from steelyard.inputs.data.catalogue import DataSet
from steelyard.inputs.data.options import (
    ClipOptions,
    ImageOptions,
    LanguageOptions,
    Options,
    PairOptions,
    RunningTextOptions,
    SpeechOptions,
    TextOptions,
)
from steelyard.inputs.data.transforms import ImageTransform
from steelyard.statistics.metrics import LETTERS
from steelyard_worker.network import Input

INTEGER, FLOAT = "int32", "float32"


def arrays_of(data_set: DataSet, options: Options) -> tuple[Input, ...]:
    """Return name, shape, dtype and bound of every array that a sample has; empty if only the data itself shows it.

    `high`: whole numbers are below it; 0 where the options do not say.
    """
    match options:
        case ImageOptions():
            return (Input("image", _image_shape(data_set, options), FLOAT), _number("label"))
        case TextOptions():
            return (Input("tokens", (options.length,), INTEGER, options.vocabulary), _number("label"))
        case SpeechOptions():
            spectrogram = Input("spectrogram", (1, options.window // 2 + 1, options.frames), FLOAT)
            transcript = Input("transcript", (options.transcript,), INTEGER, len(LETTERS))
            return (spectrogram, _number("frames"), transcript, _number("transcript_length"))
        case PairOptions():
            source = Input("source", (options.source,), INTEGER, options.vocabulary)
            return (source, _number("source_length"), Input("target", (options.target,), INTEGER, options.vocabulary))
        case ClipOptions():
            text = Input("text", (options.characters,), INTEGER)
            mel = Input("mel", (options.mels, options.frames), FLOAT)
            return (text, _number("text_length"), mel, _number("mel_length"))
        case LanguageOptions():
            return _masked(options)
        case RunningTextOptions():
            return tuple(
                Input(name, (options.length,), INTEGER, options.vocabulary)
                for name in (options.tokens, options.targets)
            )
    return ()


def _image_shape(data_set: DataSet, options: ImageOptions) -> tuple[int, ...]:
    channels, *size = data_set.shape
    _, *sides = ImageTransform(channels, tuple(size), options).shape
    return (channels, *(max(side, options.pad_to) for side in sides))


def _masked(options: LanguageOptions) -> tuple[Input, ...]:
    pieces, length, masked = options.vocabulary, (options.length,), (options.masked,)
    return (
        Input("input_ids", length, INTEGER, pieces),
        Input("input_mask", length, INTEGER),
        Input("segment_ids", length, INTEGER),
        Input("masked_lm_positions", masked, INTEGER),
        Input("masked_lm_ids", masked, INTEGER, pieces),
        Input("masked_lm_weights", masked, FLOAT),
        _number("next_sentence_label"),
    )


def _number(name: str) -> Input:
    return Input(name, (), INTEGER)


def check_inputs(declared: Sequence[Input], given: Sequence[Input], data: str, preset: str) -> None:
    """Compare the inputs of a network with the arrays that its data gives. UserError names the first that differs."""
    by_name = {each.name: each for each in given}
    for wanted in declared:
        held = by_name.get(wanted.name)
        if held is None:
            found, expected = "is missing", described([wanted])
        elif tuple(held.shape) != tuple(wanted.shape) or held.dtype != wanted.dtype:
            found, expected = f"is {described([held])}", described([wanted])
        elif wanted.high and held.high > wanted.high:
            found, expected = f"has values below {held.high:,}", f"values below {wanted.high:,}"
        else:
            continue
        raise UserError(
            f"{preset}: the input '{wanted.name}' {found} in the data '{data}', but the network declares {expected}. The data "
            f"gives {described(given)}. Change the sizes, the [data] table of the preset, or the inputs of the network."
        )


def described(inputs: Iterable[Input]) -> str:
    """Return names, dtypes and shapes of inputs in words, such as "tokens int32 (64,)"."""
    return ", ".join(f"{each.name} {each.dtype} {tuple(each.shape)}" for each in inputs)
