"""Film reviews as text, from the official folders or archive, or from a table -> token lists with their words."""

import csv
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from steelyard.errors import UserError
from steelyard.inputs.data.archives import read_members
from steelyard.inputs.data.raw_samples import Ids, RawSamples, Spool, TextSplit
from steelyard.inputs.data.work import Work

# Words are split as by Keras' `Tokenizer`.
FILTERS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'
_FILTERS_TO_SPACES = str.maketrans(FILTERS, " " * len(FILTERS))
REPORT_REVIEWS = 2000


class _Row(NamedTuple):
    split: str
    label: int
    number: int  # of the review within split and label, as in its file name
    start: int
    length: int


class _Collector:
    """Spools the words of reviews as ids, numbered in the order in which words first appear."""

    def __init__(self, work: Work[Any], spool: Spool) -> None:
        self._work = work
        self._source = work.source
        self._spool = spool
        self._ids: defaultdict[str, int] = defaultdict()
        self._ids.default_factory = self._ids.__len__  # a new word gets the next number
        self._rows: list[_Row] = []

    def add(self, split: str, label: int, number: int, text: str) -> None:
        words = split_words(text)
        ids = np.fromiter(map(self._ids.__getitem__, words), np.int32, len(words))
        self._rows.append(_Row(split, label, number, self._spool.count, len(words)))
        self._spool.append(ids)
        if not len(self._rows) % REPORT_REVIEWS:
            total = self._source.data.train + self._source.data.test
            self._work.say(f"Reading {self._source.data.name}", len(self._rows), total)

    def finish(self, verified: str) -> RawSamples[TextSplit]:
        """Sort by (label, number), so that folder and archive give the same order."""
        ids = self._spool.finish()
        splits = {
            name: _split(ids, sorted(row for row in self._rows if row.split == name)) for name in ("train", "test")
        }
        test = splits["test"] if self._source.data.test else None
        for name, split in splits.items():
            if not split.labels.size and (name == "train" or test is not None):
                raise UserError(f"{self._source.path} holds no reviews in '{name}'; a split must not be empty.")
        return RawSamples(splits["train"], test, verified=verified, is_sorted=True, words=tuple(self._ids))


def _split(ids: Ids, rows: list[_Row]) -> TextSplit:
    starts = np.array([row.start for row in rows], np.int64)
    lengths = np.array([row.length for row in rows], np.int64)
    return TextSplit(ids, starts, lengths, np.array([row.label for row in rows], np.int32))


def read_reviews(work: Work[Any]) -> RawSamples[TextSplit]:
    """Read `train|test/neg|pos/NUMBER_STARS.txt` of a folder or archive; UserError names a file that is not UTF-8."""
    source = work.source
    pattern = re.compile(source.data.files)
    with Spool(work.scratch / "words.i32", np.int32) as spool:
        collector = _Collector(work, spool)
        for name, content in read_members(source.path, pattern):
            match = pattern.search(name)
            if match:
                text = _decode(content, f"{source.path}: {name}")
                collector.add(match[2], int(match[3] == "pos"), int(match[4]), text)
        return collector.finish(source.verified)


def read_review_table(work: Work[Any]) -> RawSamples[TextSplit]:
    """Read the rows of `text,label,source` whose source is "imdb", numbered by their row in the table."""
    source = work.source
    try:
        with Spool(work.scratch / "words.i32", np.int32) as spool:
            collector = _Collector(work, spool)
            for number, label, text in _table_rows(source.path):
                collector.add("train", label, number, text)
            return collector.finish(source.verified)
    except UnicodeDecodeError as error:
        raise UserError(f"{source.path} is not UTF-8 text (byte {error.start}); download it again.") from error
    except csv.Error as error:
        raise UserError(
            f"{source.path} is not a table of comma-separated values ({error}); download it again."
        ) from error


def _table_rows(path: Path) -> Iterator[tuple[int, int, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        if rows.fieldnames != ["text", "label", "source"]:
            raise UserError(f"{path} has the columns {rows.fieldnames}, not text,label,source; download it again.")
        for number, row in enumerate(rows):
            if row["source"] == "imdb":
                yield number, _label(row["label"], path, rows.line_num), row["text"]


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case, separated at spaces and at the characters in `FILTERS`."""
    return [word for word in text.lower().translate(_FILTERS_TO_SPACES).split(" ") if word]


def _label(text: str, path: Path, line: int) -> int:
    if text not in ("0", "1"):
        raise UserError(f"{path} has label '{text}' before line {line + 1}; it must be 0 or 1.")
    return int(text)


def _decode(content: bytes, where: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{where} is not UTF-8 text (byte {error.start}), unlike the official reviews; download it again."
        ) from error
