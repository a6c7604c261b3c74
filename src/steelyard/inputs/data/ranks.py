"""IMDB as distributed by Keras: an .npz of reviews as lists of word ranks, optionally with the word of each rank."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.errors import UserError
from steelyard.inputs.data.damage import DOWNLOAD, refusing
from steelyard.inputs.data.inventory import accepted, attempted
from steelyard.inputs.data.pickles import load_arrays
from steelyard.inputs.data.raw_samples import RawSamples, Spool, TextSplit
from steelyard.inputs.data.work import Work

WORD_INDEX = "imdb_word_index.json"
WORDLESS = "reviews without a word"


def read_ranks(work: Work[Any]) -> RawSamples[TextSplit]:
    """Return both splits; a review is a list of ranks, and rank 1 is the most frequent word.

    UserError: an array is missing or empty, a label is not 0 or 1, or a rank exceeds the official vocabulary.
    """
    source = work.source
    splits = []
    for done, name in enumerate(("train", "test")):
        work.say(f"Reading {source.data.name}", done, 2)
        arrays = load_arrays(source.path, (f"x_{name}", f"y_{name}"), source.layout.unpacked)
        with Spool(work.scratch / f"{name}.i32", np.int32) as spool:
            splits.append(_split(work, name, arrays, spool))
    words = _read_words(source.path.parent)
    return RawSamples(splits[0], splits[1], source.verified, is_sorted=True, words=words, ranked=True)


def _read_words(folder: Path) -> tuple[str, ...]:
    """Return the word of each rank (rank 0 has none) from the word index next to the data; empty if there is no index."""
    path = folder / WORD_INDEX
    if not path.is_file():
        return ()
    with refusing(f"{path} does not map words to ranks", ValueError, AttributeError, TypeError):
        ranks = {str(word): int(rank) for word, rank in json.loads(path.read_text(encoding="utf-8")).items()}
    words = [""] * (max(ranks.values(), default=0) + 1)
    for word, rank in ranks.items():
        words[rank] = word
    return tuple(words)


def _split(work: Work[Any], name: str, arrays: dict[str, np.ndarray[Any, Any]], spool: Spool) -> TextSplit:
    source, reviews, labels = work.source, arrays[f"x_{name}"], arrays[f"y_{name}"]
    where = f"{source.path} (x_{name})"
    if not len(reviews) or len(reviews) != len(labels):
        raise UserError(
            f"{where} has {len(reviews)} reviews and {len(labels)} labels, so it is not the official file; {DOWNLOAD}."
        )
    if not np.isin(labels, (0, 1)).all():
        raise UserError(f"{source.path} (y_{name}) has labels other than 0 and 1; {DOWNLOAD}.")
    starts, lengths = np.zeros(len(reviews), np.int64), np.zeros(len(reviews), np.int64)

    def checked(numbered: tuple[int, Any]) -> np.ndarray[Any, Any]:
        return _checked(np.asarray(numbered[1]), source.data.ranks, where, numbered[0])

    for row, review in enumerate(accepted(map(attempted(checked), enumerate(reviews)))):
        starts[row], lengths[row] = spool.count, len(review)
        spool.append(review)
        if not len(review):
            work.inventory.leave_out(WORDLESS, f"review {row} of x_{name}")
    used = lengths > 0
    return TextSplit(spool.finish(), starts[used], lengths[used], np.asarray(labels, np.int32)[used])


def _checked(review: np.ndarray[Any, Any], largest: int, where: str, row: int) -> np.ndarray[Any, Any]:
    if review.ndim != 1 or (review.size and review.dtype.kind not in "iu"):
        raise UserError(f"{where}, review {row}, is not a list of whole numbers; {DOWNLOAD}.")
    if review.size and not (review.min() >= 1 and review.max() <= largest):
        raise UserError(
            f"{where}, review {row}, has ranks from {review.min()} to {review.max()}; the official vocabulary goes from 1 to "
            f"{largest}."
        )
    return review
