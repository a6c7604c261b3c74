"""Parallel text, one sentence per line in one file per language -> ids of word pieces in rows of fixed length.

Both languages share one byte-pair encoding (Sennrich et al. 2016), learned on the whole training split. A space is marked as
part of the word after it. Ids: 0 padding, 1 unknown, 2 begin, 3 end of a sentence. Lengths include begin and end.
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from steelyard.errors import UserError
from steelyard.inputs.data.options import PairOptions
from steelyard.inputs.data.raw_samples import Spool
from steelyard.inputs.data.source import Source
from steelyard.inputs.data.text_files import raw_lines
from steelyard.inputs.data.work import Known, Work
from steelyard_worker.protocol import ENCODING
from steelyard_worker.tensors import Writer

Ints = np.ndarray[Any, np.dtype[np.signedinteger[Any]]]

PAD, UNKNOWN, BEGIN, END = range(4)
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")
ALPHABET = 1000  # characters; rarer ones become unknown, because text from the web has thousands of them
MIN_OCCURRENCES = 2  # of a pair of pieces, to be merged
CHUNK_PAIRS = 4096
OPENED_LINES = 100  # are opened per file that would be opened of other data
ONE_SIDED = "of which a side is empty"


@dataclass(frozen=True)
class ParallelFiles:
    """The English and the German file of one split."""

    paths: tuple[Path, Path]
    in_pieces: bool  # the text was cut by another encoding, with "@@ " between pieces; the pieces are joined again

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield pairs of lines; UserError names the file and line that is not UTF-8, or where one file ends early."""
        left, right = map(raw_lines, self.paths)
        for number, lines in enumerate(zip_longest(left, right), 1):
            self._check_both(lines, number)
            one, other = (self._text(line, path, number) for line, path in zip(lines, self.paths, strict=True))
            yield one, other

    def _check_both(self, lines: tuple[bytes | None, bytes | None], number: int) -> None:
        if None in lines:
            short = lines.index(None)
            raise UserError(
                f"{self.paths[short]} ends after line {number - 1:,}, but {self.paths[1 - short].name} has more lines; both "
                "files must have the same number of lines."
            )

    def _text(self, line: bytes, path: Path, number: int) -> str:
        try:
            text = line.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            raise UserError(
                f"{path}, line {number:,}, is not UTF-8 text (byte {error.start} of the line); convert it to UTF-8."
            ) from error
        return text.replace("@@ ", "") if self.in_pieces else text


def write_pairs(work: Work[PairOptions]) -> None:
    """Write `train/` and `test/` source (N, S), source_length (N,), target (N, T), and `position/` (N,), all int32.

    The position is the line of the pair, from 0. Pairs with an empty side, or longer than `source` and `target`, are left
    out and counted by reason. The encoding is written next to the arrays. UserError: a file is missing or damaged, or the
    vocabulary is too small.
    """
    source, options = work.source, work.options
    train, test = (_files(source, split) for split in ("training", "test"))
    work.say(f"Learning {options.vocabulary:,} word pieces from {train.paths[0].name} and {train.paths[1].name}")
    tokenizer = learn_pieces(train, options.vocabulary, source.layout.name.startswith("sentences"))
    tokenizer.save(str(work.folder / ENCODING))
    encoded = {
        "train": _encode(work, "train", train, tokenizer, options.train_limit),
        "test": _encode(work, "test", test, tokenizer, options.test_limit),
    }
    facts: dict[str, Any] = {"pieces": tokenizer.get_vocab_size()}
    for name, split in encoded.items():
        count = len(split.lengths)
        facts |= {f"{name}_count": count, f"{name}_held": split.held, f"{name}_dropped": split.held - count}
        facts[f"{name}_words"] = split.words
    with work.writer(facts) as writer:
        for name, split in encoded.items():
            _write_split(writer, work, name, split)


def open_pairs(work: Work[PairOptions]) -> Known:
    """Read the first lines of both splits. UserError as in `write_pairs`, of what was read."""
    for name, split in (("train", "training"), ("test", "test")):
        for number, pair in enumerate(islice(_files(work.source, split).pairs(), work.most * OPENED_LINES), 1):
            if not all(pair):
                work.inventory.leave_out(f"{name} pairs {ONE_SIDED}", f"line {number:,}")
    return Known()


