"""Recordings with transcripts -> spectrograms of one size, with lengths and letters.

A spectrogram is log(1 + |S|) of the short-time Fourier transform of samples in -1..1: symmetric Hamming windows that lie
wholly inside the recording, then mean 0 and standard deviation 1 over each utterance; zeros fill it up to `frames`.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import UserError
from steelyard.inputs.data.recordings import ahead, count_samples, decode, threads
from steelyard.inputs.data.request import Progress
from steelyard.inputs.data.transcripts import Spoken, in_chapters, in_table
from steelyard.statistics.metrics import LETTERS
from steelyard_worker.tensors import Writer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from steelyard.inputs.data.catalogue import DataSet
    from steelyard.inputs.data.request import Report, SpeechOptions
    from steelyard.inputs.data.source import Source

    Floats = np.ndarray[Any, np.dtype[np.float32]]
    Codes = np.ndarray[Any, np.dtype[np.int32]]

RATE = 16_000  # samples per second
REPORT_UTTERANCES = 64


@dataclass(frozen=True)
class Utterance:
    """One recording: its file, how many frames it makes, its letters as classes int32 (L,), its place in the official order."""

    path: Path
    frames: int
    codes: Codes
    position: int


READERS: dict[str, Callable[[Path, SpeechOptions], dict[str, list[Spoken]]]] = {
    "chapters": in_chapters,
    "clips": in_table,
}


def narrowed(known: DataSet, options: SpeechOptions) -> DataSet:
    """Return the data set with nothing but the two splits asked for in its layouts and files, where it has official splits."""
    if known.reader != "chapters":
        return known
    splits = "|".join(re.escape(each) for each in (options.train_split, options.test_split))
    layouts = tuple(replace(each, holds=options.train_split) for each in known.layouts)
    return replace(known, layouts=layouts, files=rf"^({splits})/{known.files}")


def write_speech(folder: Path, source: Source, options: SpeechOptions, meta: dict[str, Any], report: Report) -> None:
    """Write `train/` and `test/` spectrogram float32 (N, 1, bins, frames), frames, transcript, transcript_length; `position/`.

    UserError names a split without utterances, or a recording that is damaged, of another rate, or without a transcript.
    """
    limits = {"train": options.train_limit, "test": options.test_limit}
    with ThreadPoolExecutor(threads()) as pool:
        chosen = {}
        for name, spoken in READERS[source.data.reader](source.path, options).items():
            report(Progress(f"Reading the headers of the {name} split", 0, len(spoken)))
            held = list(ahead(pool, lambda each: _measured(each, options), spoken))
            fitting = [each for each in held if each.frames <= options.frames and len(each.codes) <= options.transcript]
            chosen[name] = fitting[: limits[name] or None]
            dropped = len(held) - len(fitting)
            meta |= {f"{name}_count": len(chosen[name]), f"{name}_held": len(held), f"{name}_dropped": dropped}
            _tell_dropped(name, len(held), dropped, source, options, report)
        meta["subset"] = meta["train_held"] + meta["test_held"] < source.data.train + source.data.test
        writer = Writer(folder, meta)
        try:
            for name, utterances in chosen.items():
                _write_split(pool, writer, name, utterances, options, report)
        except BaseException:
            writer.abandon()
            raise
    writer.close()


def _tell_dropped(name: str, held: int, dropped: int, source: Source, options: SpeechOptions, report: Report) -> None:
    if dropped == held:
        raise UserError(
            f"{source.path} holds no {name} utterance of at most {options.frames} frames and {options.transcript} letters; "
            "raise 'frames' and 'transcript'."
        )
    if dropped:
        most = f"{options.frames} frames or {options.transcript} letters"
        report(Progress(f"Left out {dropped:,} of {held:,} {name} utterances: longer than {most}"))


def _measured(spoken: Spoken, options: SpeechOptions) -> Utterance:
    frames = frame_count(count_samples(spoken.path, RATE), options.window, options.hop)
    if not frames:
        raise UserError(f"{spoken.path} is shorter than one window of {options.window} samples; fetch it again.")
    return Utterance(spoken.path, frames, spell(spoken.text, f"The transcript of {spoken.path}"), spoken.position)


def spectrogram(samples: Floats, window: int, hop: int) -> Floats:
    """Return float32 (window / 2 + 1, frames) of float32 samples (n,): normalised, not filled up."""
    windows = np.lib.stride_tricks.sliding_window_view(samples.astype(np.float64), window)[::hop]
    loud = np.log1p(np.abs(np.fft.rfft(windows * np.hamming(window))))
    deviation = float(loud.std())
    return np.asarray((loud - loud.mean()) / (deviation or 1.0), np.float32).T


def frame_count(samples: int, window: int, hop: int) -> int:
    """Return how many windows lie wholly inside so many samples."""
    return max((samples - window) // hop + 1, 0)


def spell(text: str, where: str) -> Codes:
    """Return the classes int32 (L,) of a transcript in capital letters; UserError names a character that has no class."""
    codes = [LETTERS.find(character, 1) for character in text]
    if not codes or min(codes) < 0:
        wrong = repr(text[codes.index(-1)]) if codes else "nothing"
        raise UserError(f"{where} says {wrong}; a transcript has the letters A to Z, apostrophes and spaces.")
    return np.array(codes, np.int32)


def _write_split(
    pool: ThreadPoolExecutor, writer: Writer, name: str, utterances: list[Utterance], options: SpeechOptions, report: Report
) -> None:  # fmt: skip
    bins, count = options.window // 2 + 1, len(utterances)

    def row(utterance: Utterance) -> Floats:
        filled = np.zeros((1, 1, bins, options.frames), np.float32)
        found = spectrogram(decode(utterance.path, RATE), options.window, options.hop)
        filled[0, 0, :, : found.shape[1]] = found
        return filled

    writer.begin(f"{name}/spectrogram", "<f4", (count, 1, bins, options.frames))
    for done, filled in enumerate(ahead(pool, row, utterances), 1):
        writer.extend(filled)
        if not done % REPORT_UTTERANCES or done == count:
            report(Progress(f"Writing {name} spectrograms", done, count))
    transcripts = np.zeros((count, options.transcript), np.int32)
    for line, utterance in zip(transcripts, utterances, strict=True):
        line[: len(utterance.codes)] = utterance.codes
    writer.add(f"{name}/frames", np.array([each.frames for each in utterances], np.int32))
    writer.add(f"{name}/transcript", transcripts)
    writer.add(f"{name}/transcript_length", np.array([len(each.codes) for each in utterances], np.int32))
    writer.add(f"position/{name}", np.array([each.position for each in utterances], np.int32))
