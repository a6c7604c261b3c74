"""Token lists -> ids int32 (N, T): rank words by frequency, pad and truncate.

The conventions are those of Keras' `imdb.load_data` and `pad_sequences`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from steelyard.inputs.data.embedding import build_embedding
from steelyard.inputs.data.options import TextOptions
from steelyard.inputs.data.ranks import read_ranks
from steelyard.inputs.data.raw_samples import Ids, Ints, RawSamples, TextSplit
from steelyard.inputs.data.reviews import read_review_table, read_reviews
from steelyard.inputs.data.splits import add_positions, choose_samples, describe_samples
from steelyard.inputs.data.work import Known, Work
from steelyard_worker.tensors import Writer

READERS: dict[str, Callable[[Work[Any]], RawSamples[TextSplit]]] = {
    "ranks": read_ranks,
    "reviews": read_reviews,
    "review_table": read_review_table,
}
CHUNK_REVIEWS = 512
UNRANKED = np.iinfo(np.int32).max  # the rank of a word that is not in the training split


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


def write_text(work: Work[TextOptions]) -> None:
    """Write `train/` and `test/` tokens int32 (N, T) and label int32 (N), `embedding` if requested, and `position/`."""
    samples = READERS[work.source.data.reader](work)
    chosen = choose_samples(samples, work.options)
    ranks = None if samples.ranked else rank_words(samples.words, *chosen["train"])
    facts = describe_samples(samples, chosen)
    for name, (split, positions) in chosen.items():
        facts[f"{name}_tokens"] = count_tokens(split, positions, work.options)
    embedding = None
    if work.options.embedding:
        word_ranks = np.arange(len(samples.words), dtype=np.int32) if ranks is None else ranks
        embedding, description = build_embedding(work, samples.words, word_ranks)
        facts |= description
    with work.writer(facts) as writer:
        for name, (split, positions) in chosen.items():
            _write_split(writer, name, split, positions, ranks, work)
        if embedding is not None:
            writer.add("embedding", embedding)
        add_positions(writer, chosen)


def open_text(work: Work[TextOptions]) -> Known:
    """Read the reviews: of a folder some, otherwise all. UserError: one cannot be read."""
    READERS[work.source.data.reader](work)
    return Known(classes=work.source.data.classes)


def _write_split(
    writer: Writer, name: str, split: TextSplit, positions: Ints, ranks: Ids | None, work: Work[TextOptions]
) -> None:
    """Append the tokens and labels of one split; `ranks` maps word ids to ranks; None if the ids already are ranks."""
    options, count = work.options, len(positions)
    writer.begin(f"{name}/tokens", "<i4", (count, options.length))
    for start in range(0, count, CHUNK_REVIEWS):
        reviews = [split.review(position) for position in positions[start : start + CHUNK_REVIEWS]]
        encoded = [encode(review if ranks is None else ranks[review], options) for review in reviews]
        writer.extend(np.stack([fit(ids, options.length, options.padding) for ids in encoded]))
        work.say(f"Writing {name} reviews", min(start + CHUNK_REVIEWS, count), count)
    writer.add(f"{name}/label", split.labels[positions])