def learn_pieces(files: ParallelFiles, vocabulary: int, raw: bool) -> Tokenizer:
    """Learn the encoding. `raw` text, which is not tokenised yet, is split at punctuation as well as at spaces."""
    tokenizer = Tokenizer(models.BPE(unk_token=SPECIAL[UNKNOWN]))
    spaces = pre_tokenizers.Metaspace()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([spaces, pre_tokenizers.Punctuation()] if raw else [spaces])
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        min_frequency=MIN_OCCURRENCES,
        limit_alphabet=ALPHABET,
        special_tokens=list(SPECIAL),
        show_progress=False,
    )
    tokenizer.train_from_iterator((text for pair in files.pairs() for text in pair), trainer)
    if tokenizer.get_vocab_size() > vocabulary:
        raise UserError(
            f"{files.paths[0].parent} uses {tokenizer.get_vocab_size() - len(SPECIAL):,} different characters, which do not fit "
            f"a vocabulary of {vocabulary:,} with {len(SPECIAL)} special tokens; make the vocabulary larger."
        )
    return tokenizer


def _files(source: Source, split: str) -> ParallelFiles:
    """Return the two files of a split, which the layout lists in the order English, German."""
    english, german = (source.path / part.path for part in source.layout.parts if part.split == split)
    return ParallelFiles((english, german), source.layout.name == "word pieces")


class _Encoded(NamedTuple):
    """The pairs of one split that fit: rows of ids, lengths of the sources, positions; numbers of pairs held and of words."""

    rows: dict[str, Ints]
    lengths: Ints
    positions: Ints
    held: int
    words: int  # target tokens to predict


def _encode(work: Work[PairOptions], name: str, files: ParallelFiles, tokenizer: Tokenizer, limit: int) -> _Encoded:
    """Encode a split in chunks on all processors, up to `limit` pairs that fit (0: all).

    Rows are spooled, because their number is known only at the end.
    """
    widths = {"source": work.options.source, "target": work.options.target}
    dtype = np.uint16 if work.options.vocabulary <= 1 << 16 else np.int32
    lengths, positions = array("i"), array("i")
    held = words = 0
    most = f"longer than {widths['source']} and {widths['target']} word pieces"
    lines = files.pairs()
    with (
        Spool(work.scratch / f"{name}.source", dtype) as sources,
        Spool(work.scratch / f"{name}.target", dtype) as targets,
    ):
        while (chunk := list(islice(lines, CHUNK_PAIRS))) and not (limit and len(lengths) >= limit):
            sides = (tokenizer.encode_batch_fast(list(side)) for side in zip(*chunk, strict=True))
            for source, target in zip(*sides, strict=True):
                if limit and len(lengths) >= limit:
                    break
                if 0 < len(source.ids) <= widths["source"] - 2 and 0 < len(target.ids) <= widths["target"] - 2:
                    sources.append(_padded(source.ids, widths["source"]))
                    targets.append(_padded(target.ids, widths["target"]))
                    lengths.append(len(source.ids) + 2)
                    positions.append(held)
                    words += len(target.ids) + 1
                else:
                    why = most if source.ids and target.ids else ONE_SIDED
                    work.inventory.leave_out(f"{name} pairs {why}", f"line {held + 1:,}")
                if UNKNOWN in source.ids or UNKNOWN in target.ids:
                    work.inventory.change(f"{name} pairs with characters that have no word piece", f"line {held + 1:,}")
                held += 1
            work.say(f"Cutting {name} sentences into pieces: {held:,} pairs")
        if not lengths:
            raise UserError(
                f"{files.paths[0]} and {files.paths[1].name} hold no pair of at most {widths['source']} and {widths['target']} "
                "word pieces; raise 'source' and 'target'."
            )
        rows = {"source": sources.finish(), "target": targets.finish()}
    rows = {side: ids.reshape(-1, widths[side]) for side, ids in rows.items()}
    return _Encoded(rows, np.asarray(lengths, np.int32), np.asarray(positions, np.int32), held, words)


def _padded(ids: list[int], width: int) -> Ints:
    return np.array([BEGIN, *ids, END, *[PAD] * (width - len(ids) - 2)])


def _write_split(writer: Writer, work: Work[PairOptions], name: str, split: _Encoded) -> None:
    for side, rows in split.rows.items():
        writer.begin(f"{name}/{side}", "<i4", rows.shape)
        for start in range(0, len(rows), CHUNK_PAIRS):
            writer.extend(rows[start : start + CHUNK_PAIRS].astype("<i4"))
        work.say(f"Writing {name} sentences", len(rows), len(rows))
    writer.add(f"{name}/source_length", split.lengths)
    writer.add(f"position/{name}", split.positions)
