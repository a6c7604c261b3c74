"""Token lists -> ids int32 (N, T): words, their frequency ranks on the training split, padding and cutting.

The conventions are those of Keras' `imdb.load_data` and `pad_sequences`, and of its `Tokenizer` for raw text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.inputs.data.request import Progress

if TYPE_CHECKING:
    from steelyard.inputs.data.request import Report, TextOptions
    from steelyard.inputs.data.tables import Ints, TextSplit
    from steelyard_worker.tensors import Writer

    Ids = np.ndarray[Any, np.dtype[np.int32]]

FILTERS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'
_SPACES = str.maketrans(FILTERS, " " * len(FILTERS))
CHUNK_REVIEWS = 512
NEVER = np.iinfo(np.int32).max  # the rank of a word that the training split does not have


def split_words(text: str) -> list[str]:
    """Return the words of a text: lower case, the filtered characters and spaces between them taken away."""
    return [word for word in text.lower().translate(_SPACES).split(" ") if word]


def rank_words(words: tuple[str, ...], train: TextSplit, positions: Ints) -> Ids:
    """Return the rank int32 of each word id: 1 is the most frequent in those reviews, ties by the word."""
    counts = np.zeros(len(words), np.int64)
    for position in positions:
        np.add.at(counts, train.review(position), 1)
    seen = [int(each) for each in np.flatnonzero(counts)]
    seen.sort(key=lambda each: (-counts[each], words[each]))
    ranks = np.full(len(words), NEVER, np.int32)
    ranks[seen] = np.arange(1, len(seen) + 1, dtype=np.int32)
    return ranks


def encode(ranks: Ids, options: TextOptions) -> Ids:
    """Return int32 ids of a review: start_char, then rank + index_from, or oov_char from `vocabulary` on."""
    ids = np.empty(len(ranks) + 1, np.int32)
    ids[0] = options.start_char
    known = ranks < options.vocabulary - options.index_from
    ids[1:] = np.where(known, np.where(known, ranks, 0) + options.index_from, options.oov_char)
    return ids


def fit(ids: Ids, length: int, padding: str) -> Ids:
    """Return exactly `length` ids: padded with 0, or cut, on the side that `padding` names."""
    fitted = np.zeros(length, np.int32)
    kept = min(len(ids), length)
    if kept and padding == "front":
        fitted[length - kept :] = ids[len(ids) - kept :]
    elif kept:
        fitted[:kept] = ids[:kept]
    return fitted


def count_tokens(split: TextSplit, positions: Ints, options: TextOptions) -> int:
    """Return how many tokens of the prepared reviews are not padding."""
    return int(np.minimum(split.lengths[positions] + 1, options.length).sum())


def write_tokens(
    writer: Writer,
    name: str,
    split: TextSplit,
    positions: Ints,
    ranks: Ids | None,
    options: TextOptions,
    report: Report,
) -> None:
    """Append `name/tokens` int32 (N, T) and `name/label` int32 (N).

    `ranks` maps word ids to ranks; None where the ids are ranks already.
    """
    writer.begin(f"{name}/tokens", "<i4", (len(positions), options.length))
    for start in range(0, len(positions), CHUNK_REVIEWS):
        chunk = [split.review(each) for each in positions[start : start + CHUNK_REVIEWS]]
        encoded = [encode(each if ranks is None else ranks[each], options) for each in chunk]
        writer.extend(np.stack([fit(each, options.length, options.padding) for each in encoded]))
        report(Progress(f"Writing {name} reviews", min(start + CHUNK_REVIEWS, len(positions)), len(positions)))
    writer.add(f"{name}/label", split.labels[positions])
