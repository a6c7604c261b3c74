"""Parallel text, one sentence per line in one file per language -> ids of word pieces in rows of fixed length.

Both languages share one byte-pair encoding (Sennrich et al. 2016), learned on the whole training split. A space is marked as
part of the word after it. Ids: 0 padding, 1 unknown, 2 begin, 3 end of a sentence. Lengths include begin and end.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from steelyard.errors import UserError
from steelyard.inputs.data.options import PairOptions
from steelyard.inputs.data.raw_samples import Spool
from steelyard.inputs.data.source import Source
from steelyard.inputs.data.work import Work
from steelyard_worker.protocol import ENCODING
from steelyard_worker.tensors import Writer

PAD, UNKNOWN, BEGIN, END = range(4)
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")
LANGUAGES = ("en", "de")
# Layout -> possible file names of training and test files, without the language; the first that exists is used.
STEMS = {
    "tokens": (("train.tok.clean",), ("newstest2014.tok",)),
    "word pieces": (("train.tok.clean.bpe.32000",), ("newstest2014.tok.bpe.32000",)),
    "sentences": (("train",), ("test", "newstest2014")),
}
ALPHABET = 1000  # characters; rarer ones become unknown, because text from the web has thousands of them
MIN_OCCURRENCES = 2  # of a pair of pieces, to be merged
CHUNK_PAIRS = 4096


@dataclass(frozen=True)
class ParallelFiles:
    """The two files of one split, in the order of `LANGUAGES`."""

    paths: tuple[Path, Path]
    in_pieces: bool  # the text was cut by another encoding, with "@@ " between pieces; the pieces are joined again

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
    out and counted. The encoding is written next to the arrays. UserError: a file is missing or damaged, or the vocabulary
    is too small.
    """
    source, options = work.source, work.options
    train, test = (_find_files(source, stems) for stems in STEMS[source.layout.name])
    work.say(f"Learning {options.vocabulary:,} word pieces from {train.paths[0].name} and {train.paths[1].name}")
    tokenizer = learn_pieces(train, options.vocabulary, source.layout.name == "sentences")
    tokenizer.save(str(work.folder / ENCODING))
    with ExitStack() as spools:
        encoded = [_EncodedSplit("train", train, work, spools), _EncodedSplit("test", test, work, spools)]
        for split, limit in zip(encoded, (options.train_limit, options.test_limit), strict=True):
            split.read(tokenizer, limit)
        facts = {"pieces": tokenizer.get_vocab_size(), "subset": encoded[0].read_count < source.data.train}
        with work.writer({**facts, **encoded[0].counts(), **encoded[1].counts()}) as writer:
            for split in encoded:
                split.write(writer)


def learn_pieces(files: ParallelFiles, vocabulary: int, raw: bool) -> Tokenizer:
    """Learn the encoding. `raw` text, which is not tokenised yet, is split at punctuation as well as at spaces."""
    tokenizer = Tokenizer(models.BPE(unk_token=SPECIAL[UNKNOWN]))
    spaces = pre_tokenizers.Metaspace()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([spaces, pre_tokenizers.Punctuation()] if raw else [spaces])
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, min_frequency=MIN_OCCURRENCES, limit_alphabet=ALPHABET, special_tokens=list(SPECIAL),
        show_progress=False,
    )  # fmt: skip
    tokenizer.train_from_iterator((text for pair in files.pairs() for text in pair), trainer)
    if tokenizer.get_vocab_size() > vocabulary:
        raise UserError(
            f"{files.paths[0].parent} uses {tokenizer.get_vocab_size() - len(SPECIAL):,} different characters, which do not fit "
            f"a vocabulary of {vocabulary:,} with {len(SPECIAL)} special tokens; make the vocabulary larger."
        )
    return tokenizer


def _find_files(source: Source, stems: tuple[str, ...]) -> ParallelFiles:
    folder = source.path
    stem = next((stem for stem in stems if (folder / f"{stem}.{LANGUAGES[0]}").is_file()), stems[0])
    paths = (folder / f"{stem}.{LANGUAGES[0]}", folder / f"{stem}.{LANGUAGES[1]}")
    for path in paths:
        if not path.is_file():
            raise UserError(
                f"{folder} does not hold '{path.name}', which is part of the layout '{source.layout.name}'; put it there."
            )
    return ParallelFiles(paths, source.layout.name == "word pieces")


class _EncodedSplit:
    """The pairs of one split that fit, spooled because their number is known only at the end."""

    def __init__(self, name: str, files: ParallelFiles, work: Work[PairOptions], spools: ExitStack) -> None:
        self._name, self._files, self._work = name, files, work
        options = work.options
        self._width = {"source": options.source, "target": options.target}
        dtypes = dict.fromkeys(self._width, np.uint16 if options.vocabulary <= 1 << 16 else np.int32)
        dtypes |= dict.fromkeys(("lengths", "positions"), np.int32)
        self._spools = {
            what: spools.enter_context(Spool(work.scratch / f"{name}.{what}", dtype)) for what, dtype in dtypes.items()
        }
        self.read_count = self._count = self._words = 0

    def read(self, tokenizer: Tokenizer, limit: int) -> None:
        """Encode the split in chunks on all processors, up to `limit` pairs that fit (0: all)."""
        pairs = self._files.pairs()
        while (chunk := list(islice(pairs, CHUNK_PAIRS))) and not (limit and self._count >= limit):
            sources, targets = (tokenizer.encode_batch_fast(list(side)) for side in zip(*chunk, strict=True))
            for source, target in zip(sources, targets, strict=True):
                self._add(source.ids, target.ids, limit)
            self._work.say(f"Cutting {self._name} sentences into pieces: {self.read_count:,} pairs")
        if not self._count:
            most = f"{self._width['source']} and {self._width['target']} word pieces"
            raise UserError(
                f"{self._files.paths[0]} and {self._files.paths[1].name} hold no pair of at most {most}; raise 'source' and "
                "'target'."
            )

    def _add(self, source: list[int], target: list[int], limit: int) -> None:
        if limit and self._count >= limit:
            return
        lengths = {"source": len(source) + 2, "target": len(target) + 2}
        if source and target and all(length <= self._width[side] for side, length in lengths.items()):
            for side, ids in (("source", source), ("target", target)):
                padding = [PAD] * (self._width[side] - lengths[side])
                self._spools[side].append(np.array([BEGIN, *ids, END, *padding]))
            self._spools["lengths"].append(np.array(lengths["source"]))
            self._spools["positions"].append(np.array(self.read_count))
            self._words += lengths["target"] - 1
            self._count += 1
        self.read_count += 1

    def counts(self) -> dict[str, int]:
        """Return the numbers of pairs used, read and left out, and of target tokens to predict."""
        dropped = self.read_count - self._count
        counts = {"count": self._count, "held": self.read_count, "dropped": dropped, "words": self._words}
        return {f"{self._name}_{what}": count for what, count in counts.items()}

    def write(self, writer: Writer) -> None:
        """Append the arrays of the split."""
        for side, width in self._width.items():
            flat = self._spools[side].finish()
            writer.begin(f"{self._name}/{side}", "<i4", (self._count, width))
            for start in range(0, self._count, CHUNK_PAIRS):
                writer.extend(flat[start * width : (start + CHUNK_PAIRS) * width].astype("<i4"))
            self._work.say(f"Writing {self._name} sentences", self._count, self._count)
        writer.add(f"{self._name}/source_length", self._spools["lengths"].finish())
        writer.add(f"position/{self._name}", self._spools["positions"].finish())
