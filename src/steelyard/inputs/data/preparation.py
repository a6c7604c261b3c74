"""Prepare a data set: find it, derive a cache key from its content and the options, and write the arrays once."""

from __future__ import annotations

import math
import shutil
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard.files.paths import cache_folder
from steelyard.inputs.data.catalogue import find
from steelyard.inputs.data.cifar import read_cifar
from steelyard.inputs.data.clips import write_clips
from steelyard.inputs.data.digits import read_digits
from steelyard.inputs.data.embedding import build_embedding, vectors_name
from steelyard.inputs.data.fetch import fetch, possible_sources
from steelyard.inputs.data.image_folders import read_image_folders
from steelyard.inputs.data.images import lookup_table, write_images
from steelyard.inputs.data.language import write_language
from steelyard.inputs.data.options import (
    ClipOptions,
    ImageOptions,
    LanguageOptions,
    Options,
    PairOptions,
    SpeechOptions,
    TextOptions,
    parse_options,
)
from steelyard.inputs.data.ranks import WORD_INDEX, read_ranks
from steelyard.inputs.data.request import DataRequest, Prepared, Progress, silent
from steelyard.inputs.data.reviews import read_review_table, read_reviews
from steelyard.inputs.data.source import Source, digest_file, find_in_folder
from steelyard.inputs.data.speech import restrict_to_splits, write_speech
from steelyard.inputs.data.splits import split_positions
from steelyard.inputs.data.text import count_tokens, rank_words, write_tokens
from steelyard.inputs.data.transforms import ImageTransform
from steelyard.inputs.data.translation import write_pairs
from steelyard.inputs.data.wordpieces import VOCABULARY
from steelyard_worker.tensors import Writer, read_meta

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from steelyard.inputs.data.raw_samples import FileSplit, ImageSplit, Ints, RawSamples, TextSplit
    from steelyard.inputs.data.request import Report

    RawImages = RawSamples[ImageSplit] | RawSamples[FileSplit]

METHOD = 1  # part of the cache key; increase it when a change alters a prepared value

IMAGE_READERS: dict[str, Callable[[Source, Path, Report], RawImages]] = {
    "cifar": read_cifar,
    "digits": read_digits,
    "folders": read_image_folders,
}
TEXT_READERS: dict[str, Callable[[Source, Path, Report], RawSamples[TextSplit]]] = {
    "ranks": read_ranks,
    "reviews": read_reviews,
    "review_table": read_review_table,
}


def prepare(request: DataRequest, report: Report = silent) -> Prepared:
    """Return the prepared arrays. They are cached by content, options and method, and written if they are missing."""
    data_set = find(request.name)
    options = parse_options(data_set, request.options)
    if isinstance(options, SpeechOptions):
        data_set = restrict_to_splits(data_set, options)
    if request.folder is None:
        for source in possible_sources(data_set):
            if atomic.is_whole(folder := _prepared_folder(source, options)):
                return Prepared(folder, read_meta(folder))
        source = fetch(data_set, report)
    else:
        source = find_in_folder(data_set, request.folder, _companion_name(options))
    report(Progress(f"Using {source.data.name}, {source.layout.name}, from {source.path} ({source.origin})"))
    folder = _prepared_folder(source, options)
    atomic.place(folder, lambda partial: _write(partial, source, options, report))
    return Prepared(folder, read_meta(folder))


def _companion_name(options: Options) -> str:
    """Return the name of the optional file next to the data that changes what is prepared."""
    if isinstance(options, LanguageOptions):
        return VOCABULARY
    return vectors_name(options) if isinstance(options, TextOptions) and options.embedding else ""


def _prepared_folder(source: Source, options: Options) -> Path:
    companions = (source.companion, source.path.parent / WORD_INDEX) if source.companion else ()
    digests = [digest_file(path, "sha256") for path in companions if path.is_file()]
    key = atomic.key("data", METHOD, source.layout.name, source.identity, digests, asdict(options))
    return cache_folder() / "data" / "prepared" / f"{source.data.name}-{key}"


