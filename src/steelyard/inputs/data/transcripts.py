"""Recordings with transcripts: the chapters of LibriSpeech, and clips with a table as in LJSpeech."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.errors import UserError
from steelyard.inputs.data.splits import SAMPLES_PER_TEST_SAMPLE

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.inputs.data.options import SpeechOptions

TABLE = "metadata.csv"


@dataclass(frozen=True)
class TranscribedRecording:
    """One recording, its transcript, and its position in the official order."""

    path: Path
    text: str
    position: int


def read_chapters(root: Path, options: SpeechOptions) -> dict[str, list[TranscribedRecording]]:
    """Return {"train": ..., "test": ...} of `<split>/SPEAKER/CHAPTER/*.flac`, ordered by the numbers in the file names."""
    return {"train": _read_split(root / options.train_split), "test": _read_split(root / options.test_split)}


def read_clip_table(root: Path, _options: SpeechOptions) -> dict[str, list[TranscribedRecording]]:
    """Return {"train": ..., "test": ...} of `metadata.csv` (name|text|text in capitals) and the clips in `flac/` or `wavs/`.

    There are no official splits: every fifth clip is for testing.
    """
    rows = [line.split("|") for line in _read_text(root / TABLE).splitlines() if line]
    folder = next((root / name for name in ("flac", "wavs") if (root / name).is_dir()), root / "wavs")
    clips = [
        TranscribedRecording(_find_clip(folder, row[0]), row[-1].strip().upper(), position)
        for position, row in enumerate(rows)
    ]
    if len(clips) < SAMPLES_PER_TEST_SAMPLE:
        raise UserError(f"{root / TABLE} lists {len(clips)} clips; at least {SAMPLES_PER_TEST_SAMPLE} are needed.")
    last = SAMPLES_PER_TEST_SAMPLE - 1
    return {
        "train": [clip for clip in clips if clip.position % SAMPLES_PER_TEST_SAMPLE != last],
        "test": [clip for clip in clips if clip.position % SAMPLES_PER_TEST_SAMPLE == last],
    }


def _find_clip(folder: Path, name: str) -> Path:
    for suffix in (".flac", ".wav"):
        if (folder / f"{name}{suffix}").is_file():
            return folder / f"{name}{suffix}"
    raise UserError(f"{folder} has no recording '{name}', which is listed in {TABLE}; download it again.")


def _read_split(folder: Path) -> list[TranscribedRecording]:
    files = sorted(folder.glob("*/*/*.flac"), key=_numbers_in_name) if folder.is_dir() else []
    if not files:
        raise UserError(f"{folder} holds no utterances; put SPEAKER/CHAPTER/*.flac there, or name another split.")
    texts = {chapter: _read_transcripts(chapter) for chapter in {path.parent for path in files}}
    for path in files:
        if path.stem not in texts[path.parent]:
            raise UserError(f"{path} has no transcript in {_transcript_file(path.parent)}; download that file again.")
    return [TranscribedRecording(path, texts[path.parent][path.stem], position) for position, path in enumerate(files)]


def _numbers_in_name(path: Path) -> list[tuple[int, str]]:
    """Return a sort key: SPEAKER-CHAPTER-UTTERANCE by number, other names before them."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in path.stem.split("-")]


def _transcript_file(chapter: Path) -> Path:
    return chapter / f"{chapter.parent.name}-{chapter.name}.trans.txt"


def _read_transcripts(chapter: Path) -> dict[str, str]:
    """Return {utterance: text} from lines of the form `<utterance> <text>`."""
    path = _transcript_file(chapter)
    if not path.is_file():
        raise UserError(f"{chapter} has recordings, but no transcripts ({path.name}); download that file again.")
    lines = (line.partition(" ") for line in _read_text(path).splitlines())
    return {name: text.strip() for name, _, text in lines if name}


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text (byte {error.start}); download it again.") from error
