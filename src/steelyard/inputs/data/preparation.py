"""A request -> prepared arrays: find the data, name content and options, write once under that name."""

from __future__ import annotations

import math
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard.files.paths import cache_folder
from steelyard.inputs.data.catalogue import find
from steelyard.inputs.data.cifar import read_cifar
from steelyard.inputs.data.clips import write_clips
from steelyard.inputs.data.digits import read_digits
from steelyard.inputs.data.division import choose
from steelyard.inputs.data.embedding import build_embedding, vectors_name
from steelyard.inputs.data.fetch import expected, fetch
from steelyard.inputs.data.folders import read_folders
from steelyard.inputs.data.framing import Framing
from steelyard.inputs.data.images import lookup_table, write_images
from steelyard.inputs.data.language import write_language
from steelyard.inputs.data.ranks import WORD_INDEX, read_ranks
from steelyard.inputs.data.request import (
    ClipOptions,
    DataRequest,
    ImageOptions,
    LanguageOptions,
    Options,
    PairOptions,
    Prepared,
    Progress,
    SpeechOptions,
    TextOptions,
    as_json,
    parse_options,
    silent,
)
from steelyard.inputs.data.reviews import read_review_table, read_reviews
from steelyard.inputs.data.source import Source, digest_file, find_in_folder
from steelyard.inputs.data.speech import narrowed, write_speech
from steelyard.inputs.data.text import count_tokens, rank_words, write_tokens
from steelyard.inputs.data.translation import write_pairs
from steelyard.inputs.data.wordpieces import VOCABULARY
from steelyard_worker.tensors import Writer, read_meta

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from steelyard.inputs.data.request import Report
    from steelyard.inputs.data.tables import FileSplit, ImageSplit, Ints, Table, TextSplit

    Pictures = Table[ImageSplit] | Table[FileSplit]

METHOD = 1  # changes whenever a prepared value would

IMAGE_READERS: dict[str, Callable[[Source, Path, Report], Pictures]] = {
    "cifar": read_cifar,
    "digits": read_digits,
    "folders": read_folders,
}
TEXT_READERS: dict[str, Callable[[Source, Path, Report], Table[TextSplit]]] = {
    "ranks": read_ranks,
    "reviews": read_reviews,
    "review_table": read_review_table,
}


def prepare(request: DataRequest, report: Report = silent) -> Prepared:
    """Return the prepared arrays; found again by content, options and method, otherwise written now."""
    known = find(request.name)
    options = parse_options(known, request.options)
    if isinstance(options, SpeechOptions):
        known = narrowed(known, options)
    if request.folder is None:
        for source in expected(known):
            if atomic.is_whole(place := _place(source, options)):
                return Prepared(place, read_meta(place))
        source = fetch(known, report)
    else:
        source = find_in_folder(known, request.folder, _vectors(options))
    report(Progress(f"Using {source.data.name}, {source.layout.name}, from {source.path} ({source.origin})"))
    place = atomic.place(_place(source, options), lambda partial: _write(partial, source, options, report))
    return Prepared(place, read_meta(place))


def _vectors(options: Options) -> str:
    """Name the file that may lie beside the data and takes part in it."""
    if isinstance(options, LanguageOptions):
        return VOCABULARY
    return vectors_name(options) if isinstance(options, TextOptions) and options.embedding else ""


def _place(source: Source, options: Options) -> Path:
    beside = (source.vectors, source.path.parent / WORD_INDEX) if source.vectors else ()
    extras = [digest_file(each, "sha256") for each in beside if each.is_file()]
    name = atomic.key("data", METHOD, source.layout.name, source.identity, extras, as_json(options))
    return cache_folder() / "data" / "prepared" / f"{source.data.name}-{name}"


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
    known = source.data
    channels, *extent = known.shape
    framing = Framing(channels, tuple(extent), options)
    table = IMAGE_READERS[known.reader](source, scratch, report)
    train, test = choose(table, options)
    _check_space(folder, known.name, (len(train) + len(test)) * math.prod(framing.shape))
    meta = _describe(source, table, options, (train, test))
    meta["lookup"] = {"scale": 1 / 255, "mean": list(options.mean), "std": list(options.std)}
    writer = Writer(folder, meta)
    try:
        write_images(writer, "train", table.train, train, framing, report)
        write_images(writer, "test", table.test or table.train, test, framing, report)
        _close(writer, train, test, lookup=lookup_table(options, channels))
    finally:
        writer.abandon()  # of no effect once it is closed


def _check_space(folder: Path, name: str, needed_bytes: int) -> None:
    """Refuse at once what would fill the disk hours later."""
    free_bytes = shutil.disk_usage(folder).free
    if needed_bytes > free_bytes:
        needed, free = (f"{each / 1e9:,.1f} GB" for each in (needed_bytes, free_bytes))
        raise UserError(
            f"'{name}' takes {needed} when it is prepared, and {folder.parent} has {free} free; "
            "set STEELYARD_CACHE to a folder on a larger disk."
        )


def _write_text(folder: Path, scratch: Path, source: Source, options: TextOptions, report: Report) -> None:
    table = TEXT_READERS[source.data.reader](source, scratch, report)
    train, test = choose(table, options)
    test_split = table.test or table.train
    ranks = None if table.ranked else rank_words(table.words, table.train, train)
    meta = _describe(source, table, options, (train, test))
    meta["train_tokens"] = count_tokens(table.train, train, options)
    meta["test_tokens"] = count_tokens(test_split, test, options)
    extra: dict[str, Any] = {}
    if options.embedding:
        word_ranks = np.arange(len(table.words), dtype=np.int32) if ranks is None else ranks
        extra["embedding"], said = build_embedding(source, table.words, word_ranks, options, report)
        meta |= said
    writer = Writer(folder, meta)
    write_tokens(writer, "train", table.train, train, ranks, options, report)
    write_tokens(writer, "test", test_split, test, ranks, options, report)
    _close(writer, train, test, **extra)


def _describe(source: Source, table: Table[Any], options: Options, positions: tuple[Ints, Ints]) -> dict[str, Any]:
    known = source.data
    held = len(table.train.labels) + (len(table.test.labels) if table.test else 0)
    return _describe_source(source, options) | {
        "verified": table.verified,
        "subset": held < known.train + known.test,
        "train_count": len(positions[0]),
        "test_count": len(positions[1]),
    }


def _describe_source(source: Source, options: Options) -> dict[str, Any]:
    known = source.data
    return {
        "data": known.name,
        "title": known.title,
        "terms": known.terms,
        "layout": source.layout.name,
        "origin": source.origin,
        "content": source.identity,
        "verified": source.verified,
        "classes": known.classes,
        "options": as_json(options),
        "method": METHOD,
    }


def _close(writer: Writer, train: Ints, test: Ints, **tensors: Any) -> None:
    for name, array in tensors.items():
        writer.add(name, array)
    writer.add("position/train", train.astype(np.int32))
    writer.add("position/test", test.astype(np.int32))
    writer.close()
