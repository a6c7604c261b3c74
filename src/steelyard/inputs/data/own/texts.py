"""Running text of the user's own -> samples for the prediction of the next token.

The tokens of a split are those of its files, one after the other. Sample i has the tokens i * length to (i + 1) * length - 1, and
as targets the tokens one place later. The rest at the end of a split is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tokenizers import Tokenizer

from steelyard.errors import UserError
from steelyard.inputs.data.archives import list_files
from steelyard.inputs.data.damage import check_regular, refusing
from steelyard.inputs.data.inventory import accepted, attempted
from steelyard.inputs.data.options import BYTES, CHARACTERS, RunningTextOptions
from steelyard.inputs.data.own.split_folders import by_split, has_splits
from steelyard.inputs.data.raw_samples import Ids, Spool
from steelyard.inputs.data.text_files import read_text
from steelyard.inputs.data.work import Known, Work

if TYPE_CHECKING:
    from steelyard_worker.tensors import Writer

TEST_SHARE = 10  # without a test split, the last of so many parts of each file is for testing
MOST_BYTES = 1 << 30  # of one file, which is read into memory
UNKNOWN = 0
RARE = "characters outside of the vocabulary, which become id 0"
PIECE = 1 << 20  # characters at least, and the rest of their line, are cut into tokens at a time

Encode = Callable[[str], Ids]
Texts = dict[str, list[tuple[Path, slice]]]


def write_texts(work: Work[RunningTextOptions]) -> None:
    """Write `train/` and `test/` tokens and targets int32 (N, length) under the names that the options give, and `position/` (N).

    Where characters are the tokens, the metadata have them in the order of their ids, from 1 (`characters`). UserError: a file is
    not UTF-8, a split is too short for one sample, or the tokenizer has more tokens than the vocabulary allows.
    """
    options, texts = work.options, _texts(work)
    encode, facts = _encoder(work, texts["train"])
    limits = {"train": options.train_limit, "test": options.test_limit}
    spooled = {name: _tokens(work, name, parts, encode) for name, parts in texts.items()}
    counts = {name: _count(work, name, len(ids), limits[name]) for name, ids in spooled.items()}
    with work.writer({**facts, **{f"{name}_count": count for name, count in counts.items()}}) as writer:
        for name, ids in spooled.items():
            _write(writer, work, name, ids, counts[name])
            writer.add(f"position/{name}", np.arange(counts[name], dtype=np.int32))


def open_texts(work: Work[RunningTextOptions]) -> Known:
    """Read some of the texts, and the tokenizer. Return the samples of each split, if all texts are read and no file cuts them.

    UserError: a file is not UTF-8, the tokenizer cannot be used, or a split is too short.
    """
    options, texts = work.options, _texts(work)
    if options.tokenizer != CHARACTERS:
        _encoder(work, [])
    limits, counts = {"train": options.train_limit, "test": options.test_limit}, []
    for name, parts in texts.items():
        opened = work.sample(parts)
        tokens = sum(len(text.encode() if options.tokenizer == BYTES else text) for text in _parts(list(opened)))
        if len(opened) == len(parts) and not options.tokenizer_file:
            counts.append(_count(work, name, tokens, limits[name]))
    return Known(*counts) if len(counts) == len(texts) else Known()


def _texts(work: Work[RunningTextOptions]) -> Texts:
    """Return the files of both splits, and the part of each file, in tenths, that belongs to the split."""
    path = work.source.path
    names = list_files(path, work.source.layout.files) if path.is_dir() else [""]
    if has_splits(work.source.layout):
        found = by_split(path, names, ".txt")
        return {split: [(file, slice(0, TEST_SHARE)) for file in files] for split, files in found.items()}
    files = [path / name if name else path for name in names]
    parts = {"train": slice(0, TEST_SHARE - 1), "test": slice(TEST_SHARE - 1, TEST_SHARE)}
    return {split: [(file, part) for file in files] for split, part in parts.items()}


def _read(path: Path) -> str:
    check_regular(path, MOST_BYTES)
    return read_text(path)


def _parts(parts: list[tuple[Path, slice]]) -> Iterator[str]:
    """Yield the texts of a split. UserError names all files that are not UTF-8."""
    texts = accepted(map(attempted(_read), (path for path, _ in parts)))
    for text, (_, part) in zip(texts, parts, strict=True):
        yield text[len(text) * part.start // TEST_SHARE : len(text) * part.stop // TEST_SHARE]


def _encoder(work: Work[RunningTextOptions], train: list[tuple[Path, slice]]) -> tuple[Encode, dict[str, Any]]:
    """Return the function that cuts a text into ids, and the facts about it for the metadata."""
    options = work.options
    if options.tokenizer == BYTES:
        return _bytes, {"token": "a byte of UTF-8"}
    if options.tokenizer_file:
        return _with_tokenizer(work), {"token": f"cut by {options.tokenizer_file}"}
    counts = Counter[str]()
    for text in _parts(train):
        counts.update(text)
    ranked = sorted(counts, key=lambda character: (-counts[character], character))
    kept = "".join(ranked[: options.vocabulary - 1])
    codes = np.zeros(0x110000, np.int32)
    codes[[ord(character) for character in kept]] = np.arange(1, len(kept) + 1, dtype=np.int32)
    facts = {"token": "a character", "characters": kept, "held_characters": len(ranked)}

    def encode(text: str) -> Ids:
        ids: Ids = codes[np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)]
        if rare := int((ids == UNKNOWN).sum()):
            work.inventory.change(RARE, count=rare)
        return ids

    return encode, facts


def _bytes(text: str) -> Ids:
    return np.frombuffer(text.encode(), np.uint8).astype(np.int32)


def _with_tokenizer(work: Work[RunningTextOptions]) -> Encode:
    """Return a function that cuts a text with the user's tokenizer. UserError: there is none, or it cannot be read."""
    name, path = work.options.tokenizer_file, work.source.companion
    if path is None:
        raise UserError(f"{work.source.path} has no '{name}' beside it, which `tokenizer` names; put it there.")
    check_regular(path, MOST_BYTES)
    with refusing(f"{path} is no tokenizer of the library `tokenizers`", Exception):
        tokenizer = Tokenizer.from_file(str(path))
    size = tokenizer.get_vocab_size()
    if size > work.options.vocabulary:
        raise UserError(
            f"{path} has {size:,} tokens, but the vocabulary of the preset is {work.options.vocabulary:,}; use "
            f"--set vocabulary={size}, or write it into the [data] table and the sizes."
        )

    def encode(text: str) -> Ids:
        return np.array(tokenizer.encode(text, add_special_tokens=False).ids, np.int32)

    return encode


