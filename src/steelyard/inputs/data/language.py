"""Running text -> sentence pairs with masked words for BERT, prepared once: vocabulary, word pieces, pairs, masks."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import UserError
from steelyard.host import usable_cores
from steelyard.inputs.data.articles import split_articles
from steelyard.inputs.data.masking import Corpus, Recipe, article_samples
from steelyard.inputs.data.request import Progress
from steelyard.inputs.data.tables import Spool
from steelyard.inputs.data.wordpieces import SPECIAL, VOCABULARY, learn_vocabulary, read_vocabulary, tokenizer
from steelyard_worker.tensors import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from steelyard.inputs.data.articles import Split
    from steelyard.inputs.data.masking import Arrays
    from steelyard.inputs.data.request import LanguageOptions, Report
    from steelyard.inputs.data.source import Source

CHUNK_ARTICLES = 64  # of one task, and of one call of the tokenizer: what bounds the memory
CHUNK_SAMPLES = 4096
POOL_ARTICLES = 2000  # below, starting processes takes longer than the work
DTYPES = {
    "input_ids": np.int32, "input_mask": np.int32, "segment_ids": np.int32, "masked_lm_positions": np.int32,
    "masked_lm_ids": np.int32, "masked_lm_weights": np.float32, "next_sentence_label": np.int32,
}  # fmt: skip


def write_language(
    folder: Path, scratch: Path, source: Source, options: LanguageOptions, meta: dict[str, Any], report: Report
) -> None:  # fmt: skip
    """Write `train/` and `test/` input_ids, input_mask, segment_ids (N, T), masked_lm_* (N, M), next_sentence_label (N,).

    All int32 but masked_lm_weights float32; `position/` int32 (N,): the sample's own number. `vocab.txt` is kept beside them.
    UserError: a file that is missing, empty or not UTF-8, or a vocabulary of another size.
    """
    splits = split_articles(source, options)
    pieces = _vocabulary(splits["train"], source, options, report)
    (folder / VOCABULARY).write_text("\n".join(pieces) + "\n", encoding="utf-8")
    meta |= {"pieces": len(pieces), "vocabulary": "given" if source.vectors else "learned from the training split"}
    held, spooled = 0, {}
    for name, split in splits.items():
        place = scratch / name
        place.mkdir()
        articles, meta[f"{name}_pieces"] = _spool_corpus(place, split, pieces, name, report)
        held += articles
        copies, limit = (options.copies, options.train_limit) if name == "train" else (1, options.test_limit)
        spooled[name] = _spool_samples(place, pieces, options, copies, limit, report)
        meta[f"{name}_count"] = len(spooled[name]["next_sentence_label"])
    meta["subset"] = held < source.data.train + source.data.test
    _write(Writer(folder, meta), spooled, report)


def _vocabulary(train: Split, source: Source, options: LanguageOptions, report: Report) -> list[str]:
    if source.vectors:
        return read_vocabulary(source.vectors, options.vocabulary)
    report(Progress(f"Learning {options.vocabulary:,} word pieces from the training split"))
    first, again = ((sentence for article in train.read() for sentence in article) for _ in range(2))
    return learn_vocabulary(first, again, options.vocabulary)


def _spool_corpus(folder: Path, split: Split, pieces: list[str], name: str, report: Report) -> tuple[int, int]:
    """Write the word pieces of a split, where its sentences and articles begin; returns the numbers of articles and pieces."""
    encoder = tokenizer(pieces)
    with Spool(folder / "pieces", np.int32) as flat, Spool(folder / "sentences", np.int64) as sentences, Spool(
        folder / "articles", np.int64
    ) as articles:  # fmt: skip
        for block in _blocks(split.read(), CHUNK_ARTICLES):
            encoded = iter(
                encoder.encode_batch_fast([each for article in block for each in article], add_special_tokens=False)
            )
            for article in block:
                found = [ids for each in islice(encoded, len(article)) if (ids := each.ids)]
                if found:
                    articles.append(np.array([sentences.count]))
                    sentences.append(flat.count + np.cumsum([0, *map(len, found[:-1])]))
                    flat.append(np.concatenate([np.array(ids, np.int32) for ids in found]))
            report(Progress(f"Cutting {name} articles into word pieces", articles.count))
        counts = articles.count, flat.count
        articles.append(np.array([sentences.count]))
        sentences.append(np.array([flat.count]))
    if counts[0] < 2:
        raise UserError(
            f"{split.where} holds {'no text' if not counts[0] else 'a single article'}; a split must not be empty, and a random "
            "next sentence comes from another article."
        )
    return counts


def _spool_samples(
    folder: Path, pieces: list[str], options: LanguageOptions, copies: int, limit: int, report: Report
) -> Arrays:  # fmt: skip
    """Write every input's rows to a file of its own, then map them: how many there are is known at the end only."""
    spools = {name: Spool(folder / name, dtype) for name, dtype in DTYPES.items()}
    count = 0
    try:
        for block in _sample_blocks(folder, _recipe(pieces, options), options.seed, copies):
            rows = block["next_sentence_label"]
            taken = min(len(rows), limit - count) if limit else len(rows)
            for name, spool in spools.items():
                spool.append(block[name][:taken])
            count += taken
            report(Progress("Pairing sentences and masking words", count, limit))
            if limit and count >= limit:
                break
    finally:
        found = {name: spool.finish() for name, spool in spools.items()}
    labels = found.pop("next_sentence_label")
    return {name: array.reshape(count, -1) for name, array in found.items()} | {"next_sentence_label": labels}


