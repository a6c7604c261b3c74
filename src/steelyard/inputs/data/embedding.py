"""A frozen embedding: rows of GloVe (Pennington et al. 2014) if the user has the file, otherwise random rows."""

from pathlib import Path
from typing import Any

import numpy as np

from steelyard.errors import UserError
from steelyard.inputs.data.damage import refusing
from steelyard.inputs.data.options import TextOptions
from steelyard.inputs.data.raw_samples import Ids
from steelyard.inputs.data.work import Work
from steelyard.inputs.weights import child_generator

Rows = np.ndarray[Any, np.dtype[np.float32]]

# About the standard deviation of the components of glove.6B.300d. Much smaller values would give the next layers no signal.
RANDOM_STD = 0.4
REPORT_LINES = 50_000
REMEDY = "download the official file again, or correct your own"


def vectors_name(options: TextOptions) -> str:
    """Return the name under which the vectors of this width are published."""
    return f"glove.6B.{options.embedding}d.txt"


def build_embedding(work: Work[TextOptions], words: tuple[str, ...], ranks: Ids) -> tuple[Rows, dict[str, Any]]:
    """Return rows float32 (vocabulary, embedding) and their metadata.

    With GloVe, ids without a vector (padding, start, unknown, and words that GloVe lacks) have zero rows, as in the
    published implementation. Random rows are N(0, 0.4), with a zero row for the padding.
    """
    source, options = work.source, work.options
    if source.companion is None:
        generator = child_generator(options.seed, "embedding")
        rows = generator.standard_normal((options.vocabulary, options.embedding), dtype=np.float32)
        rows *= np.float32(RANDOM_STD)
        rows[0] = 0
        return rows, {"embedding": "seeded"}
    id_of_word = {
        words[word]: int(ranks[word]) + options.index_from
        for word in np.flatnonzero((ranks > 0) & (ranks < options.vocabulary - options.index_from))
    }
    if not id_of_word:
        raise UserError(
            f"{source.companion} cannot be used with '{source.data.name}', which stores ranks without words; "
            "put imdb_word_index.json of Keras next to it, or use the reviews as text (aclimdb)."
        )
    rows, found = _read_vectors(source.companion, id_of_word, work)
    missing = len(id_of_word) - found
    return rows, {"embedding": "glove", "embedding_words_found": found, "embedding_words_missing": missing}


def _read_vectors(path: Path, id_of_word: dict[str, int], work: Work[TextOptions]) -> tuple[Rows, int]:
    width = work.options.embedding
    rows = np.zeros((work.options.vocabulary, width), np.float32)
    found = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not number % REPORT_LINES:
                work.say(f"Reading {path.name}", file.tell(), path.stat().st_size)
            word, _, numbers = line.rstrip(b"\n").partition(b" ")
            row = id_of_word.get(word.decode("utf-8", "replace"))
            if row is not None:
                rows[row] = _parse_numbers(numbers, width, f"{path}, line {number},")
                found += 1
    return rows, found


def _parse_numbers(text: bytes, width: int, where: str) -> Rows:
    with refusing(f"{where} is not a word and {width} numbers", ValueError, remedy=REMEDY):
        row = np.array(text.split(), np.float32)
    if row.shape != (width,):
        raise UserError(f"{where} has {len(row)} numbers, but {width} were expected; {REMEDY}.")
    return row