def _tokens(work: Work[Any], name: str, parts: list[tuple[Path, slice]], encode: Encode) -> Ids:
    """Return the ids int32 of all texts of a split, one after the other, from a file on disk."""
    with Spool(work.scratch / f"{name}.i32", np.int32) as spool:
        for text in _parts(parts):
            for piece in _pieces(text):
                spool.append(encode(piece))
            work.say(f"Cutting the {name} text into tokens, {spool.count:,} so far")
        return spool.finish()


def _pieces(text: str) -> Iterator[str]:
    """Yield a text in pieces that end with a line, where there are lines, so that no word is cut."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + PIECE) + 1 or len(text)
        yield text[start:end]
        start = end


def _count(work: Work[RunningTextOptions], name: str, tokens: int, limit: int) -> int:
    """Return the number of whole samples of a split. UserError: there is none."""
    length = work.options.length
    whole = (tokens - 1) // length
    if whole < 1:
        raise UserError(
            f"{_place(work, name)}: the {name} text has {tokens:,} tokens, and one sample needs {length + 1:,}; add text, or "
            "lower 'length'."
        )
    return min(whole, limit) if limit else whole


def _place(work: Work[Any], split: str) -> Path:
    return work.source.path / split if has_splits(work.source.layout) else work.source.path


def _write(writer: Writer, work: Work[RunningTextOptions], name: str, ids: Ids, count: int) -> None:
    length = work.options.length
    for shift, array in enumerate((work.options.tokens, work.options.targets)):
        writer.begin(f"{name}/{array}", "<i4", (count, length))
        writer.extend(ids[shift : shift + count * length])
        work.say(f"Writing {name} samples", count, count)
