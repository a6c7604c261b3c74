"""A frozen embedding: rows of GloVe (Pennington et al. 2014) where the user has the file, else seeded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import UserError
from steelyard.inputs.data.request import Progress
from steelyard.inputs.weights import child_generator

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.inputs.data.request import Report, TextOptions
    from steelyard.inputs.data.source import Source
    from steelyard.inputs.data.tables import Ids

    Rows = np.ndarray[Any, np.dtype[np.float32]]

# About the spread of the components of glove.6B.300d; much less would starve the layers above.
SEEDED_STD = 0.4
REPORT_LINES = 50_000


def vectors_name(options: TextOptions) -> str:
    """Return the name under which the vectors of this width are published."""
    return f"glove.6B.{options.embedding}d.txt"


def build_embedding(
    source: Source, words: tuple[str, ...], ranks: Ids, options: TextOptions, report: Report
) -> tuple[Rows, dict[str, Any]]:
    """Return rows float32 (vocabulary, embedding) and what to say about them.

    With GloVe, ids without a vector (padding, start, unknown, and words it lacks) are zero, as in the
    published implementation; seeded rows are N(0, 0.4) with a zero row for the padding.
    """
    if source.vectors is None:
        generator = child_generator(options.seed, "embedding")
        rows = generator.standard_normal((options.vocabulary, options.embedding), dtype=np.float32)
        rows *= np.float32(SEEDED_STD)
        rows[0] = 0
        return rows, {"embedding": "seeded"}
    wanted = {
        words[word]: int(ranks[word]) + options.index_from
        for word in np.flatnonzero((ranks > 0) & (ranks < options.vocabulary - options.index_from))
    }
    if not wanted:
        raise UserError(
            f"{source.vectors} cannot be joined to '{source.data.name}', which comes as ranks without words; "
            "put Keras' imdb_word_index.json beside it, or use the reviews as text (aclimdb)."
        )
    rows, found = _read_vectors(source.vectors, wanted, options, report)
    return rows, {
        "embedding": "glove",
        "embedding_words_found": found,
        "embedding_words_missing": len(wanted) - found,
    }


def _read_vectors(path: Path, wanted: dict[str, int], options: TextOptions, report: Report) -> tuple[Rows, int]:
    rows = np.zeros((options.vocabulary, options.embedding), np.float32)
    found = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not number % REPORT_LINES:
                report(Progress(f"Reading {path.name}", file.tell(), path.stat().st_size))
            word, _, numbers = line.rstrip(b"\n").partition(b" ")
            target = wanted.get(word.decode("utf-8", "replace"))
            if target is not None:
                rows[target] = _numbers(numbers, options.embedding, f"{path} line {number}")
                found += 1
    return rows, found


def _numbers(text: bytes, width: int, where: str) -> Rows:
    try:
        row = np.array(text.split(), np.float32)
    except ValueError as error:
        raise UserError(f"{where} is not a word and {width} numbers ({error}).") from error
    if row.shape != (width,):
        raise UserError(f"{where} has {len(row)} numbers; {width} were expected.")
    return row
