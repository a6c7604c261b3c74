"""Prepare a data set: find it, derive a cache key from its content and the options, and write the arrays once."""

import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from steelyard.errors import UserError
from steelyard.files import atomic
from steelyard.files.paths import cache_folder
from steelyard.inputs.data.catalogue import DataSet, find
from steelyard.inputs.data.clips import write_clips
from steelyard.inputs.data.damage import MissingData
from steelyard.inputs.data.embedding import vectors_name
from steelyard.inputs.data.fetch import check_available, fetch, possible_sources
from steelyard.inputs.data.images import write_images
from steelyard.inputs.data.language import write_language
from steelyard.inputs.data.options import LanguageOptions, Options, SpeechOptions, TextOptions, parse_options
from steelyard.inputs.data.ranks import WORD_INDEX
from steelyard.inputs.data.request import DataRequest, Prepared, Progress, Report, silent
from steelyard.inputs.data.source import Source, digest_file, find_in_folder, locate
from steelyard.inputs.data.speech import write_speech
from steelyard.inputs.data.text import write_text
from steelyard.inputs.data.translation import write_pairs
from steelyard.inputs.data.wordpieces import VOCABULARY
from steelyard.inputs.data.work import METHOD, Work
from steelyard_worker.tensors import read_meta

WRITERS: dict[str, Callable[[Work[Any]], None]] = {
    "image": write_images,
    "text": write_text,
    "speech": write_speech,
    "clips": write_clips,
    "pairs": write_pairs,
    "language": write_language,
}


def check(request: DataRequest) -> None:
    """Check the options, and that the data is in the folder of the request or can be fetched. UserError: it is not."""
    data_set, _ = _resolved(request)
    if request.folder is None:
        check_available(data_set)
    else:
        locate(data_set, request.folder)


def prepare(request: DataRequest, report: Report = silent) -> Prepared:
    """Return the prepared arrays. They are cached by content, options and method, and written if they are missing."""
    data_set, options = _resolved(request)
    if request.folder is None:
        for source in possible_sources(data_set):
            if atomic.is_intact(folder := _prepared_folder(source, options)):
                return Prepared(folder, read_meta(folder))
        source = fetch(data_set, report)
    else:
        source = find_in_folder(data_set, request.folder, _companion_name(options))
    report(Progress(f"Using {source.data.name}, {source.layout.name}, from {source.path} ({source.origin})"))
    folder = _prepared_folder(source, options)
    atomic.place(folder, lambda partial: _write(partial, source, options, report))
    return Prepared(folder, read_meta(folder))


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
    return vectors_name(options) if isinstance(options, TextOptions) and options.embedding else ""


def _prepared_folder(source: Source, options: Options) -> Path:
    companions = (source.companion, source.path.parent / WORD_INDEX) if source.companion else ()
    digests = [digest_file(path, "sha256") for path in companions if path.is_file()]
    key = atomic.key("data", METHOD, source.layout.name, source.identity, digests, asdict(options))
    return cache_folder() / "data" / "prepared" / f"{source.data.name}-{key}"


def _write(folder: Path, source: Source, options: Options, report: Report) -> None:
    scratch = folder / "scratch"
    scratch.mkdir()
    try:
        WRITERS[source.data.form](Work(source, options, folder, scratch, report))
    except MissingData as error:
        raise UserError(f"{error} {source.data.hint}") from None
    shutil.rmtree(scratch)
