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
from steelyard.inputs.data.damage import MissingData, refusing
from steelyard.inputs.data.raw_samples import RawSamples, Spool, TextSplit
from steelyard.inputs.data.source import Source
from steelyard.inputs.data.work import Work

# Words are split as by Keras' `Tokenizer`.
FILTERS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'
_FILTERS_TO_SPACES = str.maketrans(FILTERS, " " * len(FILTERS))
REPORT_REVIEWS = 2000


class _Review(NamedTuple):
    split: str
    label: int
    number: int  # of the review within split and label, as in its file name
    text: str


def read_reviews(work: Work[Any]) -> RawSamples[TextSplit]:
    """Read `train|test/neg|pos/NUMBER_STARS.txt` of a folder or archive; UserError names a file that is not UTF-8."""
    return _spool(work, _file_reviews(work.source))


def read_review_table(work: Work[Any]) -> RawSamples[TextSplit]:
    """Read the rows of `text,label,source` whose source is "imdb", numbered by their row in the table."""
    path = work.source.path
    not_text = refusing(f"{path} is not UTF-8 text", UnicodeDecodeError)
    with not_text, refusing(f"{path} is not a table of comma-separated values", csv.Error):
        return _spool(work, _table_reviews(path))


def _spool(work: Work[Any], reviews: Iterator[_Review]) -> RawSamples[TextSplit]:
    """Return the words of the reviews as ids, numbered in the order in which words first appear.

    Reviews are sorted by (label, number), so that folder and archive give the same order.
    """
    data_set = work.source.data
    id_of: defaultdict[str, int] = defaultdict()
    id_of.default_factory = id_of.__len__  # a new word gets the next number
    rows: dict[str, list[tuple[int, int, int, int]]] = {"train": [], "test": []}
    with Spool(work.scratch / "words.i32", np.int32) as spool:
        for count, review in enumerate(reviews, 1):
            words = split_words(review.text)
            rows[review.split].append((review.label, review.number, spool.count, len(words)))
            spool.append(np.fromiter(map(id_of.__getitem__, words), np.int32, len(words)))
            if not count % REPORT_REVIEWS:
                work.say(f"Reading {data_set.name}", count, data_set.train + data_set.test)
        ids = spool.finish()
    if not data_set.test:
        del rows["test"]
    splits = {}
    for name, split in rows.items():
        if not split:
            raise MissingData(f"{work.source.path} holds no reviews in '{name}'; a split must not be empty.")
        labels, starts, lengths = np.array([(label, *place) for label, _, *place in sorted(split)], np.int64).T
        splits[name] = TextSplit(ids, starts, lengths, labels.astype(np.int32))
    return RawSamples(splits["train"], splits.get("test"), work.source.verified, is_sorted=True, words=tuple(id_of))


def _file_reviews(source: Source) -> Iterator[_Review]:
    pattern = re.compile(source.data.files)
    for name, content in read_members(source, pattern):
        if match := pattern.search(name):
            with refusing(f"{source.path}: {name} is not UTF-8 text", UnicodeDecodeError):
                text = content.decode("utf-8")
            yield _Review(match[2], int(match[3] == "pos"), int(match[4]), text)


def _table_reviews(path: Path) -> Iterator[_Review]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        if rows.fieldnames != ["text", "label", "source"]:
            raise UserError(f"{path} has the columns {rows.fieldnames}, not text,label,source; download it again.")
        for number, row in enumerate(rows):
            if row["source"] == "imdb":
                yield _Review("train", _label(row["label"], path, rows.line_num), number, row["text"])


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case, separated at spaces and at the characters in `FILTERS`."""
    return [word for word in text.lower().translate(_FILTERS_TO_SPACES).split(" ") if word]


def _label(text: str, path: Path, line: int) -> int:
    if text not in ("0", "1"):
        raise UserError(f"{path} has label '{text}' before line {line + 1}; it must be 0 or 1.")
    return int(text)
