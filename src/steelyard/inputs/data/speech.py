"""Recordings with transcripts -> spectrograms of fixed size, with lengths and letters.

A spectrogram is log(1 + |S|) of the short-time Fourier transform of samples from -1 to 1. Windows are symmetric Hamming
windows that lie completely inside the recording. Each utterance is normalised to mean 0 and standard deviation 1, then padded
with zeros to `frames`.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import UserError
from steelyard.host import usable_cores
from steelyard.inputs.data.audio import count_samples, read_samples
from steelyard.inputs.data.parallel import bounded_map
from steelyard.inputs.data.request import Progress
from steelyard.inputs.data.transcripts import TranscribedRecording, read_chapters, read_clip_table
from steelyard.statistics.metrics import LETTERS
from steelyard_worker.tensors import Writer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from steelyard.inputs.data.catalogue import DataSet
    from steelyard.inputs.data.options import SpeechOptions
    from steelyard.inputs.data.request import Report
    from steelyard.inputs.data.source import Source

    Floats = np.ndarray[Any, np.dtype[np.float32]]
    Codes = np.ndarray[Any, np.dtype[np.int32]]

RATE = 16_000  # samples per second
REPORT_UTTERANCES = 64


@dataclass(frozen=True)
class Utterance:
    """One recording: file, number of frames, letters as classes int32 (L,), and position in the official order."""

    path: Path
    frames: int
    codes: Codes
    position: int


READERS: dict[str, Callable[[Path, SpeechOptions], dict[str, list[TranscribedRecording]]]] = {
    "chapters": read_chapters,
    "clips": read_clip_table,
}


def restrict_to_splits(data_set: DataSet, options: SpeechOptions) -> DataSet:
    """Return a data set with official splits reduced to the two requested ones, so that other splits do not matter."""
    if data_set.reader != "chapters":
        return data_set
    splits = "|".join(re.escape(name) for name in (options.train_split, options.test_split))
    layouts = tuple(replace(layout, contains=options.train_split) for layout in data_set.layouts)
    return replace(data_set, layouts=layouts, files=rf"^({splits})/{data_set.files}")


def write_speech(folder: Path, source: Source, options: SpeechOptions, meta: dict[str, Any], report: Report) -> None:
    """Write `train/` and `test/` spectrogram float32 (N, 1, bins, frames), frames, transcript, transcript_length; `position/`.

    All but the spectrogram are int32. UserError names a split without utterances, or a recording that is damaged, has
    another sampling rate, or has no transcript.
    """
    limits = {"train": options.train_limit, "test": options.test_limit}
    # libsndfile and NumPy's transforms release the interpreter lock, so threads use all processors.
    with ThreadPoolExecutor(usable_cores()) as pool:
        chosen = {}
        for name, recordings in READERS[source.data.reader](source.path, options).items():
            report(Progress(f"Reading the headers of the {name} split", 0, len(recordings)))
            found = list(bounded_map(pool, lambda recording: _measure(recording, options), recordings))
            fitting = [u for u in found if u.frames <= options.frames and len(u.codes) <= options.transcript]
            chosen[name] = fitting[: limits[name] or None]
            dropped = len(found) - len(fitting)
            meta |= {f"{name}_count": len(chosen[name]), f"{name}_held": len(found), f"{name}_dropped": dropped}
            _report_dropped(name, len(found), dropped, source, options, report)
        meta["subset"] = meta["train_held"] + meta["test_held"] < source.data.train + source.data.test
        writer = Writer(folder, meta)
        try:
            for name, utterances in chosen.items():
                _write_split(pool, writer, name, utterances, options, report)
            writer.close()
        finally:
            writer.abandon()  # has no effect after `close`


def _report_dropped(
    name: str, count: int, dropped: int, source: Source, options: SpeechOptions, report: Report
) -> None:  # fmt: skip
    if dropped == count:
        raise UserError(
            f"{source.path} holds no {name} utterance of at most {options.frames} frames and {options.transcript} letters; "
            "raise 'frames' and 'transcript'."
        )
    if dropped:
        most = f"{options.frames} frames or {options.transcript} letters"
        report(Progress(f"Left out {dropped:,} of {count:,} {name} utterances: longer than {most}"))


def _measure(recording: TranscribedRecording, options: SpeechOptions) -> Utterance:
    path = recording.path
    frames = frame_count(count_samples(path, RATE), options.window, options.hop)
    if not frames:
        raise UserError(f"{path} is shorter than one window of {options.window} samples; download it again.")
    codes = encode_transcript(recording.text, f"The transcript of {path}")
    return Utterance(path, frames, codes, recording.position)


def spectrogram(samples: Floats, window: int, hop: int) -> Floats:
    """Return float32 (window / 2 + 1, frames) of float32 samples (n,): normalised, without padding."""
    windows = np.lib.stride_tricks.sliding_window_view(samples.astype(np.float64), window)[::hop]
    magnitudes = np.log1p(np.abs(np.fft.rfft(windows * np.hamming(window))))
    deviation = float(magnitudes.std())
    return np.asarray((magnitudes - magnitudes.mean()) / (deviation or 1.0), np.float32).T


def frame_count(samples: int, window: int, hop: int) -> int:
    """Return the number of windows that lie completely inside a recording of `samples` samples."""
    return max((samples - window) // hop + 1, 0)


def encode_transcript(text: str, where: str) -> Codes:
    """Return the classes int32 (L,) of a transcript in capital letters; UserError names a character that has no class."""
    codes = [LETTERS.find(character, 1) for character in text]
    if not codes:
        raise UserError(f"{where} is empty; add its text, or remove the recording.")
    if min(codes) < 0:
        wrong = text[codes.index(-1)]
        raise UserError(f"{where} has the character {wrong!r}; only A to Z, apostrophes and spaces are allowed.")
    return np.array(codes, np.int32)


def _write_split(
    pool: ThreadPoolExecutor, writer: Writer, name: str, utterances: list[Utterance], options: SpeechOptions, report: Report
) -> None:  # fmt: skip
    bins, count = options.window // 2 + 1, len(utterances)

    def padded_spectrogram(utterance: Utterance) -> Floats:
        padded = np.zeros((1, 1, bins, options.frames), np.float32)
        values = spectrogram(read_samples(utterance.path, RATE), options.window, options.hop)
        padded[0, 0, :, : values.shape[1]] = values
        return padded

    writer.begin(f"{name}/spectrogram", "<f4", (count, 1, bins, options.frames))
    for done, padded in enumerate(bounded_map(pool, padded_spectrogram, utterances), 1):
        writer.extend(padded)
        if not done % REPORT_UTTERANCES or done == count:
            report(Progress(f"Writing {name} spectrograms", done, count))
    transcripts = np.zeros((count, options.transcript), np.int32)
    for row, utterance in zip(transcripts, utterances, strict=True):
        row[: len(utterance.codes)] = utterance.codes
    writer.add(f"{name}/frames", np.array([utterance.frames for utterance in utterances], np.int32))
    writer.add(f"{name}/transcript", transcripts)
    writer.add(f"{name}/transcript_length", np.array([len(utterance.codes) for utterance in utterances], np.int32))
    writer.add(f"position/{name}", np.array([utterance.position for utterance in utterances], np.int32))
