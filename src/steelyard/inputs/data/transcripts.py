"""Recordings with transcripts: the chapters of LibriSpeech, and clips with a table as in LJSpeech."""

from dataclasses import replace
from pathlib import Path

from steelyard.errors import UserError
from steelyard.inputs.data.damage import MissingData
from steelyard.inputs.data.options import SpeechOptions
from steelyard.inputs.data.recordings import METADATA, Recording, read_clips, read_text
from steelyard.inputs.data.splits import SAMPLES_PER_TEST_SAMPLE


def read_chapters(root: Path, options: SpeechOptions) -> dict[str, list[Recording]]:
    """Return {"train": ..., "test": ...} of `<split>/SPEAKER/CHAPTER/*.flac`, ordered by the numbers in the file names."""
    return {"train": _read_split(root / options.train_split), "test": _read_split(root / options.test_split)}


def read_clip_table(root: Path, _options: SpeechOptions) -> dict[str, list[Recording]]:
    """Return {"train": ..., "test": ...} of clips in LJSpeech's layout, with their texts in capitals.

    There are no official splits: every fifth clip is for testing.
    """
    clips = [replace(clip, text=clip.text.upper()) for clip in read_clips(root)]
    if len(clips) < SAMPLES_PER_TEST_SAMPLE:
        raise UserError(f"{root / METADATA} lists {len(clips)} clips; at least {SAMPLES_PER_TEST_SAMPLE} are needed.")
    splits: dict[str, list[Recording]] = {"train": [], "test": []}
    for clip in clips:
        is_test = clip.position % SAMPLES_PER_TEST_SAMPLE == SAMPLES_PER_TEST_SAMPLE - 1
        splits["test" if is_test else "train"].append(clip)
    return splits


def _read_split(folder: Path) -> list[Recording]:
    files = sorted(folder.glob("*/*/*.flac"), key=_numbers_in_name) if folder.is_dir() else []
    if not files:
        raise MissingData(f"{folder} holds no utterances; put SPEAKER/CHAPTER/*.flac there, or name another split.")
    texts = {chapter: _read_transcripts(chapter) for chapter in {path.parent for path in files}}
    for path in files:
        if path.stem not in texts[path.parent]:
            raise MissingData(f"{path} has no transcript in {_transcript_file(path.parent)}; download that file again.")
    return [Recording(path, texts[path.parent][path.stem], position) for position, path in enumerate(files)]


def _numbers_in_name(path: Path) -> list[tuple[int, str]]:
    """Return a sort key: SPEAKER-CHAPTER-UTTERANCE by number, other names before them."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in path.stem.split("-")]


def _transcript_file(chapter: Path) -> Path:
    return chapter / f"{chapter.parent.name}-{chapter.name}.trans.txt"


def _read_transcripts(chapter: Path) -> dict[str, str]:
    """Return {utterance: text} from lines of the form `<utterance> <text>`."""
    path = _transcript_file(chapter)
    if not path.is_file():
        raise MissingData(f"{chapter} has recordings, but no transcripts ({path.name}); download that file again.")
    lines = (line.partition(" ") for line in read_text(path).splitlines())
    return {name: text.strip() for name, _, text in lines if name}
