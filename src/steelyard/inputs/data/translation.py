"""Parallel text, one sentence a line in one file per language -> word pieces as ids, rows of one size.

Pieces come from one byte-pair encoding of both languages (Sennrich et al. 2016), learned on the whole training split with a
blank marked as part of the word behind it. Ids: 0 pads, 1 unknown, 2 begins, 3 ends a sentence; both marks count as words.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.errors import UserError
from steelyard.inputs.data.request import Progress
from steelyard.inputs.data.tables import Spool
from steelyard_worker.protocol import ENCODING
from steelyard_worker.tensors import Writer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tokenizers import Tokenizer

    from steelyard.inputs.data.request import PairOptions, Report
    from steelyard.inputs.data.source import Source

PAD, UNKNOWN, BEGIN, END = range(4)
MARKS = ("<pad>", "<unk>", "<s>", "</s>")
LANGUAGES = ("en", "de")
# Layout -> beginnings of the names of training and test files, the first that is there.
STEMS = {
    "tokens": (("train.tok.clean",), ("newstest2014.tok",)),
    "word pieces": (("train.tok.clean.bpe.32000",), ("newstest2014.tok.bpe.32000",)),
    "sentences": (("train",), ("test", "newstest2014")),
}
ALPHABET = 1000  # characters; rarer ones, of which a corpus from the web has thousands, are unknown
RARE = 2  # a pair of pieces met less often is not joined
CHUNK_PAIRS = 4096


@dataclass(frozen=True)
class Split:
    """The two files of one split, in the order of `LANGUAGES`."""

    paths: tuple[Path, Path]
    in_pieces: bool  # cut into pieces by another encoding, "@@ " between them: they are joined again

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield pairs of lines; UserError names the file and line that is not UTF-8, or where one file ends early."""
        with self.paths[0].open("rb") as left, self.paths[1].open("rb") as right:
            for number, lines in enumerate(zip_longest(left, right), 1):
                self._check_both(lines, number)
                one, other = (self._text(line, path, number) for line, path in zip(lines, self.paths, strict=True))
                yield one, other

    def _check_both(self, lines: tuple[bytes | None, bytes | None], number: int) -> None:
        if None in lines:
            short = lines.index(None)
            raise UserError(
                f"{self.paths[short]} ends after line {number - 1:,}, but {self.paths[1 - short].name} goes on; line by line "
                "both must say the same."
            )

    def _text(self, line: bytes, path: Path, number: int) -> str:
        try:
            text = line.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            raise UserError(f"{path}, line {number:,}, is not UTF-8 text (byte {error.start} of the line).") from error
        return text.replace("@@ ", "") if self.in_pieces else text


def write_pairs(
    folder: Path, scratch: Path, source: Source, options: PairOptions, meta: dict[str, Any], report: Report
) -> None:  # fmt: skip
    """Write `train/` and `test/` source (N, S), source_length (N,), target (N, T), all int32; `position/`: the line of each.

    Pairs with an empty side, or longer than `source` and `target`, are left out and counted. The encoding is kept beside the
    arrays. UserError names a file that is missing or damaged, or says that the vocabulary is too small.
    """
    train, test = (_split(source, stems) for stems in STEMS[source.layout.name])
    tokenizer = learn_pieces(train, options.vocabulary, source.layout.name == "sentences", report)
    tokenizer.save(str(folder / ENCODING))
    with ExitStack() as spools:
        splits = {"train": (train, options.train_limit), "test": (test, options.test_limit)}
        rows = [
            _Rows(name, split, scratch, spools, options).read(tokenizer, limit, report)
            for name, (split, limit) in splits.items()
        ]
        meta |= {"pieces": tokenizer.get_vocab_size(), "subset": rows[0].held < source.data.train}
        for each in rows:
            meta |= each.said()
        writer = Writer(folder, meta)
        try:
            for each in rows:
                each.write(writer, report)
            writer.close()
        finally:
            writer.abandon()  # of no effect once it is closed


