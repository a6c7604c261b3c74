"""The shapes of a sample's arrays, as the options of a data set decide them before anything is prepared."""

from steelyard.inputs.data.options import (
    ClipOptions,
    ImageOptions,
    LanguageOptions,
    Options,
    PairOptions,
    SpeechOptions,
    TextOptions,
)
from steelyard.inputs.data.transforms import ImageTransform

Shapes = dict[str, tuple[int, ...]]


def shapes(options: Options, image: tuple[int, ...] = ()) -> Shapes:
    """Return the shape per sample of every array, by the name of the input.

    `image`: of the stored images of the data set: (channels, height, width), or (channels,) where their sizes differ.
    """
    match options:
        case ImageOptions():
            return {"image": _image(options, image), "label": ()}
        case TextOptions(length=length):
            return {"tokens": (length,), "label": ()}
        case SpeechOptions(window=window, frames=frames, transcript=letters):
            spectrogram = (1, window // 2 + 1, frames)
            return {"spectrogram": spectrogram, "frames": (), "transcript": (letters,), "transcript_length": ()}
        case ClipOptions(mels=mels, frames=frames, characters=characters):
            return {"mel": (mels, frames), "mel_length": (), "text": (characters,), "text_length": ()}
        case PairOptions(source=source, target=target):
            return {"source": (source,), "source_length": (), "target": (target,)}
        case LanguageOptions():
            return _language(options)
    return {}


def _image(options: ImageOptions, stored: tuple[int, ...]) -> tuple[int, ...]:
    channels, *size = ImageTransform(stored[0], stored[1:], options).shape
    return (channels, *(max(each, options.pad_to) for each in size))


def _language(options: LanguageOptions) -> Shapes:
    length, masked = (options.length,), (options.masked,)
    found: Shapes = dict.fromkeys(("input_ids", "input_mask", "segment_ids"), length)
    found |= {f"masked_lm_{name}": masked for name in ("positions", "ids", "weights")}
    return found | {"next_sentence_label": ()}
