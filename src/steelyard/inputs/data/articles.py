"""Running text in its official files -> articles as lists of sentences, read line by line to limit memory.

WikiText: an article begins with a heading of one equals sign, every paragraph is one line, and tokens are separated by
spaces. Wikipedia: files as WikiExtractor writes them (`<doc ...>` to `</doc>` is one article), or plain text, where every
line is an article.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from steelyard.errors import UserError
from steelyard.inputs.data.archives import list_files
from steelyard.inputs.data.damage import MissingData
from steelyard.inputs.data.options import LanguageOptions
from steelyard.inputs.data.source import Source
from steelyard.inputs.data.text_files import read_lines

Articles = Iterator[list[str]]  # of sentences; an article without text has none

HEADING = re.compile(r"^ ?= .* = ?$")
TITLE = re.compile(r"^ ?= [^=].* = ?$")
# WikiText separates words and punctuation by spaces, writes " @-@ " for a hyphen inside a word, and ends sentences with " . ".
JOINED = re.compile(r" @(.)@ ")
ENGLISH_END = re.compile(r"(?<= [.!?]) ")
CHINESE_END = re.compile(r"(?<=[。！？；])(?![”」』）])|(?<=[。！？；][”」』）])")
SENTENCE_ENDS = {"wikitext": "' . ', ' ! ' and ' ? '", "wikipedia": "。！？；"}  # of each reader, in words
ARTICLES_PER_TEST_ARTICLE = 20  # Wikipedia has no official test split: one article in twenty is for testing


@dataclass(frozen=True)
class ArticleSplit:
    """Articles of one split. `where` names it in messages. Each call of `read` reads the files again."""

    where: str
    read: Callable[[], Articles]


def split_articles(source: Source, options: LanguageOptions) -> dict[str, ArticleSplit]:
    """Return the articles of `train` and `test`; UserError names the file and byte that is not UTF-8."""
    if source.data.reader == "wikitext":
        files = (source.path / part.path for part in source.layout.parts)
        return {
            split: ArticleSplit(str(path), partial(_wikitext, path))
            for split, path in zip(("train", "test"), files, strict=True)
        }
    if options.train_split != "train" or options.test_split != "test":
        raise UserError(f"'{source.data.name}' has no official splits; remove the options train_split and test_split.")
    paths = _wikipedia_files(source)

    def read(test: bool) -> Articles:
        number = 0  # articles without text are not numbered
        for article in (article for path in paths for article in _wikipedia(path)):
            is_test = bool(article) and number % ARTICLES_PER_TEST_ARTICLE == ARTICLES_PER_TEST_ARTICLE - 1
            number += bool(article)
            if is_test == test:
                yield article

    where = f"{source.path}, one article in {ARTICLES_PER_TEST_ARTICLE} held out for testing"
    return {
        "train": ArticleSplit(where, lambda: read(test=False)),
        "test": ArticleSplit(where, lambda: read(test=True)),
    }


def _wikipedia_files(source: Source) -> list[Path]:
    if source.path.is_file():
        return [source.path]
    paths = [source.path / name for name in list_files(source.path, re.compile(source.data.files))]
    if not paths:
        raise MissingData(f"{source.path} holds no text; put *.txt files there, or the wiki_00, ... of WikiExtractor.")
    return paths


def _wikitext(path: Path) -> Articles:
    article: list[str] = []
    is_titled = False
    for line in read_lines(path):
        if HEADING.match(line):
            if TITLE.match(line):
                if article or is_titled:
                    yield article
                article, is_titled = [], True
        elif line.strip():
            text = JOINED.sub(r"\1", line.replace("<unk>", "[UNK]"))
            article += _sentences(ENGLISH_END.split(text))
    if article or is_titled:
        yield article


def _wikipedia(path: Path) -> Articles:
    """Yield the articles of a file. UserError: a <doc ...> has no end."""
    article: list[str] | None = None  # None: outside <doc>, where every line is an article
    begun = 0
    for number, line in enumerate(read_lines(path), 1):
        if line.startswith("<doc "):
            _check_ended(path, article, begun)
            article, begun = [], number
        elif line.startswith("</doc>"):
            if article is not None:
                yield article
            article = None
        elif article is not None:
            article += _sentences(CHINESE_END.split(line))
        elif found := _sentences(CHINESE_END.split(line)):
            yield found
    _check_ended(path, article, begun)


def _check_ended(path: Path, article: list[str] | None, begun: int) -> None:
    if article is not None:
        raise UserError(
            f"{path}: the article that begins in line {begun:,} has no line '</doc>', so the file was cut or changed; replace "
            "it, or add the line."
        )


def _sentences(parts: Iterable[str]) -> list[str]:
    return [part.strip() for part in parts if part.strip()]
