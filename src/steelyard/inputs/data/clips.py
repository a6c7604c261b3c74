"""Spoken clips in the layout of LJSpeech -> symbol ids and mel spectrograms of fixed size, with their lengths.

There is no official split: one clip in five, chosen by the seed, is for testing.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from steelyard.errors import UserError
from steelyard.inputs.data import symbols
from steelyard.inputs.data.audio import count_samples, read_samples
from steelyard.inputs.data.mel import frame_count, log_mel
from steelyard.inputs.data.options import ClipOptions
from steelyard.inputs.data.recordings import (
    METADATA,
    Floats,
    Form,
    Recording,
    Utterance,
    check_recordings,
    leave_out_long,
    measured,
    read_clips,
    write_split,
)
from steelyard.inputs.data.splits import SAMPLES_PER_TEST_SAMPLE
from steelyard.inputs.data.work import Known, Work

SPOKEN_LOST = "texts with letters or digits that have no symbol and are dropped"
OTHERS_LOST = "texts with other characters that have no symbol and are dropped"


def write_clips(work: Work[ClipOptions]) -> None:
    """Write `train/` and `test/` text int32 (N, L), text_length, mel float32 (N, mels, T), mel_length; `position/`.

    Lengths and positions are int32. UserError names an empty split, a clip without text or recording, or a clip that is
    damaged, too short, or has another sampling rate.
    """
    source, options = work.source, work.options
    held, fitting = _fitting(work, read_clips(source.path))
    dropped = len(held) - len(fitting)
    chosen = _split(source.path, fitting, options)
    counts = {f"{name}_count": len(clips) for name, clips in chosen.items()}
    shape = (options.mels, options.frames)
    form = Form("mel", "mel_length", "text", "text_length", shape, options.characters, partial(_mel, options))
    with work.writer({**counts, "held": len(held), "dropped": dropped}) as writer:
        for name, clips in chosen.items():
            write_split(writer, work, name, clips, form)


def open_clips(work: Work[ClipOptions]) -> Known:
    """Read the table, and some recordings. UserError as in `write_clips`, of what was opened."""
    held, _ = _fitting(work, work.sample(read_clips(work.source.path)))
    check_recordings(held, partial(_mel, work.options))
    return Known()


def _fitting(work: Work[ClipOptions], recordings: Sequence[Recording]) -> tuple[list[Utterance], list[Utterance]]:
    """Return all clips, and those that fit the arrays; the others are counted."""
    options = work.options
    work.say("Reading the headers of the clips", 0, len(recordings))
    held = measured(work, recordings, partial(_measure, options))
    fitting = [clip for clip in held if clip.frames <= options.frames and len(clip.ids) <= options.characters]
    leave_out_long(
        work, "clips", held, fitting, f"longer than {options.characters} characters or {options.frames} frames"
    )
    return held, fitting


def _mel(options: ClipOptions, path: Path) -> Floats:
    return log_mel(read_samples(path, options.rate), options.rate, options.window, options.hop, options.mels)


def _measure(options: ClipOptions, recording: Recording) -> Utterance:
    path = recording.path
    ids = symbols.encode(recording.text)
    lost = symbols.without_symbol(recording.text)
    if not len(ids) or (any(map(str.isalnum, lost)) and not symbols.has_letters(ids)):
        raise UserError(_without_text(recording))
    samples = count_samples(path, options.rate)
    if samples <= options.window // 2:
        raise UserError(
            f"{path} is shorter than half a window of {options.window} samples; replace it, or remove its line."
        )
    notes = [SPOKEN_LOST] * any(map(str.isalnum, lost)) + [OTHERS_LOST] * (not all(map(str.isalnum, lost)))
    return Utterance(path, frame_count(samples, options.hop), ids, recording.position, tuple(notes))


def _without_text(recording: Recording) -> str:
    path, text = recording.path, recording.text.strip()
    where = f"The clip '{path.stem}' has no text in {path.parents[1] / METADATA}, line {recording.position + 1}"
    if not text:
        return f"{where}; add its text."
    return (
        f"{where}, that can be used: no letter of {text[:20]!r} has a symbol. Write it in the letters a to z, with "
        "numbers spelled out."
    )


def _split(root: Path, clips: list[Utterance], options: ClipOptions) -> dict[str, list[Utterance]]:
    """Return the clips of both splits, shuffled by the seed."""
    order = np.random.Generator(np.random.PCG64(options.seed)).permutation(len(clips))
    test = max(1, len(clips) // SAMPLES_PER_TEST_SAMPLE)
    rows = {"train": order[test:][: options.train_limit or None], "test": order[:test][: options.test_limit or None]}
    chosen = {name: [clips[row] for row in split] for name, split in rows.items()}
    for name, split in chosen.items():
        if not split:
            raise UserError(
                f"The {name} split is empty: {root} holds {len(clips)} clip(s) of at most {options.characters} characters and "
                f"{options.frames} frames; raise 'characters' and 'frames', or name a folder with more clips."
            )
    return chosen
