"""Spoken clips in the layout of LJSpeech -> symbol ids and mel spectrograms of fixed size, with their lengths.

There is no official split: one clip in five, chosen by the seed, is for testing.
"""

from pathlib import Path

import numpy as np

from steelyard.errors import UserError
from steelyard.inputs.data import symbols
from steelyard.inputs.data.audio import count_samples, read_samples
from steelyard.inputs.data.mel import frame_count, log_mel
from steelyard.inputs.data.options import ClipOptions
from steelyard.inputs.data.parallel import threaded_map
from steelyard.inputs.data.recordings import (
    METADATA,
    Floats,
    Form,
    Recording,
    Utterance,
    audio_folder,
    read_clips,
    write_split,
)
from steelyard.inputs.data.splits import SAMPLES_PER_TEST_SAMPLE
from steelyard.inputs.data.work import Work


def write_clips(work: Work[ClipOptions]) -> None:
    """Write `train/` and `test/` text int32 (N, L), text_length, mel float32 (N, mels, T), mel_length; `position/`.

    Lengths and positions are int32. UserError names an empty split, a clip without text or recording, or a clip that is
    damaged, too short, or has another sampling rate.
    """
    source, options = work.source, work.options
    recordings = read_clips(source.path)
    _check_all_have_text(source.path, recordings)
    work.say("Reading the headers of the clips", 0, len(recordings))
    found = list(threaded_map(lambda recording: _measure(recording, options), recordings))
    fitting = [clip for clip in found if clip.frames <= options.frames and len(clip.ids) <= options.characters]
    if dropped := len(found) - len(fitting):
        most = f"{options.characters} characters or {options.frames} frames"
        work.say(f"Left out {dropped:,} of {len(found):,} clips: longer than {most}")
    chosen = _split(source.path, fitting, options)
    counts = {f"{name}_count": len(clips) for name, clips in chosen.items()}

    def transform(path: Path) -> Floats:
        return log_mel(read_samples(path, options.rate), options.rate, options.window, options.hop, options.mels)

    shape = (options.mels, options.frames)
    form = Form("mel", "mel_length", "text", "text_length", shape, options.characters, transform)
    with work.writer({**counts, "held": len(found), "dropped": dropped}) as writer:
        for name, clips in chosen.items():
            write_split(writer, work, name, clips, form)


def _check_all_have_text(root: Path, clips: list[Recording]) -> None:
    known = {clip.path for clip in clips}
    folder, suffix = audio_folder(root)
    for path in sorted(folder.glob(f"*{suffix}")):
        if path not in known:
            raise UserError(
                f"{path} has no text: no line of {root / METADATA} begins with '{path.stem}|'. Add the line, or remove the "
                "recording."
            )


def _measure(recording: Recording, options: ClipOptions) -> Utterance:
    path = recording.path
    ids = symbols.encode(recording.text)
    if not len(ids):
        table = path.parents[1] / METADATA
        raise UserError(f"The clip '{path.stem}' has no text in {table}, line {recording.position + 1}; add its text.")
    samples = count_samples(path, options.rate)
    if samples <= options.window // 2:
        raise UserError(f"{path} is shorter than half a window of {options.window} samples; download it again.")
    return Utterance(path, frame_count(samples, options.hop), ids, recording.position)


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
