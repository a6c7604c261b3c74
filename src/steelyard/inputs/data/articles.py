"""Running text in its official files -> articles as lists of sentences, read line by line: nothing is held whole.

WikiText: an article begins with a heading of one equals sign, every paragraph is a line, tokens stand apart. Wikipedia: files
as WikiExtractor writes them (`<doc ...>` to `</doc>` is an article), or plain text, where every line is an article of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from steelyard.errors import UserError
from steelyard.inputs.data.archives import list_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from steelyard.inputs.data.request import LanguageOptions
    from steelyard.inputs.data.source import Source

    Articles = Iterator[list[str]]

HEADING = re.compile(r"^ ?= .* = ?$")
TITLE = re.compile(r"^ ?= [^=].* = ?$")
# WikiText sets words and marks apart, writes @ around what stood inside a word, and the last word of a sentence before " . ".
JOINED = re.compile(r" @(.)@ ")
ENGLISH_END = re.compile(r"(?<= [.!?]) ")
CHINESE_END = re.compile(r"(?<=[。！？；])(?![”」』）])|(?<=[。！？；][”」』）])")
TEST_SHARE = 20  # one Wikipedia article in twenty: there is no official division


@dataclass(frozen=True)
class Split:
    """Articles of one split; `where` names it in messages. Iterating reads the files again."""

    where: str
    read: Callable[[], Articles]


def split_articles(source: Source, options: LanguageOptions) -> dict[str, Split]:
    """Return the articles of `train` and `test`; UserError names a missing file, or the file and byte that is not UTF-8."""
    if source.data.reader == "wikitext":
        names = {"train": options.train_split, "test": options.test_split}
        files = {split: _wikitext_file(source, name) for split, name in names.items()}
        return {split: Split(str(path), partial(_wikitext, path)) for split, path in files.items()}
    if options.train_split != "train" or options.test_split != "test":
        raise UserError(
            f"'{source.data.name}' has no splits of its own, so train_split and test_split stay as they are."
        )
    paths = _wikipedia_files(source)

    def read(test: bool) -> Articles:
        articles = (article for path in paths for article in _wikipedia(path))
        return (article for number, article in enumerate(articles) if (number % TEST_SHARE == TEST_SHARE - 1) == test)

    where = f"{source.path}, one article in {TEST_SHARE} held out for testing"
    return {"train": Split(where, lambda: read(test=False)), "test": Split(where, lambda: read(test=True))}


def _wikitext_file(source: Source, split: str) -> Path:
    suffix = source.layout.holds.rpartition(".")[2]
    path = source.path / f"wiki.{split}.{suffix}"
    if not path.is_file():
        raise UserError(f"{path} is missing; the split '{split}' of '{source.data.name}' must not be empty.")
    return path


def _wikipedia_files(source: Source) -> list[Path]:
    if source.path.is_file():
        return [source.path]
    paths = [source.path / name for name in list_files(source.path, re.compile(source.data.files))]
    if not paths:
        raise UserError(f"{source.path} holds no text: no *.txt file, and no wiki_00 as WikiExtractor writes them.")
    return paths


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file without their ends; UserError names the byte, counted from 0, that is not UTF-8."""
    position = 0
    with path.open("rb") as file:
        for line in file:
            try:
                yield line.decode("utf-8-sig" if not position else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                message = f"{path} is not UTF-8 text (byte {position + error.start:,}); convert it to UTF-8."
                raise UserError(message) from error
            position += len(line)


def _wikitext(path: Path) -> Articles:
    article: list[str] = []
    for line in read_lines(path):
        if HEADING.match(line):
            if TITLE.match(line) and article:
                yield article
                article = []
        elif line.strip():
            text = JOINED.sub(r"\1", line.replace("<unk>", "[UNK]"))
            article += _sentences(ENGLISH_END.split(text))
    if article:
        yield article


def _wikipedia(path: Path) -> Articles:
    article: list[str] | None = None  # None: outside <doc>, where every line is an article
    for line in read_lines(path):
        if line.startswith("<doc "):
            article = []
        elif line.startswith("</doc>"):
            if article:
                yield article
            article = None
        elif article is not None:
            article += _sentences(CHINESE_END.split(line))
        elif found := _sentences(CHINESE_END.split(line)):
            yield found


def _sentences(parts: Iterable[str]) -> list[str]:
    return [part.strip() for part in parts if part.strip()]
