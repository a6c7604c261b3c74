"""Recordings with transcripts -> spectrograms of fixed size, with lengths and letters.

A spectrogram is log(1 + |S|) of the short-time Fourier transform of samples from -1 to 1. Windows are symmetric Hamming
windows that lie completely inside the recording. Each utterance is normalised to mean 0 and standard deviation 1, then padded
with zeros to `frames`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.errors import UserError
from steelyard.inputs.data.audio import count_samples, read_samples
from steelyard.inputs.data.options import SpeechOptions
from steelyard.inputs.data.recordings import (
    Floats,
    Form,
    Ids,
    Recording,
    Utterance,
    check_recordings,
    leave_out_long,
    measured,
    write_split,
)
from steelyard.inputs.data.transcripts import read_chapters, read_clip_table
from steelyard.inputs.data.work import Known, Work
from steelyard.statistics.metrics import LETTERS

RATE = 16_000  # samples per second
READERS: dict[str, Callable[[Work[SpeechOptions]], dict[str, list[Recording]]]] = {
    "chapters": read_chapters,
    "clips": read_clip_table,
}


def write_speech(work: Work[SpeechOptions]) -> None:
    """Write `train/` and `test/` spectrogram float32 (N, 1, bins, frames), frames, transcript, transcript_length; `position/`.

    All but the spectrogram are int32. UserError names a split without utterances, or a recording that is damaged, has
    another sampling rate, or has no transcript.
    """
    source, options = work.source, work.options
    facts: dict[str, Any] = {}
    chosen = {}
    for name, recordings in READERS[source.data.reader](work).items():
        held, fitting = _fitting(work, name, recordings)
        limit = options.train_limit if name == "train" else options.test_limit
        chosen[name] = fitting[: limit or None]
        dropped = len(held) - len(fitting)
        facts |= {f"{name}_count": len(chosen[name]), f"{name}_held": len(held), f"{name}_dropped": dropped}

    shape = (1, options.window // 2 + 1, options.frames)
    form = Form(
        "spectrogram",
        "frames",
        "transcript",
        "transcript_length",
        shape,
        options.transcript,
        partial(_spectrogram, options),
    )
    with work.writer(facts) as writer:
        for name, utterances in chosen.items():
            write_split(writer, work, name, utterances, form)


def open_speech(work: Work[SpeechOptions]) -> Known:
    """Read the transcripts, and some recordings. UserError as in `write_speech`, of what was opened."""
    for name, recordings in READERS[work.source.data.reader](work).items():
        held, _ = _fitting(work, name, work.sample(recordings))
        check_recordings(held, partial(_spectrogram, work.options))
    return Known()


def _fitting(
    work: Work[SpeechOptions], name: str, recordings: Sequence[Recording]
) -> tuple[list[Utterance], list[Utterance]]:
    """Return all utterances of a split, and those that fit the arrays; the others are counted. UserError: none fits."""
    frames, letters = work.options.frames, work.options.transcript
    work.say(f"Reading the headers of the {name} split", 0, len(recordings))
    held = measured(work, recordings, partial(_measure, work.options))
    fitting = [spoken for spoken in held if spoken.frames <= frames and len(spoken.ids) <= letters]
    if not fitting and not work.most:
        raise UserError(
            f"{work.source.path} holds no {name} utterance of at most {frames} frames and {letters} letters; "
            "raise 'frames' and 'transcript'."
        )
    leave_out_long(work, f"{name} utterances", held, fitting, f"longer than {frames} frames or {letters} letters")
    return held, fitting


def _spectrogram(options: SpeechOptions, path: Path) -> Floats:
    return spectrogram(read_samples(path, RATE), options.window, options.hop)


def _measure(options: SpeechOptions, recording: Recording) -> Utterance:
    path = recording.path
    frames = frame_count(count_samples(path, RATE), options.window, options.hop)
    if not frames:
        raise UserError(f"{path} is shorter than one window of {options.window} samples; replace it, or remove it.")
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


def encode_transcript(text: str, where: str) -> Ids:
    """Return the classes int32 (L,) of a transcript in capital letters; UserError names a character that has no class."""
    codes = [LETTERS.find(character, 1) for character in text]
    if not codes:
        raise UserError(f"{where} is empty; add its text, or remove the recording.")
    if min(codes) < 0:
        wrong = text[codes.index(-1)]
        raise UserError(f"{where} has the character {wrong!r}; only A to Z, apostrophes and spaces are allowed.")
    return np.array(codes, np.int32)
