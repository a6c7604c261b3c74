"""Recordings with transcripts: the chapters of LibriSpeech, and clips with a table as in LJSpeech."""

import re
from dataclasses import replace
from pathlib import Path

from steelyard.errors import UserError
from steelyard.inputs.data.archives import list_files
from steelyard.inputs.data.damage import MissingData, check_regular
from steelyard.inputs.data.inventory import Inventory, accepted, attempted, refuse
from steelyard.inputs.data.options import SpeechOptions
from steelyard.inputs.data.recordings import METADATA, Recording, read_clips
from steelyard.inputs.data.splits import SAMPLES_PER_TEST_SAMPLE
from steelyard.inputs.data.text_files import lines_of, read_text
from steelyard.inputs.data.work import Work

UTTERANCE = re.compile(r"^[^/]+/[^/]+/[^/]+\.flac$")
TRANSCRIPTS = re.compile(r"^[^/]+/[^/]+/[^/]+\.trans\.txt$")
UNSPOKEN = "lines of transcripts without a recording"
UNUSED = "transcripts of chapters without recordings, or under another name than SPEAKER-CHAPTER.trans.txt"


def read_chapters(work: Work[SpeechOptions]) -> dict[str, list[Recording]]:
    """Return {"train": ..., "test": ...} of `<split>/SPEAKER/CHAPTER/*.flac`, ordered by the numbers in the file names."""
    splits = {"train": work.options.train_split, "test": work.options.test_split}
    return {name: _read_split(work.source.path / split, work.inventory) for name, split in splits.items()}


def read_clip_table(work: Work[SpeechOptions]) -> dict[str, list[Recording]]:
    """Return {"train": ..., "test": ...} of clips in LJSpeech's layout, with their texts in capitals.

    There are no official splits: every fifth clip is for testing.
    """
    clips = [replace(clip, text=clip.text.upper()) for clip in read_clips(work.source.path)]
    if len(clips) < SAMPLES_PER_TEST_SAMPLE:
        raise UserError(
            f"{work.source.path / METADATA} lists {len(clips)} clips; at least {SAMPLES_PER_TEST_SAMPLE} are needed."
        )
    splits: dict[str, list[Recording]] = {"train": [], "test": []}
    for clip in clips:
        is_test = clip.position % SAMPLES_PER_TEST_SAMPLE == SAMPLES_PER_TEST_SAMPLE - 1
        splits["test" if is_test else "train"].append(clip)
    return splits


def _read_split(folder: Path, inventory: Inventory) -> list[Recording]:
    names = list_files(folder, UTTERANCE) if folder.is_dir() else []
    files = sorted((folder / name for name in names), key=_numbers_in_name)
    if not files:
        raise MissingData(f"{folder} holds no utterances; put SPEAKER/CHAPTER/*.flac there, or name another split.")
    chapters = sorted({path.parent for path in files})
    texts = dict(zip(chapters, accepted(map(attempted(_read_transcripts), chapters)), strict=False))
    refuse(
        [
            MissingData(
                f"{path} has no transcript in {_transcript_file(path.parent)}; add its line, or remove the recording."
            )
            for path in files
            if path.stem not in texts[path.parent]
        ]
    )
    _count_unspoken(files, texts, inventory)
    for name in list_files(folder, TRANSCRIPTS):
        if folder / name not in map(_transcript_file, chapters):
            inventory.leave_out(UNUSED, f"{folder.name}/{name}")
    return [Recording(path, texts[path.parent][path.stem], position) for position, path in enumerate(files)]


def _count_unspoken(files: list[Path], texts: dict[Path, dict[str, str]], inventory: Inventory) -> None:
    spoken = {(path.parent, path.stem) for path in files}
    for chapter, lines in texts.items():
        for name in lines:
            if (chapter, name) not in spoken:
                inventory.leave_out(UNSPOKEN, name)


def _numbers_in_name(path: Path) -> list[tuple[int, str]]:
    """Return a sort key: SPEAKER-CHAPTER-UTTERANCE by number, other names before them."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in path.stem.split("-")]


def _transcript_file(chapter: Path) -> Path:
    return chapter / f"{chapter.parent.name}-{chapter.name}.trans.txt"


def _read_transcripts(chapter: Path) -> dict[str, str]:
    """Return {utterance: text} from lines of the form `<utterance> <text>`. UserError: an utterance has two lines."""
    path = _transcript_file(chapter)
    if not path.is_file():
        raise MissingData(f"{chapter} has recordings, but no transcripts ({path.name}); put that file there.")
    check_regular(path)
    texts: dict[str, str] = {}
    for number, line in enumerate(lines_of(read_text(path)), 1):
        name, _, text = line.strip().partition(" ")
        if name in texts:
            raise UserError(f"{path}, line {number}: '{name}' has a line already; every recording has one line.")
        if name:
            texts[name] = text.strip()
    return texts