def _recipe(pieces: list[str], options: LanguageOptions) -> Recipe:
    places = {piece: pieces.index(piece) for piece in SPECIAL}
    replacements = np.setdiff1d(np.arange(len(pieces), dtype=np.int32), list(places.values()))
    return Recipe(
        options.length,
        options.masked,
        options.short_share,
        places["[CLS]"],
        places["[SEP]"],
        places["[MASK]"],
        replacements,
    )


def _sample_blocks(folder: Path, recipe: Recipe, seed: int, copies: int) -> Iterator[Arrays]:
    """Yield stacked samples of some articles at a time, in order; every processor works where there is enough to do."""
    count = len(Corpus.open(folder))
    tasks = (
        (folder, recipe, seed, copy, range(first, min(first + CHUNK_ARTICLES, count)))
        for copy in range(copies)
        for first in range(0, count, CHUNK_ARTICLES)
    )
    if count * copies < POOL_ARTICLES:
        yield from (_samples(*task) for task in tasks)
        return
    processes = usable_cores()
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        yield from _ahead(lambda task: pool.submit(_samples, *task), tasks, 2 * processes)


def _ahead(submit: Callable[[Any], Any], tasks: Iterator[Any], most: int) -> Iterator[Any]:
    waiting: deque[Any] = deque()
    try:
        for task in tasks:
            waiting.append(submit(task))
            if len(waiting) > most:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for each in waiting:
            each.cancel()


def _samples(folder: Path, recipe: Recipe, seed: int, copy: int, articles: range) -> Arrays:
    corpus = Corpus.open(folder)
    found = [each for article in articles for each in article_samples(corpus, recipe, seed, copy, article)]
    return {name: np.stack([each[name] for each in found]) for name in DTYPES}


def _write(writer: Writer, spooled: dict[str, Arrays], report: Report) -> None:
    try:
        for split, arrays in spooled.items():
            for name, array in arrays.items():
                writer.begin(f"{split}/{name}", np.dtype(DTYPES[name]).newbyteorder("<").str, array.shape)
                for start in range(0, len(array), CHUNK_SAMPLES):
                    writer.extend(array[start : start + CHUNK_SAMPLES])
                report(Progress(f"Writing {split} samples"))
            writer.add(f"position/{split}", np.arange(len(arrays["next_sentence_label"]), dtype=np.int32))
        writer.close()
    finally:
        writer.abandon()  # of no effect once it is closed


def _blocks(items: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while block := list(islice(items, size)):
        yield block
