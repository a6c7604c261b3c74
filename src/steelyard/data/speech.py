"""Recordings with transcripts in LibriSpeech's folders -> spectrograms of one size, with lengths and letters.

A spectrogram is log(1 + |S|) of the short-time Fourier transform of samples in -1..1: symmetric Hamming windows that lie
wholly inside the recording, then mean 0 and standard deviation 1 over each utterance; zeros fill it up to `frames`.
"""

from __future__ import annotations

import os
import re
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.data.request import Progress
from steelyard.errors import UserError
from steelyard.metrics import LETTERS
from steelyard_worker.tensors import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from steelyard.data.catalogue import DataSet
    from steelyard.data.request import Report, SpeechOptions
    from steelyard.data.source import Source

    Floats = np.ndarray[Any, np.dtype[np.float32]]
    Codes = np.ndarray[Any, np.dtype[np.int32]]

RATE = 16_000  # samples per second
AHEAD = 4  # utterances under way per thread: what bounds the memory
REPORT_UTTERANCES = 64


@dataclass(frozen=True)
class Utterance:
    """One recording: its file, how many frames it makes, its letters as classes int32 (L,), its place in the official order."""

    path: Path
    frames: int
    codes: Codes
    position: int


def narrowed(known: DataSet, options: SpeechOptions) -> DataSet:
    """Return the data set with nothing but the two splits asked for in its layouts and files."""
    splits = "|".join(re.escape(each) for each in (options.train_split, options.test_split))
    layouts = tuple(replace(each, holds=options.train_split) for each in known.layouts)
    return replace(known, layouts=layouts, files=rf"^({splits})/{known.files}")


def write_speech(folder: Path, source: Source, options: SpeechOptions, meta: dict[str, Any], report: Report) -> None:
    """Write `train/` and `test/` spectrogram float32 (N, 1, bins, frames), frames, transcript, transcript_length; `position/`.

    UserError names a split without utterances, or a recording that is damaged, of another rate, or without a transcript.
    """
    splits = {"train": (options.train_split, options.train_limit), "test": (options.test_split, options.test_limit)}
    with ThreadPoolExecutor(_threads()) as pool:
        chosen = {}
        for name, (split, limit) in splits.items():
            held = _scan(pool, source, split, options, report)
            fitting = [each for each in held if each.frames <= options.frames and len(each.codes) <= options.transcript]
            if not fitting:
                raise UserError(
                    f"{source.path / split} holds no utterance of at most {options.frames} frames and {options.transcript} "
                    "letters; raise 'frames' and 'transcript'."
                )
            chosen[name], dropped = fitting[: limit or None], len(held) - len(fitting)
            if dropped:
                most = f"{options.frames} frames or {options.transcript} letters"
                report(Progress(f"Left out {dropped:,} of {len(held):,} utterances of {split}: longer than {most}"))
            meta |= {f"{name}_count": len(chosen[name]), f"{name}_held": len(held), f"{name}_dropped": dropped}
        meta["subset"] = meta["train_held"] + meta["test_held"] < source.data.train + source.data.test
        writer = Writer(folder, meta)
        try:
            for name, utterances in chosen.items():
                _write_split(pool, writer, name, utterances, options, report)
        except BaseException:
            writer.abandon()
            raise
    writer.close()


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


def _threads() -> int:
    """Libsndfile and NumPy's transforms let go of the interpreter, so threads use every processor."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _ahead(pool: ThreadPoolExecutor, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """Yield results in order, with a bounded number of them under way: a pool's own `map` would take in everything."""
    waiting: deque[Any] = deque()
    for item in items:
        waiting.append(pool.submit(function, item))
        if len(waiting) > AHEAD * _threads():
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _scan(
    pool: ThreadPoolExecutor, source: Source, split: str, options: SpeechOptions, report: Report
) -> list[Utterance]:  # fmt: skip
    """Read the headers of a split in official order: by speaker, chapter and utterance."""
    folder = source.path / split
    files = sorted(folder.glob("*/*/*.flac"), key=_place) if folder.is_dir() else []
    if not files:
        raise UserError(f"{folder} holds no utterances (SPEAKER/CHAPTER/*.flac); the split must not be empty.")
    report(Progress(f"Reading the headers of {split}", 0, len(files)))
    transcripts: dict[Path, dict[str, str]] = {}
    for chapter in {path.parent for path in files}:
        transcripts[chapter] = _transcripts(chapter)

    def measured(numbered: tuple[int, Path]) -> Utterance:
        position, path = numbered
        text = transcripts[path.parent].get(path.stem)
        if text is None:
            raise UserError(f"{path} has no transcript in {_transcript_file(path.parent)}.")
        frames = frame_count(_samples(path), options.window, options.hop)
        if not frames:
            raise UserError(f"{path} is shorter than one window of {options.window} samples; fetch it again.")
        return Utterance(path, frames, spell(text, f"The transcript of {path}"), position)

    return list(_ahead(pool, measured, enumerate(files)))


def _place(path: Path) -> list[Any]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in path.stem.split("-")]


def _transcript_file(chapter: Path) -> Path:
    return chapter / f"{chapter.parent.name}-{chapter.name}.trans.txt"


def _transcripts(chapter: Path) -> dict[str, str]:
    """Read `<utterance> <text>` of every line."""
    path = _transcript_file(chapter)
    if not path.is_file():
        raise UserError(f"{chapter} has recordings, but no transcripts ({path.name}).")
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text (byte {error.start}); fetch it again.") from error
    return {name: text.strip() for name, _, text in (line.partition(" ") for line in lines) if name}


def _samples(path: Path) -> int:
    """Return the length in samples that a recording's header promises; one of another form is refused."""
    import soundfile

    try:
        header = soundfile.info(path)
    except soundfile.SoundFileError as error:
        raise _damaged(path, error) from error
    if (header.samplerate, header.channels) != (RATE, 1):
        raise UserError(
            f"{path} has {header.channels} channel(s) at {header.samplerate} Hz; one channel at {RATE} Hz is needed."
        )
    return int(header.frames)


def _decoded(path: Path) -> Floats:
    import soundfile

    try:
        samples, _ = soundfile.read(path, dtype="float32")
    except soundfile.SoundFileError as error:
        raise _damaged(path, error) from error
    if len(samples) != _samples(path):
        raise _damaged(path, f"it ends after {len(samples):,} samples")
    return np.asarray(samples, np.float32)


def _damaged(path: Path, reason: object) -> UserError:
    return UserError(f"{path} is damaged or cut short ({str(reason).rstrip('.')}); fetch it again.")


def _write_split(
    pool: ThreadPoolExecutor, writer: Writer, name: str, utterances: list[Utterance], options: SpeechOptions, report: Report
) -> None:  # fmt: skip
    bins, count = options.window // 2 + 1, len(utterances)

    def row(utterance: Utterance) -> Floats:
        filled = np.zeros((1, 1, bins, options.frames), np.float32)
        found = spectrogram(_decoded(utterance.path), options.window, options.hop)
        filled[0, 0, :, : found.shape[1]] = found
        return filled

    writer.begin(f"{name}/spectrogram", "<f4", (count, 1, bins, options.frames))
    for done, filled in enumerate(_ahead(pool, row, utterances), 1):
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