def _write(folder: Path, source: Source, options: Options, report: Report) -> None:
    scratch = folder / "scratch"
    scratch.mkdir()
    if isinstance(options, SpeechOptions):
        write_speech(folder, source, options, _describe_source(source, options), report)
    elif isinstance(options, ClipOptions):
        write_clips(folder, source, options, _describe_source(source, options), report)
    elif isinstance(options, LanguageOptions):
        write_language(folder, scratch, source, options, _describe_source(source, options), report)
    elif isinstance(options, PairOptions):
        write_pairs(folder, scratch, source, options, _describe_source(source, options), report)
    elif isinstance(options, ImageOptions):
        _write_images(folder, scratch, source, options, report)
    else:
        _write_text(folder, scratch, source, options, report)
    shutil.rmtree(scratch)


def _write_images(folder: Path, scratch: Path, source: Source, options: ImageOptions, report: Report) -> None:
    data_set = source.data
    channels, *size = data_set.shape
    transform = ImageTransform(channels, tuple(size), options)
    samples = IMAGE_READERS[data_set.reader](source, scratch, report)
    train, test = split_positions(samples, options)
    _check_space(folder, data_set.name, (len(train) + len(test)) * math.prod(transform.shape))
    meta = _describe(source, samples, options, (train, test))
    meta["lookup"] = {"scale": 1 / 255, "mean": list(options.mean), "std": list(options.std)}
    writer = Writer(folder, meta)
    try:
        write_images(writer, "train", samples.train, train, transform, report)
        write_images(writer, "test", samples.test or samples.train, test, transform, report)
        _close(writer, train, test, lookup=lookup_table(options, channels))
    finally:
        writer.abandon()  # has no effect after `close`


def _check_space(folder: Path, name: str, needed_bytes: int) -> None:
    """Fail now if the arrays would fill the disk hours later."""
    free_bytes = shutil.disk_usage(folder).free
    if needed_bytes > free_bytes:
        needed, free = (f"{count / 1e9:,.1f} GB" for count in (needed_bytes, free_bytes))
        raise UserError(
            f"'{name}' needs {needed} when prepared, but {folder.parent} has only {free} free; "
            "set STEELYARD_CACHE to a folder on a larger disk."
        )


def _write_text(folder: Path, scratch: Path, source: Source, options: TextOptions, report: Report) -> None:
    samples = TEXT_READERS[source.data.reader](source, scratch, report)
    train, test = split_positions(samples, options)
    test_split = samples.test or samples.train
    ranks = None if samples.ranked else rank_words(samples.words, samples.train, train)
    meta = _describe(source, samples, options, (train, test))
    meta["train_tokens"] = count_tokens(samples.train, train, options)
    meta["test_tokens"] = count_tokens(test_split, test, options)
    extra: dict[str, Any] = {}
    if options.embedding:
        word_ranks = np.arange(len(samples.words), dtype=np.int32) if ranks is None else ranks
        extra["embedding"], description = build_embedding(source, samples.words, word_ranks, options, report)
        meta |= description
    writer = Writer(folder, meta)
    try:
        write_tokens(writer, "train", samples.train, train, ranks, options, report)
        write_tokens(writer, "test", test_split, test, ranks, options, report)
        _close(writer, train, test, **extra)
    finally:
        writer.abandon()  # has no effect after `close`


def _describe(
    source: Source, samples: RawSamples[Any], options: Options, positions: tuple[Ints, Ints]
) -> dict[str, Any]:  # fmt: skip
    data_set = source.data
    count = len(samples.train.labels) + (len(samples.test.labels) if samples.test else 0)
    return _describe_source(source, options) | {
        "verified": samples.verified,
        "subset": count < data_set.train + data_set.test,
        "train_count": len(positions[0]),
        "test_count": len(positions[1]),
    }


def _describe_source(source: Source, options: Options) -> dict[str, Any]:
    data_set = source.data
    return {
        "data": data_set.name,
        "title": data_set.title,
        "terms": data_set.terms,
        "layout": source.layout.name,
        "origin": source.origin,
        "content": source.identity,
        "verified": source.verified,
        "classes": data_set.classes,
        "options": asdict(options),
        "method": METHOD,
    }


def _close(writer: Writer, train: Ints, test: Ints, **tensors: Any) -> None:
    for name, array in tensors.items():
        writer.add(name, array)
    writer.add("position/train", train.astype(np.int32))
    writer.add("position/test", test.astype(np.int32))
    writer.close()
