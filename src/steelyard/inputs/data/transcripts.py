"""Recordings with what is said in them: LibriSpeech's chapters, and clips beside a table as LJSpeech has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steelyard.errors import UserError
from steelyard.inputs.data.division import TEST_SHARE

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.inputs.data.request import SpeechOptions

TABLE = "metadata.csv"


@dataclass(frozen=True)
class Spoken:
    """One recording, its transcript, and its place in the official order of its split."""

    path: Path
    text: str
    position: int


def in_chapters(root: Path, options: SpeechOptions) -> dict[str, list[Spoken]]:
    """Return {"train": ..., "test": ...} of `<split>/SPEAKER/CHAPTER/*.flac`, ordered by the numbers in the files' names."""
    return {"train": _split(root / options.train_split), "test": _split(root / options.test_split)}


def in_table(root: Path, options: SpeechOptions) -> dict[str, list[Spoken]]:
    """Return {"train": ..., "test": ...} of `metadata.csv` (name|text|text in capitals) with `flac/` or `wavs/` beside it.

    There are no official splits: every fifth clip is for the test.
    """
    del options
    rows = [line.split("|") for line in _read(root / TABLE).splitlines() if line]
    folder = next((root / each for each in ("flac", "wavs") if (root / each).is_dir()), root / "wavs")
    spoken = [Spoken(_clip(folder, row[0]), row[-1].strip().upper(), place) for place, row in enumerate(rows)]
    if len(spoken) < TEST_SHARE:
        raise UserError(f"{root / TABLE} names {len(spoken)} clips; at least {TEST_SHARE} are needed.")
    tested = [each.position % TEST_SHARE == TEST_SHARE - 1 for each in spoken]
    return {
        name: [each for each, test in zip(spoken, tested, strict=True) if test == (name == "test")]
        for name in ("train", "test")
    }


def _clip(folder: Path, name: str) -> Path:
    for suffix in (".flac", ".wav"):
        if (folder / f"{name}{suffix}").is_file():
            return folder / f"{name}{suffix}"
    raise UserError(f"{folder} has no recording '{name}', which {TABLE} names; fetch it again.")


def _split(folder: Path) -> list[Spoken]:
    files = sorted(folder.glob("*/*/*.flac"), key=_place) if folder.is_dir() else []
    if not files:
        raise UserError(f"{folder} holds no utterances (SPEAKER/CHAPTER/*.flac); the split must not be empty.")
    texts = {chapter: _chapter(chapter) for chapter in {path.parent for path in files}}
    found = []
    for position, path in enumerate(files):
        if path.stem not in texts[path.parent]:
            raise UserError(f"{path} has no transcript in {_chapter_file(path.parent)}.")
        found.append(Spoken(path, texts[path.parent][path.stem], position))
    return found


def _place(path: Path) -> list[Any]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in path.stem.split("-")]


def _chapter_file(chapter: Path) -> Path:
    return chapter / f"{chapter.parent.name}-{chapter.name}.trans.txt"


def _chapter(chapter: Path) -> dict[str, str]:
    """Read `<utterance> <text>` of every line."""
    path = _chapter_file(chapter)
    if not path.is_file():
        raise UserError(f"{chapter} has recordings, but no transcripts ({path.name}).")
    return {name: text.strip() for name, _, text in (line.partition(" ") for line in _read(path).splitlines()) if name}


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text (byte {error.start}); fetch it again.") from error
