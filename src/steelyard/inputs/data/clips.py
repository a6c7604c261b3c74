"""Spoken clips in the layout of LJSpeech -> symbol ids and mel spectrograms of fixed size, with their lengths.

`metadata.csv` has a line `id|text|normalised text` for every `wavs/<id>.wav` (or `flac/<id>.flac`). There is no official
split: one clip in five, chosen by the seed, is for testing.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import UserError
from steelyard.host import usable_cores
from steelyard.inputs.data import symbols
from steelyard.inputs.data.audio import count_samples, read_samples
from steelyard.inputs.data.mel import frame_count, log_mel
from steelyard.inputs.data.parallel import bounded_map
from steelyard.inputs.data.request import Progress
from steelyard.inputs.data.splits import SAMPLES_PER_TEST_SAMPLE
from steelyard_worker.tensors import Writer

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.inputs.data.options import ClipOptions
    from steelyard.inputs.data.request import Report
    from steelyard.inputs.data.source import Source

    Floats = np.ndarray[Any, np.dtype[np.float32]]
    Ids = np.ndarray[Any, np.dtype[np.int32]]

METADATA = "metadata.csv"
AUDIO_FOLDERS = (("wavs", ".wav"), ("flac", ".flac"))
REPORT_CLIPS = 64


@dataclass(frozen=True)
class Clip:
    """One recording: file, number of frames, ids of its text int32 (L,), and line in the metadata, from 0."""

    path: Path
    frames: int
    ids: Ids
    position: int


def write_clips(folder: Path, source: Source, options: ClipOptions, meta: dict[str, Any], report: Report) -> None:
    """Write `train/` and `test/` text int32 (N, L), text_length, mel float32 (N, mels, T), mel_length; `position/`.

    Lengths and positions are int32. UserError names an empty split, a clip without text or recording, or a clip that is
    damaged, too short, or has another sampling rate.
    """
    # libsndfile and NumPy's transforms release the interpreter lock, so threads use all processors.
    with ThreadPoolExecutor(usable_cores()) as pool:
        found = _read_headers(pool, source.path, options, report)
        fitting = [clip for clip in found if clip.frames <= options.frames and len(clip.ids) <= options.characters]
        if dropped := len(found) - len(fitting):
            most = f"{options.characters} characters or {options.frames} frames"
            report(Progress(f"Left out {dropped:,} of {len(found):,} clips: longer than {most}"))
        chosen = _split(source.path, fitting, options)
        counts = {f"{name}_count": len(clips) for name, clips in chosen.items()}
        subset = len(found) < source.data.train + source.data.test
        writer = Writer(folder, meta | counts | {"held": len(found), "dropped": dropped, "subset": subset})
        try:
            for name, clips in chosen.items():
                _write_split(pool, writer, name, clips, options, report)
            writer.close()
        finally:
            writer.abandon()  # has no effect after `close`


def _split(root: Path, clips: list[Clip], options: ClipOptions) -> dict[str, list[Clip]]:
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


def _read_headers(pool: ThreadPoolExecutor, root: Path, options: ClipOptions, report: Report) -> list[Clip]:
    """Read the metadata and the headers of all clips, in the order of the metadata."""
    texts = _read_metadata(root / METADATA)
    recordings = _find_recordings(root)
    for name in recordings.keys() - texts.keys():
        raise UserError(
            f"{recordings[name]} has no text: no line of {root / METADATA} begins with '{name}|'. Add the line, or remove the "
            "recording."
        )
    report(Progress("Reading the headers of the clips", 0, len(texts)))

    def read_header(numbered: tuple[int, str]) -> Clip:
        position, name = numbered
        if name not in recordings:
            folder, suffix = AUDIO_FOLDERS[0]
            raise UserError(
                f"{root / METADATA} lists '{name}', but {root / folder / name}{suffix} is missing; download it again."
            )
        ids = symbols.encode(texts[name])
        if not len(ids):
            raise UserError(f"The clip '{name}' has no text in {root / METADATA}, line {position + 1}; add its text.")
        samples = count_samples(recordings[name], options.rate)
        if samples <= options.window // 2:
            raise UserError(
                f"{recordings[name]} is shorter than half a window of {options.window} samples; download it again."
            )
        return Clip(recordings[name], frame_count(samples, options.hop), ids, position)

    return list(bounded_map(pool, read_header, enumerate(texts)))


def _read_metadata(path: Path) -> dict[str, str]:
    """Return {clip: text}, with the normalised text if there is one."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text (byte {error.start}); download it again.") from error
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        name, *texts = line.split("|")
        if not texts or not name or name in found:
            raise UserError(
                f"{path}, line {number}: {line[:40]!r} does not have the form 'id|text|normalised text' with a new id; fix "
                "the line."
            )
        found[name] = texts[-1].strip() or texts[0]
    return found


def _find_recordings(root: Path) -> dict[str, Path]:
    """Return {clip: file} of the first audio folder that exists."""
    for folder, suffix in AUDIO_FOLDERS:
        if (root / folder).is_dir():
            return {path.stem: path for path in sorted((root / folder).glob(f"*{suffix}"))}
    raise UserError(f"{root} has {METADATA}, but no folder '{AUDIO_FOLDERS[0][0]}' with the recordings; put it there.")


def _write_split(
    pool: ThreadPoolExecutor, writer: Writer, name: str, clips: list[Clip], options: ClipOptions, report: Report
) -> None:  # fmt: skip
    def padded_mel(clip: Clip) -> Floats:
        padded = np.zeros((options.mels, options.frames), np.float32)
        samples = read_samples(clip.path, options.rate)
        values = log_mel(samples, options.rate, options.window, options.hop, options.mels)
        padded[:, : values.shape[1]] = values
        return padded

    writer.begin(f"{name}/mel", "<f4", (len(clips), options.mels, options.frames))
    for done, padded in enumerate(bounded_map(pool, padded_mel, clips), 1):
        writer.extend(padded)
        if not done % REPORT_CLIPS or done == len(clips):
            report(Progress(f"Writing {name} spectrograms", done, len(clips)))
    text = np.zeros((len(clips), options.characters), np.int32)
    for row, clip in zip(text, clips, strict=True):
        row[: len(clip.ids)] = clip.ids
    writer.add(f"{name}/mel_length", np.array([clip.frames for clip in clips], np.int32))
    writer.add(f"{name}/text", text)
    writer.add(f"{name}/text_length", np.array([len(clip.ids) for clip in clips], np.int32))
    writer.add(f"position/{name}", np.array([clip.position for clip in clips], np.int32))
