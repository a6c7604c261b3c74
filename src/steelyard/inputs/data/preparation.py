"""Prepare a data set: find it, derive a cache key from its content and the options, and write the arrays once."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard.files.paths import cache_folder
from steelyard.inputs.data.catalogue import DataSet, find
from steelyard.inputs.data.clips import open_clips, write_clips
from steelyard.inputs.data.damage import MissingData
from steelyard.inputs.data.embedding import vectors_name
from steelyard.inputs.data.fetch import check_available, fetch, possible_sources
from steelyard.inputs.data.image_folders import count_unused_images
from steelyard.inputs.data.images import open_images, write_images
from steelyard.inputs.data.inventory import Inventory, joined, sentences
from steelyard.inputs.data.language import open_language, write_language
from steelyard.inputs.data.layouts import UNKNOWN
from steelyard.inputs.data.options import (
    LanguageOptions,
    Options,
    RunningTextOptions,
    SpeechOptions,
    TextOptions,
    parse_options,
)
from steelyard.inputs.data.own.arrays import open_arrays, write_arrays
from steelyard.inputs.data.own.code import open_nothing, source_of, write_made
from steelyard.inputs.data.own.texts import open_texts, write_texts
from steelyard.inputs.data.ranks import WORD_INDEX
from steelyard.inputs.data.request import DataRequest, Prepared, Progress, Report, silent
from steelyard.inputs.data.sample_arrays import arrays_of
from steelyard.inputs.data.source import Source, digest_file, find_companion, find_in_folder, locate
from steelyard.inputs.data.speech import open_speech, write_speech
from steelyard.inputs.data.text import open_text, write_text
from steelyard.inputs.data.translation import open_pairs, write_pairs
from steelyard.inputs.data.unused import count_alternatives, count_unused
from steelyard.inputs.data.wordpieces import VOCABULARY
from steelyard.inputs.data.work import METHOD, Known, Work, reading_of
from steelyard_worker import tensors
from steelyard_worker.network import Input
from steelyard_worker.tensors import read_meta


class Form(NamedTuple):
    """How a form of data set is written, and how some of its files are opened to check them before."""

    write: Callable[[Work[Any]], None]
    open: Callable[[Work[Any]], Known]


FORMS = {
    "image": Form(write_images, open_images),
    "text": Form(write_text, open_text),
    "speech": Form(write_speech, open_speech),
    "clips": Form(write_clips, open_clips),
    "pairs": Form(write_pairs, open_pairs),
    "language": Form(write_language, open_language),
    "arrays": Form(write_arrays, open_arrays),
    "running": Form(write_texts, open_texts),
    "code": Form(write_made, open_nothing),
}
CODE = "code"
# Forms of which the network's inputs decide what is prepared.
BY_INPUTS = ("arrays", CODE)


def check(request: DataRequest) -> None:
    """Check the options, and that the data is in the folder of the request or can be fetched. UserError: it is not."""
    data_set, _ = _resolved(request)
    if data_set.form == CODE:
        source_of(data_set, request)
    elif request.folder is None:
        check_available(data_set)
    else:
        locate(data_set, request.folder)


def samples(request: DataRequest) -> tuple[Input, ...]:
    """Return the arrays that each sample of a data set has, by its options; empty if only the data itself shows them."""
    return arrays_of(*_resolved(request))


def inspect(request: DataRequest, most: int) -> tuple[list[str], Known]:
    """Describe what is left out or changed of the data in a folder, after opening at most `most` files of each split.

    Nothing is opened of data that is prepared already. UserError names the files that cannot be used.
    """
    data_set, options = _resolved(request)
    if request.folder is None or data_set.form == CODE:
        return [], Known()
    layout, path = locate(data_set, request.folder)
    place = [request.folder, path.parent, path]
    source = Source(data_set, layout, path, "folder", "", UNKNOWN, find_companion(_companion_name(options), *place))
    listed = _unused(source, request.folder)
    if data_set.fingerprint == "listing" or layout.digest:  # which is known soon
        source = find_in_folder(data_set, request.folder, _companion_name(options))
        if source.verified != UNKNOWN:
            return sentences(listed), Known(data_set.train, data_set.test, data_set.classes)
        if atomic.is_whole(folder := _prepared_folder(source, options, request)):
            return sentences(joined(read_meta(folder), listed)), _known(folder)
    with TemporaryDirectory(prefix="steelyard-") as scratch:
        work = Work(source, options, Path(scratch), Path(scratch), silent, most=most, inputs=request.inputs)
        with _completed(source):
            known = FORMS[data_set.form].open(work)
    sampled = [
        f"{sentence} Of each split, at most {most:,} files were opened for this."
        for sentence in sentences(work.inventory.facts)
    ]
    return [*sentences(listed), *sampled], known


def _known(prepared: Path) -> Known:
    """Return what the prepared arrays show."""
    meta, labels = read_meta(prepared), tensors.read(prepared).get("train/label")
    classes = 0 if labels is None or not len(labels) else 1 + int(labels.max())
    return Known(meta["train_count"], meta["test_count"], classes)


def prepare(request: DataRequest, report: Report = silent) -> Prepared:
    """Return the prepared arrays. They are cached by content, options and method, and written if they are missing.

    Files that are not read are counted anew in every call, as they are no part of the content.
    """
    data_set, options = _resolved(request)
    listed: dict[str, Any] = {}
    if data_set.form == CODE:
        source = source_of(data_set, request)
    elif request.folder is None:
        for source in possible_sources(data_set):
            if atomic.is_intact(folder := _prepared_folder(source, options, request)):
                return Prepared(folder, read_meta(folder))
        source = fetch(data_set, report)
    else:
        source = find_in_folder(data_set, request.folder, _companion_name(options))
        listed = _unused(source, request.folder)
    report(Progress(f"Using {source.data.name}, {source.layout.name}, from {source.path} ({source.origin})"))
    folder = _prepared_folder(source, options, request)
    atomic.place(folder, lambda partial: _write(partial, source, options, request, report))
    meta = read_meta(folder)
    meta |= joined(meta, listed)
    for sentence in sentences(meta):
        report(Progress(sentence))
    return Prepared(folder, meta)


def _unused(source: Source, requested: Path) -> dict[str, Any]:
    """Count by reason what lies in the folder of a data set, and is not read. UserError: a class folder has no images."""
    inventory = Inventory()
    if source.path.is_dir() and source.data.reader == "folders":
        count_unused_images(source, inventory)
    elif source.path.is_dir():
        count_unused(source, inventory)
    else:
        count_alternatives(source, requested, inventory)
    return inventory.facts


def _resolved(request: DataRequest) -> tuple[DataSet, Options]:
    data_set = find(request.name)
    options = parse_options(data_set, request.options)
    if isinstance(options, SpeechOptions | LanguageOptions):  # other splits of the data do not matter
        data_set = data_set.with_splits(options.train_split, options.test_split)
    return data_set, options


def _companion_name(options: Options) -> str:
    """Return the name of the optional file next to the data that changes what is prepared."""
    if isinstance(options, LanguageOptions):
        return VOCABULARY
    if isinstance(options, RunningTextOptions):
        return options.tokenizer_file
    return vectors_name(options) if isinstance(options, TextOptions) and options.embedding else ""


def _prepared_folder(source: Source, options: Options, request: DataRequest) -> Path:
    companions = (source.companion, source.path.parent / WORD_INDEX) if source.companion else ()
    digests = [digest_file(path, "sha256") for path in companions if path.is_file()]
    inputs = [asdict(each) for each in request.inputs] if source.data.form in BY_INPUTS else []
    parts = [source.layout.name, source.identity, digests, options.key, *reading_of(source), *inputs]
    key = atomic.key("data", METHOD, *parts)
    return cache_folder() / "data" / "prepared" / f"{source.data.name}-{key}"


def _write(folder: Path, source: Source, options: Options, request: DataRequest, report: Report) -> None:
    scratch = folder / "scratch"
    scratch.mkdir()
    with _completed(source):
        work = Work(source, options, folder, scratch, report, inputs=request.inputs, code=request.code)
        FORMS[source.data.form].write(work)
    shutil.rmtree(scratch)


@contextmanager
def _completed(source: Source) -> Iterator[None]:
    """Complete messages about missing files by how to see which files are read."""
    try:
        yield
    except MissingData as error:
        raise UserError(f"{error} {source.data.hint}") from None
