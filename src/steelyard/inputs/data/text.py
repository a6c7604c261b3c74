"""Token lists -> ids int32 (N, T): split text into words, rank words by frequency, pad and truncate.

The conventions are those of Keras' `imdb.load_data` and `pad_sequences`, and of its `Tokenizer` for raw text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from steelyard.inputs.data.request import Progress

if TYPE_CHECKING:
    from steelyard.inputs.data.options import TextOptions
    from steelyard.inputs.data.raw_samples import Ids, Ints, TextSplit
    from steelyard.inputs.data.request import Report
    from steelyard_worker.tensors import Writer

FILTERS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'
_FILTERS_TO_SPACES = str.maketrans(FILTERS, " " * len(FILTERS))
CHUNK_REVIEWS = 512
UNRANKED = np.iinfo(np.int32).max  # the rank of a word that is not in the training split


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case, separated at spaces and at the characters in `FILTERS`."""
    return [word for word in text.lower().translate(_FILTERS_TO_SPACES).split(" ") if word]


def rank_words(words: tuple[str, ...], train: TextSplit, positions: Ints) -> Ids:
    """Return the rank int32 of each word id: 1 is the most frequent word in these reviews, ties in alphabetical order."""
    counts = np.zeros(len(words), np.int64)
    for position in positions:
        np.add.at(counts, train.review(position), 1)
    seen = [int(word) for word in np.flatnonzero(counts)]
    seen.sort(key=lambda word: (-counts[word], words[word]))
    ranks = np.full(len(words), UNRANKED, np.int32)
    ranks[seen] = np.arange(1, len(seen) + 1, dtype=np.int32)
    return ranks


def encode(ranks: Ids, options: TextOptions) -> Ids:
    """Return the ids int32 of a review: start_char, then rank + index_from if below `vocabulary`, otherwise oov_char."""
    ids = np.empty(len(ranks) + 1, np.int32)
    ids[0] = options.start_char
    known = ranks < options.vocabulary - options.index_from
    ids[1:] = np.where(known, np.where(known, ranks, 0) + options.index_from, options.oov_char)
    return ids


def fit(ids: Ids, length: int, padding: str) -> Ids:
    """Return exactly `length` ids: padded with 0 or truncated, on the side named by `padding` ("front" or "end")."""
    fitted = np.zeros(length, np.int32)
    count = min(len(ids), length)
    if count and padding == "front":
        fitted[length - count :] = ids[len(ids) - count :]
    elif count:
        fitted[:count] = ids[:count]
    return fitted


def count_tokens(split: TextSplit, positions: Ints, options: TextOptions) -> int:
    """Return the number of tokens in the prepared reviews that are not padding."""
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

    `ranks` maps word ids to ranks; None if the ids already are ranks.
    """
    writer.begin(f"{name}/tokens", "<i4", (len(positions), options.length))
    for start in range(0, len(positions), CHUNK_REVIEWS):
        reviews = [split.review(position) for position in positions[start : start + CHUNK_REVIEWS]]
        encoded = [encode(review if ranks is None else ranks[review], options) for review in reviews]
        writer.extend(np.stack([fit(ids, options.length, options.padding) for ids in encoded]))
        report(Progress(f"Writing {name} reviews", min(start + CHUNK_REVIEWS, len(positions)), len(positions)))
    writer.add(f"{name}/label", split.labels[positions])
