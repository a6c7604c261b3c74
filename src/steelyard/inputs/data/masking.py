"""Articles as word pieces -> sentence pairs with masked words, as BERT is trained (Devlin et al. 2019, appendix A).

Every article has its own random generator, seeded by (seed, copy, article), so that the samples do not depend on the number
of processes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from steelyard.inputs.data.options import LanguageOptions

Ints = np.ndarray[Any, np.dtype[np.int32]]
Positions = np.ndarray[Any, np.dtype[np.signedinteger[Any]]]
Arrays = dict[str, np.ndarray[Any, Any]]

SPECIAL_TOKENS = 3  # [CLS] first [SEP] second [SEP]
MASKED_SHARE = 0.15
MASK_TOKEN_SHARE, RANDOM_TOKEN_SHARE = (
    0.8,
    0.1,
)  # of the masked words: replaced by [MASK], or by any piece; the rest stay
RANDOM_NEXT_SHARE = 0.5


@dataclass(frozen=True)
class Corpus:
    """Word pieces of all articles.

    Sentence s is `pieces[sentences[s] : sentences[s + 1]]`. Article a has the sentences `articles[a]` to
    `articles[a + 1] - 1`.
    """

    pieces: Ints
    sentences: np.ndarray[Any, np.dtype[np.int64]]
    articles: np.ndarray[Any, np.dtype[np.int64]]

    def __len__(self) -> int:
        return len(self.articles) - 1

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Map the files spooled by `language`."""
        dtypes = {"pieces": np.int32, "sentences": np.int64, "articles": np.int64}
        return cls(*(np.memmap(folder / name, dtype, mode="r") for name, dtype in dtypes.items()))


@dataclass(frozen=True)
class SampleSettings:
    """The options, the ids of the special pieces, and the ids that may replace a word."""

    options: LanguageOptions
    cls_id: int
    sep_id: int
    mask_id: int
    replacements: Ints


class _Span(NamedTuple):
    begin: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.begin


def article_samples(corpus: Corpus, settings: SampleSettings, copy: int, article: int) -> Iterator[Arrays]:
    """Yield the samples of one article: {input: array without the batch axis}."""
    generator = np.random.Generator(np.random.PCG64([settings.options.seed, copy, article]))
    most = settings.options.length - SPECIAL_TOKENS
    for first, second, is_random in _pairs(corpus, settings, generator, article):
        yield _sample(corpus, settings, generator, *_truncate(first, second, most, generator), is_random)


def _pairs(
    corpus: Corpus, settings: SampleSettings, generator: np.random.Generator, article: int
) -> Iterator[tuple[_Span, _Span, bool]]:
    """Collect sentences until a sample is full, and split them in two parts.

    If the second part is replaced by text from another article, the next sample begins with the replaced sentences.
    """
    sentence, end = (int(bound) for bound in corpus.articles[article : article + 2])
    starts = corpus.sentences
    while sentence < end:
        target = _target_length(settings, generator)
        reach = sentence + 1
        while reach < end and starts[reach] - starts[sentence] < target:
            reach += 1
        split = int(generator.integers(sentence + 1, reach)) if reach - sentence > 1 else reach
        first = _Span(int(starts[sentence]), int(starts[split]))
        if split == reach or generator.random() < RANDOM_NEXT_SHARE:
            yield first, _random_span(corpus, generator, article, max(target - first.size, 1)), True
            sentence = split
        else:
            yield first, _Span(first.end, int(starts[reach])), False
            sentence = reach


def _target_length(settings: SampleSettings, generator: np.random.Generator) -> int:
    """Return the number of pieces of a sample: usually all that fit, and a random smaller number for a share of samples."""
    most = settings.options.length - SPECIAL_TOKENS
    return int(generator.integers(2, most + 1)) if generator.random() < settings.options.short_share else most


def _random_span(corpus: Corpus, generator: np.random.Generator, article: int, length: int) -> _Span:
    """Return up to `length` pieces of another article, from the start of a random sentence."""
    other = int(generator.integers(len(corpus) - 1))
    other += other >= article
    first, end = (int(bound) for bound in corpus.articles[other : other + 2])
    begin = int(corpus.sentences[generator.integers(first, end)])
    return _Span(begin, min(int(corpus.sentences[end]), begin + length))


def _truncate(first: _Span, second: _Span, most: int, generator: np.random.Generator) -> tuple[_Span, _Span]:
    """Remove pieces from the longer span, at a random end each time, until both fit."""
    excess = max(first.size + second.size - most, 0)
    spans = [first, second]
    for at_front in generator.random(excess) < 0.5:
        longer = 0 if spans[0].size > spans[1].size else 1
        begin, end = spans[longer]
        spans[longer] = _Span(begin + 1, end) if at_front else _Span(begin, end - 1)
    return spans[0], spans[1]


def _sample(
    corpus: Corpus,
    settings: SampleSettings,
    generator: np.random.Generator,
    first: _Span,
    second: _Span,
    is_random: bool,
) -> Arrays:
    ids, mask, segments = (np.zeros(settings.options.length, np.int32) for _ in range(3))
    border, end = first.size + 2, first.size + second.size + SPECIAL_TOKENS
    ids[0], ids[border - 1], ids[end - 1] = settings.cls_id, settings.sep_id, settings.sep_id
    ids[1 : border - 1] = corpus.pieces[first.begin : first.end]
    ids[border : end - 1] = corpus.pieces[second.begin : second.end]
    mask[:end], segments[border:end] = 1, 1
    words = np.concatenate((np.arange(1, border - 1), np.arange(border, end - 1)))
    masked = _mask(ids, words, settings, generator)
    return {
        "input_ids": ids,
        "input_mask": mask,
        "segment_ids": segments,
        **masked,
        "next_sentence_label": np.array(is_random, np.int32),
    }


def _mask(ids: Ints, words: Positions, settings: SampleSettings, generator: np.random.Generator) -> Arrays:
    """Change `ids` in place at random positions; return the sorted positions, the original ids, and weights."""
    count = min(settings.options.masked, max(1, round(len(words) * MASKED_SHARE)))
    chosen = np.sort(generator.choice(words, count, replace=False))
    positions, truth, weights = (np.zeros(settings.options.masked, dtype) for dtype in (np.int32, np.int32, np.float32))
    positions[:count], truth[:count], weights[:count] = chosen, ids[chosen], 1
    chance, others = generator.random(count), generator.choice(settings.replacements, count)
    replaced = chance < MASK_TOKEN_SHARE + RANDOM_TOKEN_SHARE
    ids[chosen[replaced]] = others[replaced]
    ids[chosen[chance < MASK_TOKEN_SHARE]] = settings.mask_id
    return {"masked_lm_positions": positions, "masked_lm_ids": truth, "masked_lm_weights": weights}
