"""Running text -> the training samples of BERT: learn a vocabulary, cut text into word pieces, pair sentences, mask words."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.errors import UserError
from steelyard.host import usable_cores
from steelyard.inputs.data.articles import SENTENCE_ENDS, ArticleSplit, split_articles
from steelyard.inputs.data.masking import Arrays, Corpus, SampleSettings, article_samples
from steelyard.inputs.data.options import LanguageOptions
from steelyard.inputs.data.parallel import bounded_map
from steelyard.inputs.data.raw_samples import Spool
from steelyard.inputs.data.wordpieces import SPECIAL, VOCABULARY, learn_vocabulary, read_vocabulary, tokenizer
from steelyard.inputs.data.work import Known, Work
from steelyard_worker.tensors import Writer

ARTICLES_PER_TASK = 64  # also per call of the tokenizer; this bounds the memory
MIN_ARTICLES_FOR_PROCESSES = 2000  # with fewer, starting processes takes longer than the work
DTYPES = {
    "input_ids": np.int32,
    "input_mask": np.int32,
    "segment_ids": np.int32,
    "masked_lm_positions": np.int32,
    "masked_lm_ids": np.int32,
    "masked_lm_weights": np.float32,
    "next_sentence_label": np.int32,
}


def write_language(work: Work[LanguageOptions]) -> None:
    """Write `train/` and `test/` input_ids, input_mask, segment_ids (N, T), masked_lm_* (N, M), next_sentence_label (N,).

    All are int32 except masked_lm_weights, float32. `position/` int32 (N,) is the sample number. The vocabulary is written
    to `vocab.txt`. UserError: a file is missing, empty or not UTF-8, or the vocabulary has another size.
    """
    source, options = work.source, work.options
    splits = split_articles(source, options)
    pieces = _vocabulary(splits["train"], work)
    (work.folder / VOCABULARY).write_text("\n".join(pieces) + "\n", encoding="utf-8")
    facts: dict[str, Any] = {"pieces": len(pieces)}
    facts["vocabulary"] = "given" if source.companion else "learned from the training split"
    spooled = {}
    for name, split in splits.items():
        (work.scratch / name).mkdir()
        facts[f"{name}_pieces"] = _spool_corpus(work, split, pieces, name)
        spooled[name] = _spool_samples(work, pieces, name)
        labels = spooled[name]["next_sentence_label"]
        facts[f"{name}_count"] = len(labels)
        _count_alike(work, name, labels)
    with work.writer(facts) as writer:
        for name, arrays in spooled.items():
            _write_split(writer, work, name, arrays)


def open_language(work: Work[LanguageOptions]) -> Known:
    """Read the first articles of both splits, and the vocabulary if there is one. UserError: a file is not UTF-8, or cut."""
    if work.source.companion:
        read_vocabulary(work.source.companion, work.options.vocabulary)
    for name, split in split_articles(work.source, work.options).items():
        for article in islice(split.read(), work.most):
            _count(work, name, len(article), len(article))
    return Known()


def _vocabulary(train: ArticleSplit, work: Work[LanguageOptions]) -> list[str]:
    size = work.options.vocabulary
    if work.source.companion:
        return read_vocabulary(work.source.companion, size)
    work.say(f"Learning {size:,} word pieces from the training split")
    first, again = ((sentence for article in train.read() for sentence in article) for _ in range(2))
    return learn_vocabulary(first, again, size)


def _spool_corpus(work: Work[LanguageOptions], split: ArticleSplit, pieces: list[str], name: str) -> int:
    """Write the files of a `Corpus`: word pieces, starts of sentences and articles. Return the number of pieces."""
    encoder, folder = tokenizer(pieces), work.scratch / name
    with (
        Spool(folder / "pieces", np.int32) as flat,
        Spool(folder / "sentences", np.int64) as sentences,
        Spool(folder / "articles", np.int64) as articles,
    ):
        for block in _blocks(split.read(), ARTICLES_PER_TASK):
            lines = [sentence for article in block for sentence in article]
            encoded = iter(encoder.encode_batch_fast(lines, add_special_tokens=False))
            for article in block:
                found = [ids for encoding in islice(encoded, len(article)) if (ids := encoding.ids)]
                _count(work, name, len(article), len(found))
                if found:
                    articles.append(np.array([sentences.count]))
                    sentences.append(flat.count + np.cumsum([0, *map(len, found[:-1])]))
                    flat.append(np.concatenate([np.array(ids, np.int32) for ids in found]))
            work.say(f"Cutting {name} articles into word pieces", articles.count)
        article_count, piece_count = articles.count, flat.count
        articles.append(np.array([sentences.count]))
        sentences.append(np.array([flat.count]))
    if article_count < 2:
        raise UserError(
            f"{split.where} holds {'no text' if not article_count else 'a single article'}; at least two articles are needed, "
            "because a random next sentence comes from another article."
        )
    return piece_count


def _count(work: Work[LanguageOptions], name: str, held: int, used: int) -> None:
    """Count what of an article is not used as it is: of `held` sentences, `used` have word pieces."""
    if not used:
        work.inventory.leave_out(f"{name} articles without text")
    elif used < held:
        work.inventory.leave_out("sentences without any word piece", count=held - used)
    if used == 1:
        ends = SENTENCE_ENDS[work.source.data.reader]
        work.inventory.change(
            f"{name} articles of one sentence (only {ends} end one), whose next sentence is always that of another article"
        )


def _count_alike(work: Work[LanguageOptions], name: str, labels: np.ndarray[Any, Any]) -> None:
    if len(labels) > 1 and (labels == labels[0]).all():
        work.inventory.change(f"{name} samples, which all have the same next-sentence label", count=len(labels))


def _spool_samples(work: Work[LanguageOptions], pieces: list[str], split: str) -> Arrays:
    """Write the rows of every input to a separate file, because their number is known only at the end; return the arrays."""
    folder, options = work.scratch / split, work.options
    copies, limit = (options.copies, options.train_limit) if split == "train" else (1, options.test_limit)
    spools = {name: Spool(folder / name, dtype) for name, dtype in DTYPES.items()}
    count = 0
    try:
        for block in _sample_blocks(folder, _settings(pieces, options), copies):
            rows = block["next_sentence_label"]
            taken = min(len(rows), limit - count) if limit else len(rows)
            for name, spool in spools.items():
                spool.append(block[name][:taken])
            count += taken
            work.say("Pairing sentences and masking words", count, limit)
            if limit and count >= limit:
                break
    finally:
        arrays = {name: spool.finish() for name, spool in spools.items()}
    labels = arrays.pop("next_sentence_label")
    return {name: array.reshape(count, -1) for name, array in arrays.items()} | {"next_sentence_label": labels}


def _settings(pieces: list[str], options: LanguageOptions) -> SampleSettings:
    special = {piece: pieces.index(piece) for piece in SPECIAL}
    replacements = np.setdiff1d(np.arange(len(pieces), dtype=np.int32), list(special.values()))
    cls, sep, mask = (special[name] for name in ("[CLS]", "[SEP]", "[MASK]"))
    return SampleSettings(options, cls, sep, mask, replacements)


def _sample_blocks(folder: Path, settings: SampleSettings, copies: int) -> Iterator[Arrays]:
    """Yield stacked samples of some articles at a time, in order, on all processors if there are enough articles."""
    count = len(Corpus.open(folder))
    tasks = (
        (copy, range(first, min(first + ARTICLES_PER_TASK, count)))
        for copy in range(copies)
        for first in range(0, count, ARTICLES_PER_TASK)
    )
    make = partial(_make_samples, folder, settings)
    if count * copies < MIN_ARTICLES_FOR_PROCESSES:
        yield from map(make, tasks)
        return
    with ProcessPoolExecutor(usable_cores(), get_context("spawn")) as pool:
        yield from bounded_map(pool, make, tasks)


def _make_samples(folder: Path, settings: SampleSettings, task: tuple[int, range]) -> Arrays:
    """Return the stacked samples of one pass over a range of the articles in a corpus."""
    corpus, (copy, articles) = Corpus.open(folder), task
    samples = [sample for article in articles for sample in article_samples(corpus, settings, copy, article)]
    return {name: np.stack([sample[name] for sample in samples]) for name in DTYPES}


def _write_split(writer: Writer, work: Work[LanguageOptions], split: str, arrays: Arrays) -> None:
    for name, array in arrays.items():
        writer.add(f"{split}/{name}", array)
        work.say(f"Writing {split} samples")
    writer.add(f"position/{split}", np.arange(len(arrays["next_sentence_label"]), dtype=np.int32))


def _blocks(items: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while block := list(islice(items, size)):
        yield block