def learn_pieces(split: Split, vocabulary: int, raw: bool, report: Report) -> Tokenizer:
    """Learn the encoding; `raw` text, which no tokeniser has seen, is cut at punctuation as well as at blanks."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    report(Progress(f"Learning {vocabulary:,} word pieces from {split.paths[0].name} and {split.paths[1].name}"))
    found = Tokenizer(models.BPE(unk_token=MARKS[UNKNOWN]))
    blanks = pre_tokenizers.Metaspace()
    found.pre_tokenizer = pre_tokenizers.Sequence([blanks, pre_tokenizers.Punctuation()] if raw else [blanks])
    found.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        min_frequency=RARE,
        limit_alphabet=ALPHABET,
        special_tokens=list(MARKS),
        show_progress=False,
    )
    found.train_from_iterator((text for pair in split.pairs() for text in pair), trainer)
    if found.get_vocab_size() > vocabulary:
        raise UserError(
            f"{split.paths[0].parent} is written in {found.get_vocab_size() - len(MARKS):,} characters, so that a vocabulary of "
            f"{vocabulary:,} has no room for them and {len(MARKS)} marks; make it larger."
        )
    return found


def _split(source: Source, stems: tuple[str, ...]) -> Split:
    folder = source.path
    stem = next((each for each in stems if (folder / f"{each}.{LANGUAGES[0]}").is_file()), stems[0])
    paths = (folder / f"{stem}.{LANGUAGES[0]}", folder / f"{stem}.{LANGUAGES[1]}")
    for path in paths:
        if not path.is_file():
            raise UserError(
                f"{folder} does not hold '{path.name}', which belongs to the layout '{source.layout.name}'."
            )
    return Split(paths, source.layout.name == "word pieces")


class _Rows:
    """The pairs of one split that fit, spooled: how many they are is known at the end."""

    def __init__(self, name: str, split: Split, scratch: Path, spools: ExitStack, options: PairOptions) -> None:
        self._name, self._split = name, split
        self._width = {"source": options.source, "target": options.target}
        kinds = dict.fromkeys(self._width, np.uint16 if options.vocabulary <= 1 << 16 else np.int32)
        kinds |= dict.fromkeys(("lengths", "positions"), np.int32)
        self._spools = {
            what: spools.enter_context(Spool(scratch / f"{name}.{what}", kind)) for what, kind in kinds.items()
        }
        self.held = self.kept = self._words = 0

    def read(self, tokenizer: Tokenizer, limit: int, report: Report) -> _Rows:
        """Encode the split, chunk by chunk on every processor, up to `limit` pairs that fit (0: all)."""
        pairs = self._split.pairs()
        while (chunk := list(islice(pairs, CHUNK_PAIRS))) and not (limit and self.kept >= limit):
            sources, targets = (tokenizer.encode_batch_fast(list(side)) for side in zip(*chunk, strict=True))
            for source, target in zip(sources, targets, strict=True):
                self._take(source.ids, target.ids, limit)
            report(Progress(f"Cutting {self._name} sentences into pieces: {self.held:,} pairs"))
        if not self.kept:
            most = f"{self._width['source']} and {self._width['target']} word pieces"
            raise UserError(f"{self._split.paths[0]} and {self._split.paths[1].name} hold no pair of at most {most}.")
        return self

    def _take(self, source: list[int], target: list[int], limit: int) -> None:
        if limit and self.kept >= limit:
            return
        lengths = {"source": len(source) + 2, "target": len(target) + 2}
        if source and target and all(length <= self._width[side] for side, length in lengths.items()):
            for side, ids in (("source", source), ("target", target)):
                padding = [PAD] * (self._width[side] - lengths[side])
                self._spools[side].append(np.array([BEGIN, *ids, END, *padding]))
            self._spools["lengths"].append(np.array(lengths["source"]))
            self._spools["positions"].append(np.array(self.held))
            self._words += lengths["target"] - 1
            self.kept += 1
        self.held += 1

    def said(self) -> dict[str, int]:
        """Return counts: pairs kept, read and left out, and words to be foretold."""
        counts = {"count": self.kept, "held": self.held, "dropped": self.held - self.kept, "words": self._words}
        return {f"{self._name}_{what}": count for what, count in counts.items()}

    def write(self, writer: Writer, report: Report) -> None:
        """Append the split's arrays."""
        for side, width in self._width.items():
            whole = self._spools[side].finish()
            writer.begin(f"{self._name}/{side}", "<i4", (self.kept, width))
            for start in range(0, self.kept, CHUNK_PAIRS):
                writer.extend(whole[start * width : (start + CHUNK_PAIRS) * width].astype("<i4"))
            report(Progress(f"Writing {self._name} sentences", self.kept, self.kept))
        writer.add(f"{self._name}/source_length", self._spools["lengths"].finish())
        writer.add(f"position/{self._name}", self._spools["positions"].finish())
