"""Spoken clips in LJSpeech's layout -> symbol ids and mel spectrograms of one size, with their lengths.

`metadata.csv` has a line `id|text|text in words` for every `wavs/<id>.wav` (or `flac/<id>.flac`). There is no official split:
one clip in five, drawn by the seed, is for testing.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import UserError
from steelyard.inputs.data import symbols
from steelyard.inputs.data.division import TEST_SHARE
from steelyard.inputs.data.mel import frame_count, log_mel
from steelyard.inputs.data.recordings import ahead, count_samples, decode, threads
from steelyard.inputs.data.request import Progress
from steelyard_worker.tensors import Writer

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.inputs.data.request import ClipOptions, Report
    from steelyard.inputs.data.source import Source

    Floats = np.ndarray[Any, np.dtype[np.float32]]
    Ids = np.ndarray[Any, np.dtype[np.int32]]

METADATA = "metadata.csv"
HOMES = (("wavs", ".wav"), ("flac", ".flac"))
REPORT_CLIPS = 64


@dataclass(frozen=True)
class Clip:
    """One recording: its file, how many frames it makes, the ids of its text int32 (L,), its line in the metadata from 0."""

    path: Path
    frames: int
    ids: Ids
    position: int


def write_clips(folder: Path, source: Source, options: ClipOptions, meta: dict[str, Any], report: Report) -> None:
    """Write `train/` and `test/` text int32 (N, L), text_length, mel float32 (N, mels, T), mel_length; `position/`.

    UserError names an empty split, a clip without text or recording, and one that is damaged, too short or of another rate.
    """
    with ThreadPoolExecutor(threads()) as pool:
        held = _scan(pool, source.path, options, report)
        fitting = [each for each in held if each.frames <= options.frames and len(each.ids) <= options.characters]
        if dropped := len(held) - len(fitting):
            most = f"{options.characters} characters or {options.frames} frames"
            report(Progress(f"Left out {dropped:,} of {len(held):,} clips: longer than {most}"))
        chosen = _divided(source.path, fitting, options)
        counts = {f"{name}_count": len(clips) for name, clips in chosen.items()}
        subset = len(held) < source.data.train + source.data.test
        writer = Writer(folder, meta | counts | {"held": len(held), "dropped": dropped, "subset": subset})
        try:
            for name, clips in chosen.items():
                _write_split(pool, writer, name, clips, options, report)
        except BaseException:
            writer.abandon()
            raise
    writer.close()


def _divided(root: Path, clips: list[Clip], options: ClipOptions) -> dict[str, list[Clip]]:
    """Return the clips of both splits, each in an order of the seed's."""
    order = np.random.Generator(np.random.PCG64(options.seed)).permutation(len(clips))
    test = max(1, len(clips) // TEST_SHARE)
    places = {"train": order[test:][: options.train_limit or None], "test": order[:test][: options.test_limit or None]}
    chosen = {name: [clips[place] for place in split] for name, split in places.items()}
    for name, split in chosen.items():
        if not split:
            raise UserError(
                f"The {name} split is empty: {root} holds {len(clips)} clip(s) of at most {options.characters} characters and "
                f"{options.frames} frames; raise 'characters' and 'frames', or name a folder with more."
            )
    return chosen


def _scan(pool: ThreadPoolExecutor, root: Path, options: ClipOptions, report: Report) -> list[Clip]:
    """Read the metadata and the headers of all clips, in the metadata's order."""
    texts = _texts(root / METADATA)
    recordings = _recordings(root)
    for name in recordings.keys() - texts.keys():
        raise UserError(f"{recordings[name]} has no text: no line of {root / METADATA} begins with '{name}|'.")
    report(Progress("Reading the headers of the clips", 0, len(texts)))

    def measured(numbered: tuple[int, str]) -> Clip:
        position, name = numbered
        if name not in recordings:
            raise UserError(
                f"{root / METADATA} names '{name}', but there is no {root / HOMES[0][0] / name}{HOMES[0][1]}."
            )
        ids = symbols.encode(texts[name])
        if not len(ids):
            raise UserError(f"The clip '{name}' has no text in {root / METADATA}, line {position + 1}.")
        samples = count_samples(recordings[name], options.rate)
        if samples <= options.window // 2:
            raise UserError(
                f"{recordings[name]} is shorter than half a window of {options.window} samples; fetch it again."
            )
        return Clip(recordings[name], frame_count(samples, options.hop), ids, position)

    return list(ahead(pool, measured, enumerate(texts)))


def _texts(path: Path) -> dict[str, str]:
    """Return {clip: text}: in words where the metadata has it so."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text (byte {error.start}); fetch it again.") from error
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        name, *texts = line.split("|")
        if not texts or not name or name in found:
            raise UserError(
                f"{path}, line {number}: {line[:40]!r} is not 'id|text|text in words' of a clip of its own."
            )
        found[name] = texts[-1].strip() or texts[0]
    return found


def _recordings(root: Path) -> dict[str, Path]:
    """Return {clip: file} of the first folder there is."""
    for folder, suffix in HOMES:
        if (root / folder).is_dir():
            return {path.stem: path for path in sorted((root / folder).glob(f"*{suffix}"))}
    raise UserError(f"{root} has {METADATA}, but no folder '{HOMES[0][0]}' with its recordings.")


def _write_split(
    pool: ThreadPoolExecutor, writer: Writer, name: str, clips: list[Clip], options: ClipOptions, report: Report
) -> None:  # fmt: skip
    def row(clip: Clip) -> Floats:
        filled = np.zeros((options.mels, options.frames), np.float32)
        found = log_mel(decode(clip.path, options.rate), options.rate, options.window, options.hop, options.mels)
        filled[:, : found.shape[1]] = found
        return filled

    writer.begin(f"{name}/mel", "<f4", (len(clips), options.mels, options.frames))
    for done, filled in enumerate(ahead(pool, row, clips), 1):
        writer.extend(filled)
        if not done % REPORT_CLIPS or done == len(clips):
            report(Progress(f"Writing {name} spectrograms", done, len(clips)))
    text = np.zeros((len(clips), options.characters), np.int32)
    for line, clip in zip(text, clips, strict=True):
        line[: len(clip.ids)] = clip.ids
    writer.add(f"{name}/mel_length", np.array([each.frames for each in clips], np.int32))
    writer.add(f"{name}/text", text)
    writer.add(f"{name}/text_length", np.array([len(each.ids) for each in clips], np.int32))
    writer.add(f"position/{name}", np.array([each.position for each in clips], np.int32))
