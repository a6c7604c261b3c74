"""What data sets of recordings with texts have in common: finding both, and arrays of fixed size with their lengths."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from steelyard.errors import UserError
from steelyard.inputs.data.damage import MissingData, refusing
from steelyard.inputs.data.parallel import threaded_map
from steelyard.inputs.data.work import Work
from steelyard_worker.tensors import Writer

Floats = np.ndarray[Any, np.dtype[np.float32]]
Ids = np.ndarray[Any, np.dtype[np.int32]]

METADATA = "metadata.csv"
AUDIO_FOLDERS = {"wavs": ".wav", "flac": ".flac"}
REPORT_RECORDINGS = 64


@dataclass(frozen=True)
class Recording:
    """One recording, its text, and its position in the official order."""

    path: Path
    text: str
    position: int


@dataclass(frozen=True)
class Utterance:
    """One recording as it is prepared: file, number of frames, ids of its text int32 (L,), position in the official order."""

    path: Path
    frames: int
    ids: Ids
    position: int


class Form(NamedTuple):
    """The names of the four arrays of a split, the size of their rows, and how a spectrogram is made.

    shape: of a padded spectrogram, (..., bins, frames). transform: file -> (bins, frames of this recording).
    """

    spectrogram: str
    frames: str
    text: str
    text_length: str
    shape: tuple[int, ...]
    longest_text: int
    transform: Callable[[Path], Floats]


def write_split(writer: Writer, work: Work[Any], split: str, utterances: list[Utterance], form: Form) -> None:
    """Append the arrays of one split, padded with zeros, and `position/`."""
    count = len(utterances)

    def padded_spectrogram(utterance: Utterance) -> Floats:
        padded = np.zeros(form.shape[-2:], np.float32)
        values = form.transform(utterance.path)
        padded[:, : values.shape[1]] = values
        return padded

    writer.begin(f"{split}/{form.spectrogram}", "<f4", (count, *form.shape))
    # libsndfile and NumPy's transforms release the interpreter lock, so threads use all processors.
    for done, padded in enumerate(threaded_map(padded_spectrogram, utterances), 1):
        writer.extend(padded)
        if not done % REPORT_RECORDINGS or done == count:
            work.say(f"Writing {split} spectrograms", done, count)
    texts = np.zeros((count, form.longest_text), np.int32)
    for row, utterance in zip(texts, utterances, strict=True):
        row[: len(utterance.ids)] = utterance.ids
    writer.add(f"{split}/{form.frames}", np.array([utterance.frames for utterance in utterances], np.int32))
    writer.add(f"{split}/{form.text}", texts)
    writer.add(f"{split}/{form.text_length}", np.array([len(utterance.ids) for utterance in utterances], np.int32))
    writer.add(f"position/{split}", np.array([utterance.position for utterance in utterances], np.int32))


def read_clips(root: Path) -> list[Recording]:
    """Return the clips of LJSpeech's layout; UserError names an invalid line, or the recording that is missing for one.

    `metadata.csv` has a line `id|text|normalised text` for every `wavs/<id>.wav` (or `flac/<id>.flac`), in the official
    order. The normalised text is used where there is one.
    """
    clips: dict[str, Recording] = {}
    table = root / METADATA
    lines = read_text(table).splitlines()
    folder, suffix = audio_folder(root)
    for position, line in enumerate(lines):
        name, *texts = line.split("|")
        if not texts or not name or name in clips:
            raise UserError(
                f"{table}, line {position + 1}: {line[:40]!r} does not have the form 'id|text|normalised text' with a new id; "
                "fix the line."
            )
        path = folder / f"{name}{suffix}"
        if not path.is_file():
            raise MissingData(f"{table} lists '{name}', but {path} is missing; download it again.")
        clips[name] = Recording(path, texts[-1].strip() or texts[0], position)
    return list(clips.values())


def audio_folder(root: Path) -> tuple[Path, str]:
    """Return the folder with the recordings of LJSpeech's layout, and the suffix of their names."""
    for name, suffix in AUDIO_FOLDERS.items():
        if (root / name).is_dir():
            return root / name, suffix
    raise MissingData(f"{root} has {METADATA}, but no folder 'wavs' with the recordings; put it there.")


def read_text(path: Path) -> str:
    """Return a UTF-8 file; UserError names the byte that is not UTF-8."""
    with refusing(f"{path} is not UTF-8 text", UnicodeDecodeError):
        return path.read_text(encoding="utf-8")
