"""Film reviews as text, from the official folders or archive, or from a table -> token lists with their words."""

import csv
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from steelyard.errors import UserError
from steelyard.inputs.data.archives import list_files, read_members
from steelyard.inputs.data.damage import MissingData, refusing
from steelyard.inputs.data.inventory import accepted, attempted
from steelyard.inputs.data.raw_samples import RawSamples, Spool, TextSplit
from steelyard.inputs.data.text_files import decoded
from steelyard.inputs.data.work import Work

# Words are split as by Keras' `Tokenizer`.
FILTERS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'
_FILTERS_TO_SPACES = str.maketrans(FILTERS, " " * len(FILTERS))
REPORT_REVIEWS = 2000
COLUMNS = ["text", "label", "source"]
WORDLESS = "reviews without a word"
OTHER_SOURCE = "rows of another source than imdb"


class _Review(NamedTuple):
    split: str
    label: int
    number: int  # of the review within split and label, as in its file name
    text: str
    name: str  # of the file, or the line of the table


def read_reviews(work: Work[Any]) -> RawSamples[TextSplit]:
    """Read `train|test/neg|pos/NUMBER_STARS.txt` of a folder or archive; UserError names the files that are not UTF-8."""
    return _spool(work, accepted(_file_reviews(work)))


def read_review_table(work: Work[Any]) -> RawSamples[TextSplit]:
    """Read the rows of `text,label,source` whose source is "imdb", numbered by their row in the table."""
    path, remedy = work.source.path, work.source.layout.remedy
    not_text = refusing(f"{path} is not UTF-8 text", UnicodeDecodeError, remedy="convert it to UTF-8")
    with not_text, refusing(f"{path} is not a table of comma-separated values", csv.Error, remedy=remedy):
        return _spool(work, accepted(_table_reviews(work)))


def _spool(work: Work[Any], reviews: Iterator[_Review]) -> RawSamples[TextSplit]:
    """Return the words of the reviews as ids, numbered in the order in which words first appear.

    Reviews are sorted by (label, number), so that folder and archive give the same order. Reviews without a word are counted.
    """
    data_set = work.source.data
    id_of: defaultdict[str, int] = defaultdict()
    id_of.default_factory = id_of.__len__  # a new word gets the next number
    rows: dict[str, list[tuple[int, int, int, int]]] = {"train": [], "test": []}
    with Spool(work.scratch / "words.i32", np.int32) as spool:
        for count, review in enumerate(reviews, 1):
            words = split_words(review.text)
            if not words:
                work.inventory.leave_out(WORDLESS, review.name)
                continue
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


def _file_reviews(work: Work[Any]) -> Iterator[_Review | UserError]:
    source, pattern = work.source, re.compile(work.source.data.files)
    names = work.sample(list_files(source.path, pattern)) if source.path.is_dir() else None

    def review(member: tuple[str, bytes]) -> _Review:
        name, content = member
        _, split, label, number = pattern.findall(name)[0]
        return _Review(split, int(label == "pos"), int(number), decoded(content, f"{source.path}: {name}"), name)

    yield from map(attempted(review), read_members(source, pattern, work.inventory, names))


def _table_reviews(work: Work[Any]) -> Iterator[_Review | UserError]:
    path = work.source.path
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file, strict=True)
        if rows.fieldnames != COLUMNS:
            raise UserError(
                f"{path} has the columns {rows.fieldnames}, not {','.join(COLUMNS)}; {work.source.layout.remedy}."
            )
        for number, row in enumerate(rows):
            where = f"line {rows.line_num:,}"
            if row.keys() != set(COLUMNS) or None in row.values():
                yield UserError(f"{path}, {where}, has not three columns; fix the row.")
            elif row["source"] != "imdb":
                work.inventory.leave_out(OTHER_SOURCE, where)
            elif row["label"] not in ("0", "1"):
                yield UserError(
                    f"{path} has label '{row['label']}' before line {rows.line_num + 1}; it must be 0 or 1."
                )
            else:
                yield _Review("train", int(row["label"]), number, row["text"], where)


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case, separated at spaces and at the characters in `FILTERS`."""
    return [word for word in text.lower().translate(_FILTERS_TO_SPACES).split(" ") if word]
