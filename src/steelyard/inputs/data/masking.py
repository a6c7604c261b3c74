"""Tokenized articles -> sentence pairs with masked words, as BERT is trained on them (Devlin et al. 2019, appendix A).

Every article draws from a generator of its own, seeded by (seed, copy, article), so that any number of processes makes the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    Ints = np.ndarray[Any, np.dtype[np.int32]]
    Places = np.ndarray[Any, np.dtype[np.signedinteger[Any]]]
    Arrays = dict[str, np.ndarray[Any, Any]]

KEPT_MARKS = 3  # [CLS] a [SEP] b [SEP]
MASKED_SHARE = 0.15
HIDDEN_SHARE, REPLACED_SHARE = 0.8, 0.1  # of the masked words: shown as [MASK], as any piece; the rest stay
RANDOM_NEXT_SHARE = 0.5


@dataclass(frozen=True)
class Corpus:
    """Pieces end to end; sentence s is `pieces[sentences[s]:sentences[s + 1]]`, article a has sentences articles[a]..[a + 1]."""

    pieces: Ints
    sentences: np.ndarray[Any, np.dtype[np.int64]]
    articles: np.ndarray[Any, np.dtype[np.int64]]

    def __len__(self) -> int:
        return len(self.articles) - 1

    @classmethod
    def open(cls, folder: Path) -> Corpus:
        """Map what `language` has spooled."""
        flat = {"pieces": np.int32, "sentences": np.int64, "articles": np.int64}
        return cls(*(np.memmap(folder / name, dtype, mode="r") for name, dtype in flat.items()))


@dataclass(frozen=True)
class Recipe:
    """Sizes of a sample, the special pieces' ids, and the ids that may stand in place of a word."""

    length: int
    masked: int
    short_share: float
    classify: int
    separate: int
    mask: int
    replacements: Ints


class _Span(NamedTuple):
    begin: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.begin


def article_samples(corpus: Corpus, recipe: Recipe, seed: int, copy: int, article: int) -> Iterator[Arrays]:
    """Yield the samples of one article: {input: array without the batch axis}."""
    generator = np.random.Generator(np.random.PCG64([seed, copy, article]))
    for first, second, is_random in _pairs(corpus, recipe, generator, article):
        yield _sample(corpus, recipe, generator, *_cut(first, second, recipe.length - KEPT_MARKS, generator), is_random)


def _pairs(
    corpus: Corpus, recipe: Recipe, generator: np.random.Generator, article: int
) -> Iterator[tuple[_Span, _Span, bool]]:  # fmt: skip
    """Fill samples with sentence after sentence; a random second part gives the rest of its sentences back."""
    sentence, end = (int(each) for each in corpus.articles[article : article + 2])
    starts = corpus.sentences
    while sentence < end:
        wanted = _wanted(recipe, generator)
        reach = sentence + 1
        while reach < end and starts[reach] - starts[sentence] < wanted:
            reach += 1
        split = int(generator.integers(sentence + 1, reach)) if reach - sentence > 1 else reach
        first = _Span(int(starts[sentence]), int(starts[split]))
        if split == reach or generator.random() < RANDOM_NEXT_SHARE:
            yield first, _random_span(corpus, generator, article, max(wanted - first.size, 1)), True
            sentence = split
        else:
            yield first, _Span(first.end, int(starts[reach])), False
            sentence = reach


def _wanted(recipe: Recipe, generator: np.random.Generator) -> int:
    """Return how many pieces a sample is to have: all that fit, or now and then fewer, as shorter texts have."""
    most = recipe.length - KEPT_MARKS
    return int(generator.integers(2, most + 1)) if generator.random() < recipe.short_share else most


def _random_span(corpus: Corpus, generator: np.random.Generator, article: int, wanted: int) -> _Span:
    """Return sentences from anywhere in another article, as many as are wanted and there are."""
    other = int(generator.integers(len(corpus) - 1))
    other += other >= article
    first, end = (int(each) for each in corpus.articles[other : other + 2])
    begin = int(corpus.sentences[generator.integers(first, end)])
    return _Span(begin, min(int(corpus.sentences[end]), begin + wanted))


def _cut(first: _Span, second: _Span, most: int, generator: np.random.Generator) -> tuple[_Span, _Span]:
    """Take pieces from the longer one, at either end by chance, until both fit."""
    excess = max(first.size + second.size - most, 0)
    spans = [first, second]
    for at_front in generator.random(excess) < 0.5:
        longer = 0 if spans[0].size > spans[1].size else 1
        begin, end = spans[longer]
        spans[longer] = _Span(begin + 1, end) if at_front else _Span(begin, end - 1)
    return spans[0], spans[1]


def _sample(
    corpus: Corpus, recipe: Recipe, generator: np.random.Generator, first: _Span, second: _Span, is_random: bool
) -> Arrays:  # fmt: skip
    ids, mask, segments = (np.zeros(recipe.length, np.int32) for _ in range(3))
    border, end = first.size + 2, first.size + second.size + KEPT_MARKS
    ids[0], ids[border - 1], ids[end - 1] = recipe.classify, recipe.separate, recipe.separate
    ids[1 : border - 1] = corpus.pieces[first.begin : first.end]
    ids[border : end - 1] = corpus.pieces[second.begin : second.end]
    mask[:end], segments[border:end] = 1, 1
    words = np.concatenate((np.arange(1, border - 1), np.arange(border, end - 1)))
    masked = _mask(ids, words, recipe, generator)
    return {"input_ids": ids, "input_mask": mask, "segment_ids": segments, **masked,
            "next_sentence_label": np.array(is_random, np.int32)}  # fmt: skip


def _mask(ids: Ints, words: Places, recipe: Recipe, generator: np.random.Generator) -> Arrays:
    """Change `ids` in place at chosen places, and return those places in order, what stood there, and weights."""
    count = min(recipe.masked, max(1, round(len(words) * MASKED_SHARE)))
    chosen = np.sort(generator.choice(words, count, replace=False))
    places, truth, weights = (np.zeros(recipe.masked, dtype) for dtype in (np.int32, np.int32, np.float32))
    places[:count], truth[:count], weights[:count] = chosen, ids[chosen], 1
    chance, others = generator.random(count), generator.choice(recipe.replacements, count)
    replaced = chance < HIDDEN_SHARE + REPLACED_SHARE
    ids[chosen[replaced]] = others[replaced]
    ids[chosen[chance < HIDDEN_SHARE]] = recipe.mask
    return {"masked_lm_positions": places, "masked_lm_ids": truth, "masked_lm_weights": weights}
