"""What data sets of recordings with texts have in common: finding both, and arrays of fixed size with their lengths."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from steelyard.errors import UserError
from steelyard.inputs.data.archives import list_files
from steelyard.inputs.data.damage import MissingData, check_regular
from steelyard.inputs.data.inventory import accepted, attempted, refuse
from steelyard.inputs.data.parallel import threaded_map
from steelyard.inputs.data.text_files import lines_of, read_text
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
    notes: tuple[str, ...] = ()  # what of its text is changed


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
    for done, padded in enumerate(accepted(threaded_map(attempted(padded_spectrogram), utterances)), 1):
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
    """Return the clips of LJSpeech's layout. UserError names invalid lines, and recordings that are missing or in no line.

    `metadata.csv` has a line `id|text|normalised text` for every `wavs/<id>.wav` (or `flac/<id>.flac`), in the official
    order. The normalised text is used where there is one. Empty lines are passed over.
    """
    clips: dict[str, Recording] = {}
    table = root / METADATA
    folder, suffix = audio_folder(root)

    def clip(numbered: tuple[int, str]) -> Recording:
        position, line = numbered
        name, text = _fields(line, f"{table}, line {position + 1}")
        if name in clips:
            raise UserError(f"{table}, line {position + 1}: '{name}' has a line already; every id has one line.")
        path = folder / f"{name}{suffix}"
        if not path.is_file():
            raise MissingData(
                f"{table}, line {position + 1}, lists '{name}', but {path} is missing; put it there, or remove the line."
            )
        clips[name] = Recording(path, text, position)
        return clips[name]

    check_regular(table)
    lines = enumerate(lines_of(read_text(table)))
    held = list(accepted(map(attempted(clip), (line for line in lines if line[1].strip()))))
    _check_all_have_text(root, folder, suffix, set(clips))
    return held


def _fields(line: str, where: str) -> tuple[str, str]:
    """Return the id and the text of a line of the table."""
    name, *texts = line.split("|")
    if not texts or not name:
        raise UserError(f"{where}: {line[:40]!r} does not have the form 'id|text|normalised text'; fix the line.")
    if len(texts) > 2:
        raise UserError(
            f"{where}, has {len(texts) + 1} fields instead of two or three, 'id|text|normalised text'; write bars within a "
            "text in another way."
        )
    return name, texts[-1].strip() or texts[0]


def _check_all_have_text(root: Path, folder: Path, suffix: str, known: set[str]) -> None:
    names = list_files(folder, re.compile(rf"^[^/]+{re.escape(suffix)}$"))
    refuse(
        [
            UserError(
                f"{folder / name} has no text: no line of {root / METADATA} begins with '{Path(name).stem}|'. Add the line, or "
                "remove the recording."
            )
            for name in names
            if name.removesuffix(suffix) not in known
        ]
    )


def audio_folder(root: Path) -> tuple[Path, str]:
    """Return the folder with the recordings of LJSpeech's layout, and the suffix of their names."""
    for name, suffix in AUDIO_FOLDERS.items():
        if (root / name).is_dir():
            return root / name, suffix
    raise MissingData(f"{root} has {METADATA}, but no folder 'wavs' with the recordings; put it there.")


def measured(
    work: Work[Any], recordings: Iterable[Recording], measure: Callable[[Recording], Utterance]
) -> list[Utterance]:
    """Return what is known from the headers and texts, read by threads, and count texts that are changed.

    UserError names all recordings that cannot be used.
    """
    held = list(accepted(threaded_map(attempted(measure), recordings)))
    for utterance in held:
        for note in utterance.notes:
            work.inventory.change(note, utterance.path.name)
    return held


def leave_out_long(work: Work[Any], what: str, held: list[Utterance], fitting: list[Utterance], longer: str) -> None:
    """Count and report the recordings that do not fit the arrays."""
    fit = {id(utterance) for utterance in fitting}
    dropped = [utterance for utterance in held if id(utterance) not in fit]
    for utterance in dropped:
        work.inventory.leave_out(f"{what} {longer}", utterance.path.name)
    if dropped:
        work.say(f"Left out {len(dropped):,} of {len(held):,} {what}: {longer}")


def check_recordings(utterances: Iterable[Utterance], transform: Callable[[Path], Floats]) -> None:
    """Read recordings one after the other. UserError names all that cannot be read."""
    for _ in accepted(map(attempted(transform), (utterance.path for utterance in utterances))):
        pass
